// drop-table, rename-table and widen-table: changes of a table as a whole.
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "cli/common/flags.h"
#include "cli/rows/commands/row_command.h"
#include "txn/database.h"

namespace gannet::cli {
namespace {

Status DropTable(const RowOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenToChange(options, host, "drop-table");
  if (!opened.ok()) return opened.status();
  return opened->store->database().DropTable(options.table);
}

struct RenameOptions : RowOptions {
  std::string new_name;
};

Status RenameTable(const RenameOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenToChange(options, host, "rename-table");
  if (!opened.ok()) return opened.status();
  return opened->store->database().RenameTable(options.table, options.new_name);
}

struct WidenOptions : RowOptions {
  size_t payload_bytes = 0;
};

Status WidenTable(const WidenOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenToChange(options, host, "widen-table");
  if (!opened.ok()) return opened.status();
  return opened->store->database().WidenTable(options.table, options.payload_bytes);
}

}  // namespace

void AddDropTable(const RowApp& to) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command =
      AddRowCommand(to, "drop-table", "Remove a table and all its rows, for good.",
                    absl::StrFormat("%s Nothing asks again: gannet export keeps a copy of the rows, gannet backup "
                                    "one of\nthe directory.\n\nExample: gannet drop-table data cities",
                                    kWrites),
                    [options](RowHost& host) { return DropTable(*options, host); });
  AddTable(command, options.get())->required();
}

void AddRenameTable(const RowApp& to) {
  const auto options = std::make_shared<RenameOptions>();
  CLI::App* command = AddRowCommand(to, "rename-table", "Give a table, or a secondary index, another name.",
                                    absl::StrFormat("%s\n\nExample: gannet rename-table data cities towns", kWrites),
                                    [options](RowHost& host) { return RenameTable(*options, host); });
  AddTable(command, options.get())->required();
  AddPath(*command, "NEW_NAME", &options->new_name, "NAME", "Its new name")->required();
}

void AddWidenTable(const RowApp& to) {
  const auto options = std::make_shared<WidenOptions>();
  CLI::App* command =
      AddRowCommand(to, "widen-table", "Make the payloads of a table larger.",
                    absl::StrFormat("%s Payloads of a fixed size get zeros at their end.\n\nExample: gannet "
                                    "widen-table data cities --payload 2000",
                                    kWrites),
                    [options](RowHost& host) { return WidenTable(*options, host); });
  AddTable(command, options.get())->required();
  AddInteger(*command, "--payload", &options->payload_bytes, 0, txn::kMaxPayloadBytes,
             "Largest payload in bytes; at least the present one")
      ->required();
}

}  // namespace gannet::cli
