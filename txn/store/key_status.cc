#include "txn/store/key_status.h"

#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "index/tuple_text.h"
#include "txn/store/conflict.h"

namespace gannet::txn {
namespace {

// Bytes of the UTF-8 character at the begin of `text`; 0 if there is none that can be printed. (Control characters,
// U+0080 to U+009F among them, and surrogates cannot. Whether the terminal has the character is not checked.)
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [byte](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xe0) return first >= 0xc2 && continues(1) && (first > 0xc2 || byte(1) >= 0xa0) ? 2 : 0;
  if (!continues(1) || !continues(2)) return 0;
  if (first < 0xf0) return (first > 0xe0 || byte(1) >= 0xa0) && (first != 0xed || byte(1) < 0xa0) ? 3 : 0;
  if (!continues(3) || first > 0xf4) return 0;
  return (first > 0xf0 || byte(1) >= 0x90) && (first < 0xf4 || byte(1) < 0x90) ? 4 : 0;
}

[[gnu::cold]] Status NoRectangle(const Table& table, const Status& why) {
  return absl::InvalidArgumentError(absl::StrCat(NameOf(table), ": ", why.message()));
}

Status CheckOwnersKnown(const Table& table) {
  if (table.knows_owners()) [[likely]]
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("which node owns a key of ", NameOf(table),
                   " is said by a function of the program that made it; create it with that TableOptions::placement, "
                   "at every node, before Start"));
}

Status CheckMore(const Table& table, const index::Key& key) {
  GANNET_RETURN_IF_ERROR(CheckUsable(table));
  if (!table.index_traits().spatial) return absl::OkStatus();
  const Status decoded = index::DecodeRectangleKey(key).status();
  return decoded.ok() ? decoded : NoRectangle(table, decoded);
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes > 1 || (bytes == 1 && text[0] != '"' && text[0] != '\\')) {
      quoted.append(text.substr(0, bytes));
    } else {
      quoted += absl::CHexEscape(absl::string_view(text.data(), 1));
    }
    text.remove_prefix(bytes > 1 ? bytes : 1);
  }
  return quoted + '"';
}

std::string TextOf(const Table& table, const index::Key& key) {
  const KeyForm form = table.key_form();
  if (key.kind() == index::KeyKind::kInteger) {
    return form == KeyForm::kSigned ? absl::StrCat(key.signed_integer()) : absl::StrCat(key.integer());
  }
  if (key.kind() == index::KeyKind::kNone) return key.ToString();
  if (table.index_traits().spatial) {
    const StatusOr<index::RectangleKey> rectangle = index::DecodeRectangleKey(key);
    if (rectangle.ok()) return absl::StrCat(rectangle->box.ToString(), " id ", rectangle->id);
  }
  // The form may not be known. The first byte of a tuple is a control character, so hardly any text is then taken for a
  // tuple.
  if (form == KeyForm::kTuple || (form == KeyForm::kPlain && key.size() > 0)) {
    const StatusOr<std::vector<index::TupleField>> fields = index::FieldsOfTuple(key.bytes());
    if (fields.ok()) return index::TupleText(*fields, Quoted);
  }
  if (key.size() <= index::kShortKeyBytes) return Quoted(key.bytes());
  return absl::StrCat(Quoted(key.bytes().substr(0, index::kShortKeyBytes)), "... (", key.size(), " bytes)");
}

std::string NameOf(const Table& table) {
  return absl::StrCat("table '", table.name(), "'");
}

std::string NameOfRow(const Table& table, const index::Key& key) {
  return absl::StrCat(NameOf(table), ", key ", TextOf(table, key));
}

Status CheckOrdered(const Table& table) {
  if (table.index_traits().ordered) [[likely]]
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has no ordered index (",
                                                    index::EntryOf(table.options().index).name,
                                                    "): create it with one to scan it"));
}

