#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "cli/common/command.h"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "cli/rows/commands/row_command.h"
#include "cli/rows/row_file.h"

namespace gannet::cli {
namespace {

Status Scan(const RowOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kRead);
  if (!opened.ok()) return opened.status();
  RowWriter writer(*opened->text, options.json ? RowFormat::kJson : RowFormat::kLines, stdout);
  const Status scanned =
      VisitRows(options, host, *opened, /*keys_only=*/false,
                [&](const index::Key& key, std::string_view payload) { return writer.Row(key, payload); });
  return WithRest(scanned, "the output is not complete");
}

}  // namespace

void AddScan(const RowApp& to) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command =
      AddRowCommand(to, "scan", "Print the rows of a range: key, tab, payload.",
                    absl::StrFormat("%s\nRows come in the order of their keys; of a table whose index is not ordered, "
                                    "in any order, and without a range.\n%s\n%s\n\nExamples: gannet scan data cities "
                                    "--prefix S --limit 10\n          gannet scan data cities --by by_country "
                                    "--prefix Nor",
                                    kReads, kForms, kKeysBy),
                    [options](RowHost& host) { return Scan(*options, host); });
  AddTable(command, options.get())->required();
  AddBy(command, options.get(), "In the order of this index of the table, of whose keys the range is");
  AddRange(command, options.get());
  Add(
      *command, "--limit", &options->range.limit,
      [](const std::string& text) { return ParseCount(text, 0, INT64_MAX); }, "N",
      "At most so many rows, such as 100 or 10K. Default: all");
  command->add_flag("--reverse", options->range.reverse, "From the greatest key to the smallest");
  AddForms(command, options.get());
  command->add_flag("--json", options->json, "One JSON object per line and row");
  to.host->AddReadFlags(*command);
}

}  // namespace gannet::cli
