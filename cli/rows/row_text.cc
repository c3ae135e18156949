#include "cli/rows/row_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/common/parse.h"
#include "index/rectangle.h"
#include "index/tuple_key.h"
#include "log/format/utf8.h"
#include "nlohmann/json.hpp"
#include "txn/store/key_form.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;
using index::TupleField;
using txn::KeyCopy;

constexpr std::array<std::string_view, 4> kKeyForms = {"text", "hex", "tuple", "signed"};
constexpr std::array<std::string_view, 2> kPayloadForms = {"text", "hex"};
constexpr std::string_view kBase64 = "base64";  // of JSON only

constexpr const char* kRectangleForm = "must be a rectangle and its id, (min_x,min_y,max_x,max_y,id)";

// Abseil has a type of its own.
absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

std::string Column(std::string_view name, std::string_view form) {
  return form == kKeyForms[0] ? std::string(name) : absl::StrCat(View(name), "_", View(form));
}

// The form that a column of `name` has; nullopt: it is another column.
std::optional<std::string_view> FormOf(std::string_view column, std::string_view name) {
  if (!column.starts_with(name)) return std::nullopt;
  column.remove_prefix(name.size());
  if (column.empty()) return kKeyForms[0];
  if (column.front() != '_') return std::nullopt;
  return column.substr(1);
}

// Bytes of the UTF-8 character at the begin; 0 if there is none, or if it is a control character (a terminal obeys
// U+0080 to U+009F, too).
size_t PrintableBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return absl::ascii_iscntrl(first) ? 0 : 1;
  for (size_t bytes = 2; bytes <= 4 && bytes <= text.size(); ++bytes) {
    if (!log::IsUtf8(text.substr(0, bytes))) continue;
    return first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0 ? 0 : bytes;
  }
  return 0;
}

