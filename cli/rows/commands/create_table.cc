#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "cli/rows/commands/row_command.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "txn/database.h"
#include "txn/store/key_form.h"

namespace gannet::cli {
namespace {

constexpr size_t kDefaultKeyBytes = 64;

struct CreateTableOptions : RowOptions {
  txn::TableOptions table_options;
  bool fixed = false;
  bool create = false;  // the database, too
};

Status CreateTable(const CreateTableOptions& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "create-table"));
  txn::TableOptions table = options.table_options;
  table.name = options.table;
  table.variable_length = !options.fixed;
  if (table.key_kind == index::KeyKind::kNone) {
    const bool bytes = table.key_form == txn::KeyForm::kText || table.key_form == txn::KeyForm::kTuple;
    table.key_kind = bytes ? index::KeyKind::kBytes : index::KeyKind::kInteger;
  }
  // A rectangle has a size of its own.
  if (index::EntryOf(table.index).traits.spatial) {
    table.key_kind = index::KeyKind::kBytes;
    table.max_key_bytes = index::RectangleKey::kBytes;
  } else if (table.key_kind == index::KeyKind::kInteger) {
    if (table.max_key_bytes != 0) {
      return absl::InvalidArgumentError("--max-key-bytes is of byte keys; leave it out, or give --key bytes");
    }
    table.max_key_bytes = index::kIntegerKeyBytes;
  } else if (table.max_key_bytes == 0) {
    table.max_key_bytes = std::min(kDefaultKeyBytes, index::kMaxKeyBytes);
  }
  const StatusOr<RowStore*> store = host.Open(options.create ? RowHost::Access::kCreate : RowHost::Access::kWrite);
  if (!store.ok()) {
    if (!absl::IsNotFound(store.status())) return store.status();
    return absl::NotFoundError(absl::StrCat(store.status().message(), "; --create makes a new database"));
  }
  if ((*store)->database().FindTable(table.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a table '", table.name, "' already (gannet tables shows it)"));
  }
  return (*store)->database().CreateTable(table).status();
}

StatusOr<index::KeyKind> ParseKeyKind(const std::string& text) {
  static constexpr std::array<std::string_view, 2> kNames = {"integer", "bytes"};
  const StatusOr<size_t> choice = ParseChoice(text, kNames);
  if (!choice.ok()) return choice.status();
  return *choice == 0 ? index::KeyKind::kInteger : index::KeyKind::kBytes;
}

// Accepts the forms that a table keeps.
StatusOr<txn::KeyForm> ParseKeptKeyForm(const std::string& text) {
  static constexpr std::array kKept = {txn::KeyForm::kText, txn::KeyForm::kTuple, txn::KeyForm::kSigned};
  std::array<std::string_view, kKept.size()> names;
  std::ranges::transform(kKept, names.begin(), [](txn::KeyForm form) { return NameOf(form); });
  const StatusOr<size_t> choice = ParseChoice(text, names);
  if (!choice.ok()) return choice.status();
  return kKept[*choice];
}

StatusOr<index::IndexKind> ParseIndexKind(const std::string& text) {
  const StatusOr<size_t> at = ParseChoice(text, index::IndexKindNames());
  if (!at.ok()) return at.status();
  return static_cast<index::IndexKind>(*at);
}

}  // namespace

void AddCreateTable(const RowApp& to) {
  const auto options = std::make_shared<CreateTableOptions>();
  options->table_options.key_kind = index::KeyKind::kNone;  // not said
  options->table_options.index = index::IndexKind::kXStore;
  options->table_options.max_key_bytes = 0;
  CLI::App* command = AddRowCommand(
      to, "create-table", "Make a new table.",
      absl::StrFormat("%s\n\nExample: gannet create-table data cities --key bytes --payload 1000 --create", kWrites),
      [options](RowHost& host) { return CreateTable(*options, host); });
  AddTable(command, options.get())->required();
  Add(*command, "--key", &options->table_options.key_kind, ParseKeyKind, "KIND",
      "What keys are: integer or bytes. Default: integer, or bytes with --keys text or tuple");
  Add(*command, "--keys", &options->table_options.key_form, ParseKeptKeyForm, "FORM",
      "What keys mean, which the catalog keeps: text, tuple, or signed for integers. Other commands then need no "
      "--keys");
  AddInteger(*command, "--max-key-bytes", &options->table_options.max_key_bytes, 1,
             static_cast<int64_t>(index::kMaxKeyBytes),
             absl::StrFormat("Longest byte key. Default: %d", std::min(kDefaultKeyBytes, index::kMaxKeyBytes)));
  Add(*command, "--index", &options->table_options.index, ParseIndexKind, "KIND",
      absl::StrCat("hash (not ordered), ", index::KindsWith(&index::IndexTraits::ordered),
                   " (ordered), or catfish (rectangles). Default: xstore"));
  AddInteger(*command, "--payload", &options->table_options.payload_bytes, 0, txn::kMaxPayloadBytes,
             "Largest payload in bytes")
      ->required();
  command->add_flag("--fixed", options->fixed, "All payloads have exactly this size");
  AddInteger(*command, "--expected-rows", &options->table_options.expected_rows, 1, INT64_MAX,
             "Sizes a hash index, which grows only a little. Default: 1024");
  AddPath(*command, "--note", &options->table_options.application, "TEXT",
          "A note that the catalog keeps with the table");
  command->add_flag("--create", options->create, "Create the database if the directory holds none");
}

}  // namespace gannet::cli
