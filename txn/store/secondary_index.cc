#include "txn/store/secondary_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/manifest/manifest.h"
#include "txn/store/key_status.h"
#include "txn/store/table.h"

namespace gannet::txn {
namespace {

using index::Key;
using index::KeyKind;
using index::TupleKey;
using index::TupleReader;
using Source = IndexField::Source;
using Type = IndexField::Type;

constexpr std::array<std::pair<Source, std::string_view>, 2> kSources = {
    {{Source::kPayload, "payload"}, {Source::kKey, "key"}}};
constexpr std::array<std::pair<Type, std::string_view>, 5> kTypes = {{{Type::kUnsigned, "unsigned"},
                                                                      {Type::kSigned, "signed"},
                                                                      {Type::kFloating, "floating"},
                                                                      {Type::kText, "text"},
                                                                      {Type::kBytes, "bytes"}}};

template <class Value, size_t N>
std::string NameOf(const std::array<std::pair<Value, std::string_view>, N>& names, Value value) {
  return std::string(std::ranges::find(names, value, &std::pair<Value, std::string_view>::first)->second);
}

template <class Value, size_t N>
bool Find(const std::array<std::pair<Value, std::string_view>, N>& names, std::string_view name, Value* value) {
  const auto found = std::ranges::find(names, name, &std::pair<Value, std::string_view>::second);
  if (found == names.end()) return false;
  *value = found->first;
  return true;
}

bool IsText(const IndexField& field) {
  return field.type == Type::kText || field.type == Type::kBytes;
}

std::array<char, sizeof(uint64_t)> BigEndian(uint64_t number) {
  std::array<char, sizeof number> bytes;
  for (size_t i = bytes.size(); i-- > 0; number >>= 8) bytes[i] = static_cast<char>(number & 0xff);
  return bytes;
}

uint64_t FromBigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

uint64_t LoadLittle(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// The lowest bytes of a number become the number that they are as a signed one.
int64_t SignExtend(uint64_t number, size_t bytes) {
  const size_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(number << unused) >> unused;
}

// Appends the value of a field that lies in `bytes`. False: they end before it.
bool AppendField(const IndexField& field, std::span<const std::byte> bytes, TupleKey* to) {
  const bool open = IsText(field) && field.bytes == 0;
  if (field.offset > bytes.size() || (!open && field.bytes > bytes.size() - field.offset)) return false;
  bytes = open ? bytes.subspan(field.offset) : bytes.subspan(field.offset, field.bytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (field.type) {
    case Type::kUnsigned:
      to->Append(LoadLittle(bytes));
      break;
    case Type::kSigned:
      to->Append(SignExtend(LoadLittle(bytes), bytes.size()));
      break;
    case Type::kFloating:
      to->Append(bytes.size() == sizeof(float)
                     ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(LoadLittle(bytes))))
                     : std::bit_cast<double>(LoadLittle(bytes)));
      break;
    case Type::kText:
      to->Append(text.substr(0, text.find('\0')));
      break;
    case Type::kBytes:
      to->Append(text);
      break;
  }
  return true;
}

bool AppendKeyField(const IndexField& field, const Key& key, TupleKey* to) {
  if (key.kind() != KeyKind::kInteger) {
    return AppendField(field, std::as_bytes(std::span(key.bytes().data(), key.size())), to);
  }
  if (field.type == Type::kSigned) {
    to->Append(key.signed_integer());
  } else {
    to->Append(key.integer());
  }
  return true;
}

// Number of the bytes of the field at the begin of `bytes`; 0: there is none.
size_t BytesOfField(std::string_view bytes) {
  const auto code = bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
  size_t size = 0;
  if (code == 0x02) {  // a string: up to its 00, which is escaped in it
    const size_t end = bytes.find('\0');
    size = end == std::string_view::npos ? 0 : end + 1;
  } else if (code >= 0x14 - 8 && code <= 0x14 + 8) {
    size = 1 + static_cast<size_t>(std::abs(code - 0x14));
  } else if (code == 0x21) {
    size = 1 + sizeof(double);
  } else if (code == 0x26 || code == 0x27) {
    size = 1;
  }
  return size <= bytes.size() ? size : 0;
}

// True if the field at the begin of `bytes` has the form that `type` gives it.
bool HasFormOf(Type type, std::string_view bytes) {
  const auto code = static_cast<uint8_t>(bytes[0]);
  if (type == Type::kText || type == Type::kBytes) return code == 0x02;
  if (type == Type::kFloating) return code == 0x21;
  return code >= 0x14 - 8 && code <= 0x14 + 8;
}

std::string TextOfField(std::string_view bytes) {
  TupleReader reader(bytes);
  std::string text;
  uint64_t number = 0;
  int64_t negative = 0;
  double floating = 0;
  if (reader.Read(&text).ok()) return Quoted(text);
  if (reader.Read(&number).ok()) return absl::StrCat(number);
  if (reader.Read(&negative).ok()) return absl::StrCat(negative);
  if (reader.Read(&floating).ok()) return absl::StrCat(floating);
  return Key(bytes).ToString();
}

// The least key that is greater than all that begin with `prefix`, which is a tuple: so there is one.
KeyCopy Behind(std::string_view prefix) {
  return KeyRange::Prefix(prefix).to->key;
}

}  // namespace

SecondaryIndex::SecondaryIndex(const Table* table, const Table* entries, const log::IndexDescription& description,
                               std::vector<IndexField> fields)
    : table_(table),
      entries_(entries),
      unique_(description.unique),
      by_function_(description.by_function),
      fields_(std::move(fields)),
      complete_(description.complete) {
  if (by_function_) payload_bytes_needed_ = kMaxPayloadBytes;
  for (const IndexField& field : fields_) {
    if (field.source != Source::kPayload) continue;
    const bool open = IsText(field) && field.bytes == 0;
    payload_bytes_needed_ =
        std::max<size_t>(payload_bytes_needed_, open ? kMaxPayloadBytes : size_t{field.offset} + field.bytes);
  }
}

const std::string& SecondaryIndex::name() const {
  return entries_->name();
}

void SecondaryIndex::SetFunction(KeyFunction function) {
  owned_function_ = std::make_unique<const KeyFunction>(std::move(function));
  function_.store(owned_function_.get(), std::memory_order_release);
}

StatusOr<bool> SecondaryIndex::AppendKey(const Key& key, std::span<const std::byte> payload, std::string* to) const {
  TupleKey tuple;
  if (by_function_) {
    std::optional<index::OwnedKey> made;
    try {
      made = (*function_.load(std::memory_order_acquire))(key, payload);
    } catch (const std::exception& thrown) {
      return absl::InternalError(absl::StrCat(Describe(), ": the key function threw: ", thrown.what()));
    } catch (...) {
      return absl::InternalError(absl::StrCat(Describe(), ": the key function threw an exception"));
    }
    if (!made.has_value()) return false;
    if (made->kind() == KeyKind::kNone) return NegativeKey();
    if (made->kind() == KeyKind::kInteger) {
      tuple.Append(made->integer());
    } else {
      tuple.Append(made->bytes());
    }
  }
  for (const IndexField& field : fields_) {
    if (field.source == Source::kKey ? !AppendKeyField(field, key, &tuple) : !AppendField(field, payload, &tuple)) {
      return false;
    }
  }
  to->append(tuple.bytes());
  return true;
}

void SecondaryIndex::AppendPrimaryKey(const Key& key, std::string* to) {
  if (key.kind() != KeyKind::kInteger) {
    to->append(key.bytes());
    return;
  }
  const auto bytes = BigEndian(key.integer());
  to->append(bytes.data(), bytes.size());
}

Status SecondaryIndex::NegativeKey() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "a negative number is no key of ", Describe(),
      by_function_ ? ": Key::Signed makes keys of such numbers" : ": Key::Tuple makes keys of such numbers"));
}