// `quote` is escaped, too; 0: nothing more.
std::string Escape(std::string_view bytes, char quote) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  while (!bytes.empty()) {
    const char c = bytes.front();
    size_t taken = 1;
    if (c == '\\' || (c == quote && quote != 0)) {
      text.append({'\\', c});
    } else if (const size_t printable = PrintableBytes(bytes); printable != 0) {
      text.append(bytes.substr(0, printable));
      taken = printable;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      text.append({'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'});
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text.append({'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]});
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

bool IsHex(std::string_view text) {
  return text.size() % 2 == 0 && std::ranges::all_of(text, [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

// Reads the escape behind a backslash from the begin of `rest`.
StatusOr<char> TakeEscape(std::string_view* rest) {
  constexpr const char* kEscapes = R"(is no escape: write \\, \n, \r, \t, \", \' or \xNN with two hexadecimal digits)";
  if (rest->empty()) return Wrong(absl::StrCat("'\\' at the end ", kEscapes));
  const char c = rest->front();
  rest->remove_prefix(1);
  switch (c) {
    case '\\':
    case '"':
    case '\'':
      return c;
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      break;
  }
  if (c == 'x' && rest->size() >= 2 && IsHex(rest->substr(0, 2))) {
    const std::string byte = absl::HexStringToBytes(View(rest->substr(0, 2)));
    rest->remove_prefix(2);
    return byte.front();
  }
  return Wrong(absl::StrCat("'\\", std::string(1, c), View(c == 'x' ? rest->substr(0, 2) : ""), "' ", kEscapes));
}

StatusOr<std::string> ParseHex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (IsHex(text)) return absl::HexStringToBytes(View(text));
  return Wrong("must be pairs of hexadecimal digits, such as 5a7f");
}

StatusOr<KeyCopy> ParseInteger(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return KeyCopy(index::Key(number));
  return Wrong("must be an integer key: a whole number from 0 to 18446744073709551615");
}

StatusOr<KeyCopy> ParseSigned(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return KeyCopy(index::Key::Signed(number));
  return Wrong("must be a signed key: a whole number from -9223372036854775808 to 9223372036854775807");
}

// Reads the fields of (1,"a",true,2.5).
class TupleParser {
 public:
  explicit TupleParser(std::string_view text) : rest_(text) {}

  StatusOr<index::TupleKey> Parse() {
    index::TupleKey key;
    if (!Take('(')) return Malformed();
    if (Take(')')) return rest_.empty() ? StatusOr<index::TupleKey>(key) : Malformed();
    do {
      GANNET_RETURN_IF_ERROR(TakeField(&key));
    } while (Take(','));
    if (!Take(')') || !rest_.empty()) return Malformed();
    return key;
  }

  static Status Malformed() {
    return Wrong(
        "must be a tuple such as (12,\"Main\",true,2.5): integers, strings in double quotes, booleans, doubles");
  }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  bool Take(char c) {
    SkipBlanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    SkipBlanks();
    return true;
  }

  Status TakeField(index::TupleKey* key) {
    if (rest_.starts_with('"')) {
      rest_.remove_prefix(1);  // not Take: a string may begin with blanks
      return TakeString(key);
    }
    const size_t size = std::min(rest_.find_first_of(",) "), rest_.size());
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (word == "true" || word == "false") {
      key->Append(word == "true");
      return absl::OkStatus();
    }
    const char* const end = word.data() + word.size();
    uint64_t natural = 0;
    int64_t negative = 0;
    double number = 0;
    if (const auto [at, error] = std::from_chars(word.data(), end, natural); error == std::errc() && at == end) {
      key->Append(natural);
    } else if (const auto [at2, error2] = std::from_chars(word.data(), end, negative);
               error2 == std::errc() && at2 == end) {
      key->Append(negative);
    } else if (const auto [at3, error3] = std::from_chars(word.data(), end, number);
               error3 == std::errc() && at3 == end && word.find_first_of(".enai") != std::string_view::npos) {
      key->Append(number);
    } else {
      return Malformed();
    }
    return absl::OkStatus();
  }

  Status TakeString(index::TupleKey* key) {
    std::string field;
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') {
        key->Append(field);
        return absl::OkStatus();
      }
      if (c == '\\') {
        const StatusOr<char> escaped = TakeEscape(&rest_);
        if (!escaped.ok()) return escaped.status();
        c = *escaped;
      }
      field += c;
    }
    return Malformed();
  }

  std::string_view rest_;
};

StatusOr<KeyCopy> RectangleKeyOf(const std::array<double, 4>& ends, uint64_t id) {
  const StatusOr<index::RectangleKeyBytes> bytes =
      index::EncodeRectangleKey({.min_x = ends[0], .min_y = ends[1], .max_x = ends[2], .max_y = ends[3]}, id);
  if (!bytes.ok()) return bytes.status();
  return KeyCopy(bytes->view());
}

StatusOr<KeyCopy> ParseRectangle(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return Wrong(kRectangleForm);
  text = text.substr(1, text.size() - 2);
  std::array<double, 4> ends{};
  for (double& end : ends) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return Wrong(kRectangleForm);
    if (!absl::SimpleAtod(absl::string_view(text.data(), comma), &end)) return Wrong(kRectangleForm);
    text.remove_prefix(comma + 1);
  }
  uint64_t id = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &id)) return Wrong(kRectangleForm);
  return RectangleKeyOf(ends, id);
}

std::string RectangleText(const index::RectangleKey& key) {
  const auto number = [](double end) { return index::NumberText(end, /*whole=*/true); };
  return absl::StrCat("(", number(key.box.min_x), ",", number(key.box.min_y), ",", number(key.box.max_x), ",",
                      number(key.box.max_y), ",", key.id, ")");
}

// Null if the key is none of a spatial table.
Json RectangleJson(const index::Key& key) {
  const StatusOr<index::RectangleKey> box = index::DecodeRectangleKey(key);
  if (!box.ok()) return nullptr;
  return {box->box.min_x, box->box.min_y, box->box.max_x, box->box.max_y, box->id};
}

// The array of a tuple; nullopt if JSON has no value for one of the fields.
std::optional<Json> TupleJson(const std::vector<TupleField>& fields) {
  Json array = Json::array();
  for (const TupleField& field : fields) {
    switch (field.type) {
      case TupleField::Type::kString:
        if (!log::IsUtf8(field.string)) return std::nullopt;
        array.push_back(field.string);
        break;
      case TupleField::Type::kNegative:
        array.push_back(field.negative);
        break;
      case TupleField::Type::kNatural:
        array.push_back(field.natural);
        break;
      case TupleField::Type::kDouble:
        if (!std::isfinite(field.number)) return std::nullopt;
        array.push_back(field.number);
        break;
      case TupleField::Type::kBool:
        array.push_back(field.truth);
        break;
    }
  }
  return array;
}

StatusOr<KeyCopy> TupleOfJson(const Json& array) {
  index::TupleKey key;
  if (!array.is_array()) return Wrong("must be an array of fields");
  for (const Json& field : array) {
    if (field.is_string()) {
      key.Append(field.get_ref<const std::string&>());
    } else if (field.is_boolean()) {
      key.Append(field.get<bool>());
    } else if (field.is_number_unsigned()) {
      key.Append(field.get<uint64_t>());
    } else if (field.is_number_integer()) {
      key.Append(field.get<int64_t>());
    } else if (field.is_number_float()) {
      key.Append(field.get<double>());
    } else {
      return Wrong("must be an array of strings, numbers and booleans");
    }
  }
  return KeyCopy(key);
}

StatusOr<KeyCopy> RectangleOfJson(const Json& array) {
  if (!array.is_array() || array.size() != 5 || !array[4].is_number_unsigned()) return Wrong(kRectangleForm);
  std::array<double, 4> ends{};
  for (size_t i = 0; i < ends.size(); ++i) {
    if (!array[i].is_number()) return Wrong(kRectangleForm);
    ends[i] = array[i].get<double>();
  }
  return RectangleKeyOf(ends, array[4].get<uint64_t>());
}

StatusOr<std::string> BytesOfJson(std::string_view form, const Json& value) {
  if (!value.is_string()) return Wrong("must be a string");
  const auto& text = value.get_ref<const std::string&>();
  if (form == kKeyForms[0]) return text;
  if (form == "hex") return ParseHex(text);
  std::string bytes;
  if (form == kBase64 && absl::Base64Unescape(text, &bytes)) return bytes;
  return Wrong("must be in base64");
}

// The form that the catalog has.
KeyForm FormOfKeys(const txn::Table& table) {
  switch (table.key_form()) {
    case txn::KeyForm::kTuple:
      return KeyForm::kTuple;
    case txn::KeyForm::kSigned:
      return KeyForm::kSigned;
    case txn::KeyForm::kPlain:
    case txn::KeyForm::kText:
      break;
  }
  return KeyForm::kText;
}

}  // namespace