Status CheckKey(const Table& table, const index::Key& key) {
  const TableOptions& options = table.options();
  if (key.kind() != options.key_kind) [[unlikely]] {
    if (key.kind() == index::KeyKind::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("a negative number is no key of ", NameOf(table), ": Key::Signed makes keys of such numbers"));
    }
    return absl::InvalidArgumentError(absl::StrCat(NameOf(table), " has ",
                                                   options.key_kind == index::KeyKind::kInteger ? "integer" : "byte",
                                                   " keys; give it a key of that kind"));
  }
  if (key.size() > options.max_key_bytes) [[unlikely]] {
    return absl::InvalidArgumentError(absl::StrCat("a key of ", key.size(), " bytes is too long for ", NameOf(table),
                                                   ": at most ", options.max_key_bytes));
  }
  if (table.checks_more()) [[unlikely]]
    return CheckMore(table, key);
  return absl::OkStatus();
}

Status CheckUsable(const Table& table) {
  if (!table.checks_more()) [[likely]]
    return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(CheckState(table));
  return CheckOwnersKnown(table);
}

Status CheckState(const Table& table) {
  switch (table.state()) {
    case Table::State::kUsed:
      return absl::OkStatus();
    case Table::State::kBeingWidened:
      return ConflictWithChangeOf(table, "widened");
    case Table::State::kBeingArranged:
      return ConflictWithChangeOf(table, "arranged");
    case Table::State::kHalfWidened:
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(table),
                       " was widened only in part, because memory ran out or a record stayed locked: close the "
                       "database, and open it again with more memory"));
    case Table::State::kBeingDropped:
      return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " is being dropped"));
    case Table::State::kDropped:
      return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has been dropped"));
  }
  return absl::OkStatus();
}

Status KeyNotFound(const Table& table, const index::Key& key) {
  return absl::NotFoundError(NameOfRow(table, key));
}

// An entry of an index that is not unique is as unique as its row, which then was inserted although it is there.
Status KeyExists(const Table& table, const index::Key& key) {
  if (const SecondaryIndex* const index = table.secondary(); index != nullptr) [[unlikely]] {
    if (index->unique()) {
      return absl::AlreadyExistsError(
          absl::StrCat(index->DescribeEntry(key.bytes()), ": another row has this key of a unique index"));
    }
    const StatusOr<index::Key> row = index->PrimaryKeyOf(key.bytes(), {});
    if (row.ok()) return absl::AlreadyExistsError(NameOfRow(index->table(), *row));
  }
  return absl::AlreadyExistsError(NameOfRow(table, key));
}

Status IndexDamaged(const Table& table, const index::Key& key) {
  return absl::DataLossError(
      absl::StrCat(NameOfRow(table, key), ": the index is damaged: a client has written into it"));
}

Status IndexDamaged(const Table& table) {
  return absl::DataLossError(absl::StrCat(NameOf(table), ": the index is damaged: a client has written into it"));
}

Status PayloadDoesNotFit(const Table& table, size_t payload_bytes) {
  return absl::InvalidArgumentError(absl::StrCat("a payload of ", payload_bytes, " bytes does not fit ", NameOf(table),
                                                 table.options().variable_length ? ", at most " : ", exactly ",
                                                 table.payload_bytes()));
}

Status NotRowOf(const Table& table, size_t row_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("a struct of ", row_bytes, " bytes is not that of ", NameOf(table), ", whose rows have ",
                   table.options().variable_length ? "at most " : "", table.payload_bytes()));
}

Status RowIsNot(const Table& table, const index::Key& key, size_t asked_bytes, size_t payload_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(NameOfRow(table, key), ": its payload has ", payload_bytes,
                                                 " bytes, not ", asked_bytes,
                                                 ": take the struct of the table, or name a part by its offset or "
                                                 "field"));
}

Status PayloadEndsBefore(const Table& table, const index::Key& key, uint32_t offset, size_t size,
                         uint32_t payload_bytes) {
  return absl::OutOfRangeError(absl::StrCat(NameOfRow(table, key), ": bytes [", offset, ", ", offset + size,
                                            ") are not all in its payload of ", payload_bytes));
}

}  // namespace gannet::txn