Status SecondaryIndex::EncodeKey(const Key& key, bool whole, std::string* to) const {
  if (key.kind() == KeyKind::kNone) {
    return NegativeKey();
  }
  if (key.kind() == KeyKind::kInteger) {
    to->append(TupleKey::Of(key.integer()).bytes());
  } else if (by_function_) {
    to->append(TupleKey::Of(key.bytes()).bytes());
  } else {
    to->append(key.bytes());
  }
  std::string_view rest = *to;
  const size_t most = by_function_ ? 1 : fields_.size();
  size_t fields = 0;
  for (; !rest.empty() && fields < most; ++fields) {
    const size_t bytes = BytesOfField(rest);
    if (bytes == 0 || (!by_function_ && !HasFormOf(fields_[fields].type, rest))) break;
    rest.remove_prefix(bytes);
  }
  if (rest.empty() && fields > 0 && (!whole || fields == most)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a key of ", Describe(), " is a Key::Tuple of ",
                                                 whole ? "its fields: " : "its first fields, of ", ToText(fields_)));
}

// An end may be a tuple of the first fields only: it then stands for all keys that begin so. That is also why the bytes
// of primary keys, which follow in the entries, are no concern of ranges.
StatusOr<KeyRange> SecondaryIndex::EncodeRange(const KeyRange& range) const {
  KeyRange encoded;
  if (range.from.has_value()) {
    std::string from;
    GANNET_RETURN_IF_ERROR(EncodeKey(range.from->key.view(), /*whole=*/false, &from));
    encoded.from = {range.from->included ? KeyCopy(Key(std::string_view(from))) : Behind(from), true};
  }
  if (range.to.has_value()) {
    std::string to;
    const Key end = range.to->key.view();
    const Status tuple = EncodeKey(end, /*whole=*/false, &to);
    // The end of KeyRange::Prefix is what follows a tuple, and no tuple itself.
    const bool follows = range.from.has_value() && !range.to->included && end.kind() == KeyKind::kBytes;
    if (!tuple.ok() && !follows) return tuple;
    encoded.to = {range.to->included ? Behind(to) : KeyCopy(Key(std::string_view(to))), false};
  }
  return encoded;
}

