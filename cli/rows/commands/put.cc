#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "cli/rows/commands/row_command.h"

namespace gannet::cli {
namespace {

struct PutOptions : RowOptions {
  std::string value;
};

Status Put(const PutOptions& options, RowHost& host) {
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kWrite, &opened);
  if (!key.ok()) return key.status();
  const StatusOr<std::string> payload = opened.text->ParsePayload(options.value);
  if (!payload.ok()) return Named("VALUE", options.value, payload.status());
  return host.runner()([&](txn::BlockingTransaction& t) {
    return t.Upsert(*opened.table, key->view(), std::as_bytes(std::span(*payload)));
  });
}

}  // namespace

void AddPut(const RowApp& to) {
  const auto options = std::make_shared<PutOptions>();
  CLI::App* command =
      AddRowCommand(to, "put", "Insert a row, or replace its payload.",
                    absl::StrFormat("%s The row is durable when the command ends.\n%s\n\nExample: gannet put "
                                    "data cities Oslo 'Norway, 709000'",
                                    kWrites, kForms),
                    [options](RowHost& host) { return Put(*options, host); });
  AddTable(command, options.get())->required();
  AddKey(command, options.get());
  command->add_option("VALUE", options->value, "The payload")->required();
  AddForms(command, options.get());
}

}  // namespace gannet::cli