StatusOr<KeyForm> ParseKeyForm(const std::string& text) {
  const StatusOr<size_t> choice = ParseChoice(text, kKeyForms);
  if (!choice.ok()) return choice.status();
  return static_cast<KeyForm>(*choice);
}

StatusOr<PayloadForm> ParsePayloadForm(const std::string& text) {
  const StatusOr<size_t> choice = ParseChoice(text, kPayloadForms);
  if (!choice.ok()) return choice.status();
  return static_cast<PayloadForm>(*choice);
}

std::string EscapeText(std::string_view bytes) {
  return Escape(bytes, /*quote=*/0);
}

std::string TupleText(const std::vector<TupleField>& fields) {
  return index::TupleText(fields, [](std::string_view text) { return absl::StrCat("\"", Escape(text, '"'), "\""); });
}

StatusOr<std::string> UnescapeText(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      const StatusOr<char> escaped = TakeEscape(&text);
      if (!escaped.ok()) return escaped.status();
      c = *escaped;
    }
    bytes += c;
  }
  return bytes;
}

StatusOr<RowText> RowText::For(const txn::Table& table, const RowForms& forms) {
  KeyForm keys = forms.keys.value_or(FormOfKeys(table));
  const index::KeyKind kind = table.options().key_kind;
  const bool spatial = table.index_traits().spatial;
  const bool integer = kind == index::KeyKind::kInteger;
  if (keys == KeyForm::kSigned && !integer) {
    return Wrong(absl::StrCat("signed: the keys of table '", table.name(), "' are bytes; choose text, hex or tuple"));
  }
  if (keys == KeyForm::kTuple && (integer || spatial)) {
    return Wrong(absl::StrCat("tuple: the keys of table '", table.name(), "' are ",
                              integer ? "integers; choose text or signed" : "rectangles; choose text"));
  }
  // These have one form each.
  if (spatial || (integer && keys == KeyForm::kHex)) keys = KeyForm::kText;
  return RowText(kind, spatial, keys, forms.payloads);
}

