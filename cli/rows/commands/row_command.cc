#include "cli/rows/commands/row_command.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/rows/index_scan.h"

namespace gannet::cli {
namespace {

constexpr const char* kNoSuchRow = "there is no such row: ";

}  // namespace

CLI::App* AddRowCommand(const RowApp& to, const char* name, const char* description, const std::string& footer,
                        const std::function<Status(RowHost&)>& run) {
  CLI::App* command = to.app->add_subcommand(name, description);
  command->footer(footer);
  to.host->AddFlags(*command);
  command->callback([run, host = to.host, exit_code = to.exit_code, name = std::string(name)] {
    const Status status = run(*host);
    *exit_code = host->End(name, status);
    const bool no_row = absl::IsNotFound(status) && absl::StartsWith(status.message(), kNoSuchRow);
    if (*exit_code == kExitFailed && no_row) *exit_code = kExitNoRow;
  });
  return command;
}

CLI::Option* AddTable(CLI::App* command, RowOptions* options) {
  return AddPath(*command, "TABLE", &options->table, "NAME", "Name of the table");
}

void AddKey(CLI::App* command, RowOptions* options) {
  command->add_option("KEY", options->key, "The key")->required();
}

void AddBy(CLI::App* command, RowOptions* options, const char* description) {
  AddPath(*command, "--by", &options->by, "INDEX", description);
}

void AddRange(CLI::App* command, RowOptions* options) {
  const auto set = [command](const char* flag, std::optional<std::string>* target, const char* description) {
    return command
        ->add_option_function<std::string>(
            flag, [target](const std::string& text) { *target = text; }, description)
        ->type_name("KEY");
  };
  RowRange& range = options->range;
  CLI::Option* from = set("--from", &range.from, "Only this key and greater ones");
  CLI::Option* to = set("--to", &range.to, "Only keys that are smaller than this one");
  set("--prefix", &range.prefix, "Only byte keys that begin so, or tuples with these first fields")
      ->excludes(from)
      ->excludes(to);
}

void AddKeyForm(CLI::App* command, RowOptions* options) {
  Add(*command, "--keys", &options->forms.keys, ParseKeyForm, "FORM", kKeyFormHelp);
}

void AddForms(CLI::App* command, RowOptions* options) {
  AddKeyForm(command, options);
  Add(*command, "--payloads", &options->forms.payloads, ParsePayloadForm, "FORM",
      "How payloads are written: text or hex. Default: text");
}

StatusOr<Opened> OpenTable(const RowOptions& options, RowHost& host, RowHost::Access access) {
  Opened opened;
  const StatusOr<RowStore*> store = host.Open(access);
  if (!store.ok()) return store.status();
  opened.store = *store;
  const StatusOr<const txn::Table*> table = opened.store->FindTable(options.table);
  if (!table.ok()) return table.status();
  opened.table = *table;
  const StatusOr<RowText> text = RowText::For(**table, options.forms);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("--keys ", text.status().message()));
  opened.text = *text;
  return opened;
}

StatusOr<txn::KeyCopy> OpenRow(const RowOptions& options, RowHost& host, RowHost::Access access, Opened* opened) {
  StatusOr<Opened> table = OpenTable(options, host, access);
  if (!table.ok()) return table.status();
  *opened = *std::move(table);
  StatusOr<txn::KeyCopy> key = opened->text->ParseKey(options.key);
  if (!key.ok()) return Named("KEY", options.key, key.status());
  return key;
}

Status CheckNoTransaction(RowHost& host, const char* what) {
  if (!host.in_transaction()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " is not a part of a transaction; commit first"));
}

StatusOr<Opened> OpenToChange(const RowOptions& options, RowHost& host, const char* what) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, what));
  return OpenTable(options, host, RowHost::Access::kWrite);
}

Status NotThere(const Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(kNoSuchRow, status.message()));
}

Status VisitRows(const RowOptions& options, RowHost& host, const Opened& opened, bool keys_only, RowVisitor visit) {
  if (options.by.empty()) {
    return ScanRows(*opened.store, host.runner(), host.in_transaction(), *opened.table, *opened.text, options.range,
                    keys_only, host.stop(), visit);
  }
  const StatusOr<const txn::SecondaryIndex*> index = FindIndexOf(opened.store->database(), *opened.table, options.by);
  if (!index.ok()) return index.status();
  return ScanRowsBy(host.runner(), host.in_transaction(), **index, options.range, keys_only, host.stop(), visit);
}

}  // namespace gannet::cli
