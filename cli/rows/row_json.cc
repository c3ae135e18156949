// Rows as JSON objects.
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/common/view.h"
#include "cli/rows/escaped_text.h"
#include "cli/rows/row_text.h"
#include "cli/rows/row_text_internal.h"
#include "index/rectangle.h"
#include "index/tuple_key.h"
#include "log/format/utf8.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;
using index::TupleField;
using internal::kRectangleForm;
using internal::kTextForm;
using internal::Wrong;
using txn::KeyCopy;

// Returns null if the key is none of a spatial table.
Json RectangleJson(const index::Key& key) {
  const StatusOr<index::RectangleKey> box = index::DecodeRectangleKey(key);
  if (!box.ok()) return nullptr;
  return {box->box.min_x, box->box.min_y, box->box.max_x, box->box.max_y, box->id};
}

// Returns the array of a tuple; nullopt if JSON has no value for one of the fields.
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
  return internal::RectangleKeyOf(ends, array[4].get<uint64_t>());
}

StatusOr<std::string> BytesOfJson(std::string_view form, const Json& value) {
  if (!value.is_string()) return Wrong("must be a string");
  const auto& text = value.get_ref<const std::string&>();
  if (form == kTextForm) return text;
  if (form == "hex") return ParseHex(text);
  std::string bytes;
  if (form == "base64" && absl::Base64Unescape(text, &bytes)) return bytes;
  return Wrong("must be in base64");
}

}  // namespace

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
    if (form == kTextForm && value.is_number_unsigned()) return KeyCopy(index::Key(value.get<uint64_t>()));
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
    const std::optional<std::string_view> key_form = internal::FormOf(member, "key");
    const std::optional<std::string_view> payload_form = internal::FormOf(member, "payload");
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
