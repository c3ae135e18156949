#include <memory>

#include "absl/strings/str_format.h"
#include "cli/rows/commands/row_command.h"

namespace gannet::cli {
namespace {

Status Delete(const RowOptions& options, RowHost& host) {
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kWrite, &opened);
  if (!key.ok()) return key.status();
  return NotThere(host.runner()([&](txn::BlockingTransaction& t) { return t.Remove(*opened.table, key->view()); }));
}

}  // namespace

void AddDelete(const RowApp& to) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command =
      AddRowCommand(to, "delete", "Remove one row.",
                    absl::StrFormat("%s %s\n%s\n\nExample: gannet delete data cities Oslo", kWrites, kFound, kForms),
                    [options](RowHost& host) { return Delete(*options, host); });
  AddTable(command, options.get())->required();
  AddKey(command, options.get());
  AddKeyForm(command, options.get());
}

}  // namespace gannet::cli