std::string RowText::KeyText(const index::Key& key) const {
  if (kind_ == index::KeyKind::kInteger) {
    return keys_ == KeyForm::kSigned ? absl::StrCat(key.signed_integer()) : absl::StrCat(key.integer());
  }
  if (spatial_) {
    const StatusOr<index::RectangleKey> rectangle = index::DecodeRectangleKey(key);
    if (rectangle.ok()) return RectangleText(*rectangle);
  }
  if (keys_ == KeyForm::kTuple) {
    const StatusOr<std::vector<TupleField>> fields = index::FieldsOfTuple(key.bytes());
    if (fields.ok()) return TupleText(*fields);
  }
  if (keys_ == KeyForm::kText) return EscapeText(key.bytes());
  return absl::BytesToHexString(View(key.bytes()));
}

std::string RowText::PayloadText(std::string_view payload) const {
  return payloads_ == PayloadForm::kHex ? absl::BytesToHexString(View(payload)) : EscapeText(payload);
}

StatusOr<KeyCopy> RowText::ParseKey(std::string_view text) const {
  if (kind_ == index::KeyKind::kInteger) {
    return keys_ == KeyForm::kSigned ? ParseSigned(text) : ParseInteger(text);
  }
  if (spatial_) return ParseRectangle(text);
  if (keys_ == KeyForm::kTuple && text.starts_with('(')) {
    const StatusOr<index::TupleKey> tuple = TupleParser(text).Parse();
    if (!tuple.ok()) return tuple.status();
    return KeyCopy(*tuple);
  }
  // A key that is no tuple is written in hex among tuples.
  const StatusOr<std::string> bytes = keys_ == KeyForm::kText ? UnescapeText(text) : ParseHex(text);
  if (!bytes.ok()) return keys_ == KeyForm::kTuple ? TupleParser::Malformed() : bytes.status();
  return KeyCopy(index::Key(*bytes));
}

StatusOr<std::string> RowText::ParsePayload(std::string_view text) const {
  return payloads_ == PayloadForm::kHex ? ParseHex(text) : UnescapeText(text);
}

std::string RowText::KeyColumn() const {
  return Column("key", kKeyForms[static_cast<size_t>(keys_)]);
}

std::string RowText::PayloadColumn() const {
  return Column("payload", kPayloadForms[static_cast<size_t>(payloads_)]);
}

StatusOr<RowText> RowText::WithColumns(std::string_view key_column, std::string_view payload_column) const {
  const std::optional<std::string_view> keys = FormOf(key_column, "key");
  const std::optional<std::string_view> payloads = FormOf(payload_column, "payload");
  RowText result = *this;
  const StatusOr<KeyForm> key_form = ParseKeyForm(std::string(keys.value_or("none")));
  const StatusOr<PayloadForm> payload_form = ParsePayloadForm(std::string(payloads.value_or("none")));
  const bool integer = kind_ == index::KeyKind::kInteger;
  // The key column of integers and rectangles is written in one way only.
  const bool fits = key_form.ok() && (*key_form == KeyForm::kText || (integer && *key_form == KeyForm::kSigned) ||
                                      (!integer && !spatial_ && *key_form != KeyForm::kSigned));
  if (!fits || !payload_form.ok()) {
    return Wrong(absl::StrCat("the columns must be ",
                              integer    ? "key or key_signed"
                              : spatial_ ? "key"
                                         : "key, key_hex or key_tuple",
                              ", and payload or payload_hex; these are '", EscapeText(key_column), "' and '",
                              EscapeText(payload_column), "'"));
  }
  result.keys_ = *key_form;
  result.payloads_ = *payload_form;
  return result;
}

