#include "cli/rows/row_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/common/parse.h"
#include "cli/common/view.h"
#include "cli/rows/escaped_text.h"
#include "cli/rows/row_text_internal.h"
#include "index/rectangle.h"
#include "index/tuple_key.h"
#include "txn/store/key_form.h"

namespace gannet::cli {
namespace {

using index::TupleField;
using internal::kRectangleForm;
using internal::Wrong;
using txn::KeyCopy;

constexpr std::array<std::string_view, 4> kKeyForms = {internal::kTextForm, "hex", "tuple", "signed"};
constexpr std::array<std::string_view, 2> kPayloadForms = {internal::kTextForm, "hex"};

std::string Column(std::string_view name, std::string_view form) {
  return form == internal::kTextForm ? std::string(name) : absl::StrCat(View(name), "_", View(form));
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
  return internal::RectangleKeyOf(ends, id);
}

std::string RectangleText(const index::RectangleKey& key) {
  const auto number = [](double end) { return index::NumberText(end, /*whole=*/true); };
  return absl::StrCat("(", number(key.box.min_x), ",", number(key.box.min_y), ",", number(key.box.max_x), ",",
                      number(key.box.max_y), ",", key.id, ")");
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

namespace internal {

std::optional<std::string_view> FormOf(std::string_view column, std::string_view name) {
  if (!column.starts_with(name)) return std::nullopt;
  column.remove_prefix(name.size());
  if (column.empty()) return kTextForm;
  if (column.front() != '_') return std::nullopt;
  return column.substr(1);
}

StatusOr<KeyCopy> RectangleKeyOf(const std::array<double, 4>& ends, uint64_t id) {
  const StatusOr<index::RectangleKeyBytes> bytes =
      index::EncodeRectangleKey({.min_x = ends[0], .min_y = ends[1], .max_x = ends[2], .max_y = ends[3]}, id);
  if (!bytes.ok()) return bytes.status();
  return KeyCopy(bytes->view());
}

}  // namespace internal

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

std::string TupleText(const std::vector<TupleField>& fields) {
  return index::TupleText(fields,
                          [](std::string_view text) { return absl::StrCat("\"", EscapeText(text, '"'), "\""); });
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
  const std::optional<std::string_view> keys = internal::FormOf(key_column, "key");
  const std::optional<std::string_view> payloads = internal::FormOf(payload_column, "payload");
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

}  // namespace gannet::cli
