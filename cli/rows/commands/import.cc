#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/flags.h"
#include "cli/common/progress.h"
#include "cli/rows/commands/row_command.h"
#include "cli/rows/csv_columns.h"
#include "cli/rows/row_file.h"
#include "cli/rows/row_import.h"

namespace gannet::cli {
namespace {

struct ImportCommand : RowOptions {
  std::string file;
  bool csv = false;
  bool replace = false;
  CsvColumns columns;  // empty: the file says
};

struct Closer {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

StatusOr<RowFormat> FormatOf(const ImportCommand& options) {
  if (options.csv) return RowFormat::kCsv;
  if (options.json) return RowFormat::kJson;
  if (const std::optional<RowFormat> format = FormatOfName(options.file); format.has_value()) return *format;
  return absl::InvalidArgumentError(
      absl::StrCat("FILE ", options.file, ": its name does not say the format; give --csv or --json"));
}

Status Import(const ImportCommand& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "import, which makes transactions of its own,"));
  const StatusOr<RowFormat> format = FormatOf(options);
  if (!format.ok()) return format.status();
  const std::unique_ptr<std::FILE, Closer> file(options.file == "-" ? stdin : std::fopen(options.file.c_str(), "re"));
  if (file == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("FILE ", options.file, ": cannot be read: ", std::strerror(errno)));
  }
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  Progress progress;
  if (!options.columns.empty() && *format != RowFormat::kCsv) {
    return absl::InvalidArgumentError("--key and --payload name columns of CSV; the file is JSON");
  }
  RowReader reader(*opened->text, *format, file.get(), options.columns);
  const ImportResult result =
      ImportRows(host.runner(), *opened->table, &reader,
                 {.replace = options.replace, .stop = host.stop(), .progress = [&](uint64_t rows) {
                    progress.Count(absl::StrFormat("importing into %s: %s", options.table, Count(rows, "row")));
                  }});
  progress.EndCount();
  if (result.status.ok()) {
    absl::FPrintF(stderr, "%s: %s imported into table %s\n", options.file, Count(result.rows, "row"), options.table);
    return absl::OkStatus();
  }
  std::string rest = absl::StrCat("; imported: ",
                                  result.rows == 0 ? "nothing" : absl::StrCat("the first ", Count(result.rows, "row")));
  if (absl::IsAlreadyExists(result.status)) {
    absl::StrAppend(&rest, "; with --replace such rows are replaced");
  } else if (result.rows > 0) {
    absl::StrAppend(&rest, "; to run it again, give --replace");
  }
  const bool names_line = absl::StartsWith(result.status.message(), "line ");
  return Status(absl::IsInvalidArgument(result.status) ? absl::StatusCode::kFailedPrecondition : result.status.code(),
                absl::StrCat(names_line ? absl::StrCat(options.file, " ") : "",
                             absl::IsAlreadyExists(result.status) ? "has a row that is there already, " : "",
                             result.status.message(), rest));
}

}  // namespace

void AddImport(const RowApp& to) {
  const auto options = std::make_shared<ImportCommand>();
  CLI::App* command = AddRowCommand(
      to, "import", "Put the rows of a CSV or JSON file into a table.",
      absl::StrFormat(
          "%s Reads what gannet export writes: CSV (RFC 4180) whose first line names the columns, key and payload (or "
          "key_hex,\nkey_tuple, key_signed, payload_hex), or one JSON object per line. Rows go in by transactions of "
          "at most 1000, in the\norder of the file. After an error, or Ctrl-C, the first rows of the file are in the "
          "table, and the message says how\nmany; run it again with --replace.\n--key and --payload take the columns "
          "of any other CSV, as they are. Several columns make a tuple: NAME:TYPE says what a field\nis (text, "
          "integer, "
          "double or bool; text if nothing does). A payload of several columns is a line of CSV.\n\nExamples: gannet "
          "import data cities cities.csv\n          gannet import data cities world.csv --key country,year:integer "
          "--payload population",
          kWrites),
      [options](RowHost& host) { return Import(*options, host); });
  AddTable(command, options.get())->required();
  AddPath(*command, "FILE", &options->file, "PATH", "The file; - is standard input")->required();
  CLI::Option* csv = command->add_flag("--csv", options->csv, "The file is CSV. Default: what its name says");
  command->add_flag("--json", options->json, "The file is JSON, one object per line")->excludes(csv);
  CLI::Option* key = Add(*command, "--key", &options->columns.key, ParseColumns, "COLUMNS",
                         "CSV: the columns that make the key, such as name,country. Default: what the first line says");
  CLI::Option* payload = Add(*command, "--payload", &options->columns.payload, ParseColumns, "COLUMNS",
                             "CSV: the columns that make the payload");
  key->needs(payload);
  payload->needs(key);
  command->add_flag("--replace", options->replace,
                    "Replace rows whose keys are there already. Otherwise such a row is an error");
}

}  // namespace gannet::cli