Json RowText::ToJson(const index::Key& key, std::string_view payload) const {
  Json row;
  if (kind_ == index::KeyKind::kInteger) {
    if (keys_ == KeyForm::kSigned) {
      row[KeyColumn()] = key.signed_integer();
    } else {
      row[KeyColumn()] = key.integer();
    }
  } else if (spatial_) {
    row[KeyColumn()] = RectangleJson(key);
  } else if (keys_ == KeyForm::kText) {
    if (log::IsUtf8(key.bytes())) {
      row["key"] = key.bytes();
    } else {
      row["key_base64"] = absl::Base64Escape(View(key.bytes()));
    }
  } else {
    const StatusOr<std::vector<TupleField>> fields =
        keys_ == KeyForm::kTuple ? index::FieldsOfTuple(key.bytes()) : Wrong("in hex");
    const std::optional<Json> tuple = fields.ok() ? TupleJson(*fields) : std::nullopt;
    if (tuple.has_value()) {
      row[KeyColumn()] = *tuple;
    } else {
      row["key_hex"] = absl::BytesToHexString(View(key.bytes()));
    }
  }
  if (payloads_ == PayloadForm::kHex) {
    row["payload_hex"] = absl::BytesToHexString(View(payload));
  } else if (log::IsUtf8(payload)) {
    row["payload"] = payload;
  } else {
    row["payload_base64"] = absl::Base64Escape(View(payload));
  }
  return row;
}

StatusOr<KeyCopy> RowText::KeyOfJson(std::string_view form, const Json& value) const {
  if (kind_ == index::KeyKind::kInteger) {
    if (form == "signed" && value.is_number_integer() &&
        (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX})) {
      return KeyCopy(index::Key::Signed(value.get<int64_t>()));
    }
    if (form == kKeyForms[0] && value.is_number_unsigned()) return KeyCopy(index::Key(value.get<uint64_t>()));
    return Wrong(form == "signed" ? "must be a whole number from -2^63 to 2^63 - 1"
                                  : "must be a whole number from 0 to 2^64 - 1");
  }
  if (spatial_) return RectangleOfJson(value);
  if (form == "tuple") return TupleOfJson(value);
  const StatusOr<std::string> bytes = BytesOfJson(form, value);
  if (!bytes.ok()) return bytes.status();
  return KeyCopy(index::Key(*bytes));
}

StatusOr<RowBytesOwned> RowText::FromJson(const Json& row) const {
  if (!row.is_object()) return Wrong("must be a JSON object with a key and a payload");
  const auto named = [](const std::string& member, const Status& wrong) {
    return Wrong(absl::StrCat("\"", member, "\" ", wrong.message()));
  };
  RowBytesOwned result;
  bool has_key = false;
  bool has_payload = false;
  for (const auto& [member, value] : row.items()) {
    const std::optional<std::string_view> key_form = FormOf(member, "key");
    const std::optional<std::string_view> payload_form = FormOf(member, "payload");
    if (key_form.has_value() && !has_key) {
      StatusOr<KeyCopy> key = KeyOfJson(*key_form, value);
      if (!key.ok()) return named(member, key.status());
      result.key = *std::move(key);
      has_key = true;
    } else if (payload_form.has_value() && !has_payload) {
      StatusOr<std::string> payload = BytesOfJson(*payload_form, value);
      if (!payload.ok()) return named(member, payload.status());
      result.payload = *std::move(payload);
      has_payload = true;
    } else {
      return Wrong(absl::StrCat("\"", member, "\" is one member too many: a row has one key and one payload"));
    }
  }
  if (!has_key || !has_payload) return Wrong(absl::StrCat("has no \"", has_key ? "payload" : "key", "\""));
  return result;
}

}  // namespace gannet::cli
