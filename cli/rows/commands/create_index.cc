#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "cli/rows/commands/row_command.h"
#include "log/manifest/manifest.h"
#include "txn/database.h"
#include "txn/store/secondary_index.h"

namespace gannet::cli {
namespace {

struct CreateIndexOptions : RowOptions {
  std::string name;
  std::vector<std::string> fields;
  bool unique = false;
};

// Reads a field of a secondary index: "TYPE:OFFSET:BYTES" of the payload, or "key".
StatusOr<txn::IndexField> ParseIndexField(const std::string& text, const txn::Table& table) {
  const bool integer_keys = table.options().key_kind == index::KeyKind::kInteger;
  if (text == "key") return integer_keys ? txn::IndexField::KeyNumber() : txn::IndexField::KeyBytes();
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("--field ", text,
                     ": must be TYPE:OFFSET:BYTES, such as text:0:16, or key; the types are "
                     "unsigned, signed, floating, text and bytes"));
  };
  if (parts.size() != 3) return wrong();
  const StatusOr<int64_t> offset = ParseInteger(parts[1], 0, txn::kMaxPayloadBytes);
  const StatusOr<int64_t> bytes = ParseInteger(parts[2], 0, txn::kMaxPayloadBytes);
  if (!offset.ok() || !bytes.ok()) return wrong();
  const log::IndexDescription one{.fields = {{.source = "payload",
                                              .type = parts[0],
                                              .offset = static_cast<uint32_t>(*offset),
                                              .bytes = static_cast<uint32_t>(*bytes)}}};
  const StatusOr<std::vector<txn::IndexField>> fields = txn::IndexFieldsOf(one);
  if (!fields.ok()) return wrong();
  return fields->front();
}

Status CreateIndex(const CreateIndexOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenToChange(options, host, "create-index");
  if (!opened.ok()) return opened.status();
  txn::SecondaryIndexOptions index{.name = options.name, .table = options.table, .unique = options.unique};
  for (const std::string& field : options.fields) {
    const StatusOr<txn::IndexField> parsed = ParseIndexField(field, *opened->table);
    if (!parsed.ok()) return parsed.status();
    index.fields.push_back(*parsed);
  }
  return opened->store->database().CreateIndex(index).status();
}

}  // namespace

void AddCreateIndex(const RowApp& to) {
  const auto options = std::make_shared<CreateIndexOptions>();
  CLI::App* command = AddRowCommand(
      to, "create-index", "Make a secondary index of a table.",
      absl::StrFormat("Programs and commands that change rows keep it. %s\n\nExample: gannet create-index data people "
                      "by_city --field text:0:16 --field unsigned:16:4",
                      kWrites),
      [options](RowHost& host) { return CreateIndex(*options, host); });
  AddTable(command, options.get())->required();
  AddPath(*command, "NAME", &options->name, "TEXT", "Name of the index; tables and indexes have different ones")
      ->required();
  command
      ->add_option(
          "--field", options->fields,
          "A field of its keys, first one first: TYPE:OFFSET:BYTES of the payload, with the type unsigned, "
          "signed, floating (little-endian), text (up to a zero byte) or bytes; 0 bytes: up to the end; or key")
      ->required()
      ->type_name("FIELD");
  command->add_flag("--unique", options->unique, "No two rows may have one key");
}

}  // namespace gannet::cli