StatusOr<size_t> SecondaryIndex::SecondaryBytes(std::string_view entry_key) const {
  std::string_view rest = entry_key;
  for (size_t i = 0, n = by_function_ ? 1 : fields_.size(); i < n; ++i) {
    const size_t bytes = BytesOfField(rest);
    if (bytes == 0) {
      return absl::DataLossError(absl::StrCat(Describe(), " has an entry that is none: ", Key(entry_key).ToString()));
    }
    rest.remove_prefix(bytes);
  }
  return entry_key.size() - rest.size();
}

StatusOr<Key> SecondaryIndex::PrimaryKeyOf(std::string_view entry_key, std::span<const std::byte> entry_payload) const {
  std::string_view bytes(reinterpret_cast<const char*>(entry_payload.data()), entry_payload.size());
  if (!unique_) {
    const StatusOr<size_t> secondary = SecondaryBytes(entry_key);
    if (!secondary.ok()) return secondary.status();
    bytes = entry_key.substr(*secondary);
  }
  if (table_->options().key_kind != KeyKind::kInteger) return Key(bytes);
  if (bytes.size() != index::kIntegerKeyBytes) {
    return absl::DataLossError(absl::StrCat(Describe(), " has an entry that is none: ", Key(entry_key).ToString()));
  }
  return Key(FromBigEndian(bytes));
}

StatusOr<index::OwnedKey> SecondaryIndex::SecondaryKeyOf(std::string_view entry_key) const {
  const StatusOr<size_t> bytes = SecondaryBytes(entry_key);
  if (!bytes.ok()) return bytes.status();
  const std::string_view tuple = entry_key.substr(0, *bytes);
  if (!by_function_) return index::OwnedKey(Key(tuple));
  TupleReader reader(tuple);
  std::string text;
  uint64_t number = 0;
  if (reader.Read(&text).ok()) return index::OwnedKey(Key(std::string_view(text)));
  GANNET_RETURN_IF_ERROR(reader.Read(&number));
  return index::OwnedKey(Key(number));
}

std::string SecondaryIndex::Describe() const {
  return absl::StrCat("index '", name(), "' of table '", table_->name(), "'");
}

std::string SecondaryIndex::DescribeEntry(std::string_view entry_key) const {
  std::vector<std::string> fields;
  for (size_t i = 0, n = by_function_ ? 1 : fields_.size(); i < n; ++i) {
    const size_t bytes = BytesOfField(entry_key);
    if (bytes == 0) break;
    fields.push_back(TextOfField(entry_key.substr(0, bytes)));
    entry_key.remove_prefix(bytes);
  }
  return absl::StrCat(Describe(), ", key (", absl::StrJoin(fields, ", "), ")");
}

log::IndexDescription SecondaryIndex::Description() const {
  return {.table = table_->id(),
          .unique = unique_,
          .complete = is_complete(),
          .by_function = by_function_,
          .fields = DescribeFields(fields_)};
}

