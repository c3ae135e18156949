#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/rows/commands/row_command.h"
#include "cli/rows/index_scan.h"
#include "cli/rows/row_file.h"
#include "txn/store/secondary_index.h"

namespace gannet::cli {
namespace {

Status PrintPayload(const RowOptions& options, const RowText& text, const index::Key& key, const std::string& payload) {
  if (options.json) return RowWriter(text, RowFormat::kJson, stdout).Row(key, payload);
  absl::PrintF("%s\n", text.PayloadText(payload));
  return absl::OkStatus();
}

// Prints the row with a key of a unique index.
Status GetBy(const RowOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kRead);
  if (!opened.ok()) return opened.status();
  const StatusOr<const txn::SecondaryIndex*> index = FindIndexOf(opened->store->database(), *opened->table, options.by);
  if (!index.ok()) return index.status();
  if (!(*index)->unique()) {
    return absl::InvalidArgumentError(absl::StrCat("--by ", options.by,
                                                   ": the index is not unique, so several rows may have the key; give "
                                                   "scan --by ",
                                                   options.by, " and --from, --to or --prefix"));
  }
  const StatusOr<IndexText> text = IndexText::For(host.runner(), **index);
  if (!text.ok()) return text.status();
  const StatusOr<txn::KeyCopy> key = text->ParseKey(options.key);
  if (!key.ok()) return Named("KEY", options.key, key.status());
  std::optional<txn::KeyCopy> primary;
  std::string payload;
  GANNET_RETURN_IF_ERROR(NotThere(host.runner()([&](txn::BlockingTransaction& t) -> Status {
    const StatusOr<txn::RowBy> row = t.GetBy(**index, key->view());
    if (!row.ok()) return row.status();
    primary = txn::KeyCopy(row->key);
    payload.assign(reinterpret_cast<const char*>(row->payload.data()), row->payload.size());
    return absl::OkStatus();
  })));
  return PrintPayload(options, *opened->text, primary->view(), payload);
}

Status Get(const RowOptions& options, RowHost& host) {
  if (!options.by.empty()) return GetBy(options, host);
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kRead, &opened);
  if (!key.ok()) return key.status();
  std::string payload;
  GANNET_RETURN_IF_ERROR(NotThere(
      host.runner()([&](txn::BlockingTransaction& t) { return t.Get(*opened.table, key->view(), &payload); })));
  return PrintPayload(options, *opened.text, key->view(), payload);
}

}  // namespace

void AddGet(const RowApp& to) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command = AddRowCommand(
      to, "get", "Print the payload of one row.",
      absl::StrFormat("%s %s\n%s %s\n\nExample: gannet get data cities Oslo", kReads, kFound, kForms, kKeysBy),
      [options](RowHost& host) { return Get(*options, host); });
  AddTable(command, options.get())->required();
  AddKey(command, options.get());
  to.host->AddReadFlags(*command);
  AddBy(command, options.get(), "KEY is one of this index of the table, which is unique");
  AddForms(command, options.get());
  command->add_flag("--json", options->json, "A JSON object with the key, too");
}

}  // namespace gannet::cli