StatusOr<std::vector<IndexField>> IndexFieldsOf(const log::IndexDescription& description) {
  std::vector<IndexField> fields;
  for (const log::IndexFieldDescription& each : description.fields) {
    IndexField field{.offset = each.offset, .bytes = each.bytes};
    if (!Find(kSources, each.source, &field.source) || !Find(kTypes, each.type, &field.type)) {
      return absl::InvalidArgumentError(absl::StrCat("this program knows no field of an index with source '",
                                                     each.source, "' and type '", each.type,
                                                     "': use the version of Gannet that made it, or a newer one"));
    }
    fields.push_back(field);
  }
  return fields;
}

std::vector<log::IndexFieldDescription> DescribeFields(const std::vector<IndexField>& fields) {
  std::vector<log::IndexFieldDescription> result;
  for (const IndexField& field : fields) {
    result.push_back({.source = std::string(NameOf(kSources, field.source)),
                      .type = std::string(NameOf(kTypes, field.type)),
                      .offset = field.offset,
                      .bytes = field.bytes});
  }
  return result;
}

std::string ToText(const IndexField& field) {
  const std::string source = NameOf(kSources, field.source);
  const std::string type = NameOf(kTypes, field.type);
  if (field.bytes == 0) return absl::StrCat(type, " of ", source, " from ", field.offset, " on");
  return absl::StrCat(type, " of ", source, " at ", field.offset, ", ", field.bytes, " bytes");
}

std::string ToText(const std::vector<IndexField>& fields) {
  if (fields.empty()) return "what a function of the program returns";
  return absl::StrJoin(fields, "; ", [](std::string* to, const IndexField& field) { *to += ToText(field); });
}

Status CheckFields(const SecondaryIndexOptions& options, const Table& table) {
  const auto wrong = [&](auto&&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("index '", options.name, "' of table '", options.table, "': ", what...));
  };
  if (options.fields.empty() == (options.function == nullptr)) {
    return wrong("give either fields or a function");
  }
  const TableOptions& rows = table.options();
  for (const IndexField& field : options.fields) {
    if (field.source > Source::kKey || field.type > Type::kBytes)
      return wrong("a field is none of those that there are");
    const bool number = field.type == Type::kUnsigned || field.type == Type::kSigned;
    if (field.source == Source::kKey && rows.key_kind == KeyKind::kInteger) {
      if (number && field.offset == 0 && field.bytes == index::kIntegerKeyBytes) continue;
      return wrong("the table has integer keys, whose field is KeyNumber or SignedKeyNumber, not ", ToText(field));
    }
    if (number && (field.bytes == 0 || field.bytes > 8)) return wrong("a number has 1 to 8 bytes, not ", ToText(field));
    if (field.type == Type::kFloating && field.bytes != sizeof(float) && field.bytes != sizeof(double)) {
      return wrong("a floating number has 4 or 8 bytes, not ", ToText(field));
    }
    const size_t room = field.source == Source::kKey ? rows.max_key_bytes : table.payload_bytes();
    if (size_t{field.offset} + field.bytes > room) {
      return wrong("no row has the field ", ToText(field), ": there are at most ", room, " bytes");
    }
  }
  return absl::OkStatus();
}

size_t MostEntryKeyBytes(const SecondaryIndexOptions& options, const Table& table) {
  const TableOptions& rows = table.options();
  if (options.function != nullptr) {
    const bool has_long_keys = !options.unique && rows.max_key_bytes > index::kShortKeyBytes;
    return index::kShortKeyBytes + (has_long_keys ? rows.max_key_bytes : 0);
  }
  size_t bytes = options.unique ? 0 : rows.max_key_bytes;
  for (const IndexField& field : options.fields) {
    const size_t room = field.source == Source::kKey ? rows.max_key_bytes : table.payload_bytes();
    const size_t text = field.bytes != 0 ? field.bytes : room - field.offset;
    bytes += IsText(field) ? 2 + 2 * text : 1 + sizeof(uint64_t);  // each byte may have to be escaped
  }
  return std::max<size_t>(bytes, 1);
}

size_t LeastEntryKeyBytes(const SecondaryIndexOptions& options, const Table& table) {
  const TableOptions& rows = table.options();
  size_t bytes = options.unique || rows.key_kind != KeyKind::kInteger ? 0 : rows.max_key_bytes;
  for (const IndexField& field : options.fields) {
    bytes += field.type == Type::kBytes ? 2 + field.bytes : IsText(field) ? 2 : 1 + sizeof(uint64_t);
  }
  return std::max<size_t>(bytes, 1);
}

}  // namespace gannet::txn
