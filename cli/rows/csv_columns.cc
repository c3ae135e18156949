#include "cli/rows/csv_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/rows/csv.h"
#include "cli/rows/escaped_text.h"
#include "index/tuple_key.h"

namespace gannet::cli {
namespace {

constexpr std::array<const char*, 4> kTypes = {"text", "integer", "double", "bool"};  // by CsvColumn::Type

StatusOr<size_t> PlaceOf(const std::string& name, const std::vector<std::string>& header) {
  const auto at = std::ranges::find(header, name);
  if (at == header.end()) {
    const std::string types =
        absl::StrCat(absl::StrJoin(kTypes.begin(), kTypes.end() - 1, ", "), " and ", kTypes.back());
    return absl::InvalidArgumentError(
        absl::StrCat("must name a column '", EscapeText(name), "'",
                     name.find(':') == std::string::npos ? "" : "; the types of columns are " + types));
  }
  if (std::find(at + 1, header.end(), name) != header.end()) {
    return absl::InvalidArgumentError(absl::StrCat("names '", EscapeText(name), "' twice"));
  }
  return static_cast<size_t>(at - header.begin());
}

Status Wrong(const CsvColumn& column, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat("column '", EscapeText(column.name), "' ", must));
}

Status AppendField(const CsvColumn& column, const std::string& value, index::TupleKey* key) {
  switch (column.type) {
    case CsvColumn::Type::kText:
      key->Append(value);
      return absl::OkStatus();
    case CsvColumn::Type::kInteger:
      if (uint64_t natural = 0; absl::SimpleAtoi(value, &natural)) {
        key->Append(natural);
      } else if (int64_t number = 0; absl::SimpleAtoi(value, &number)) {
        key->Append(number);
      } else {
        return Wrong(column, "must be a whole number from -2^63 to 2^64 - 1");
      }
      return absl::OkStatus();
    case CsvColumn::Type::kDouble: {
      double number = 0;
      if (!absl::SimpleAtod(value, &number)) return Wrong(column, "must be a number");
      key->Append(number);
      return absl::OkStatus();
    }
    case CsvColumn::Type::kBool:
      if (value != "true" && value != "false") return Wrong(column, "must be true or false");
      key->Append(value == "true");
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<CsvColumn>> ParseColumns(const std::string& text) {
  std::vector<CsvColumn> columns;
  for (const absl::string_view each : absl::StrSplit(text, ',')) {
    CsvColumn column{.name = std::string(each)};
    if (const size_t colon = column.name.rfind(':'); colon != std::string::npos) {
      const auto type = std::ranges::find(kTypes, std::string_view(column.name).substr(colon + 1));
      if (type != kTypes.end()) {
        column.type = static_cast<CsvColumn::Type>(type - kTypes.begin());
        column.typed = true;
        column.name.resize(colon);
      }
    }
    if (column.name.empty()) return absl::InvalidArgumentError("must be names of columns, such as name,year:integer");
    columns.push_back(std::move(column));
  }
  return columns;
}

StatusOr<ColumnReader> ColumnReader::For(const CsvColumns& columns, const RowText& text,
                                         const std::vector<std::string>& header) {
  ColumnReader reader(columns, text);
  const bool numbers = text.has_integer_keys();
  // One column is the key itself, unless the keys of the table are tuples.
  reader.tuple_ =
      !numbers && (columns.key.size() > 1 || columns.key.front().typed || text.key_form() == KeyForm::kTuple);
  if (text.has_rectangles() || (numbers && columns.key.size() > 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--key: keys that are ", numbers ? "integers" : "rectangles", " are not made of several columns"));
  }
  for (const auto& [named, places] :
       {std::pair(&columns.key, &reader.key_at_), {&columns.payload, &reader.payload_at_}}) {
    for (const CsvColumn& column : *named) {
      const StatusOr<size_t> place = PlaceOf(column.name, header);
      if (!place.ok()) return place.status();
      places->push_back(*place);
    }
  }
  return reader;
}

StatusOr<txn::KeyCopy> ColumnReader::KeyOf(const std::vector<std::string>& fields) const {
  if (!tuple_) {
    const std::string& value = fields[key_at_.front()];
    if (!text_.has_integer_keys()) return txn::KeyCopy(index::Key(std::string_view(value)));
    StatusOr<txn::KeyCopy> key = text_.ParseKey(value);
    if (!key.ok()) return Wrong(columns_.key.front(), key.status().message());
    return key;
  }
  index::TupleKey key;
  for (size_t i = 0; i < key_at_.size(); ++i) {
    GANNET_RETURN_IF_ERROR(AppendField(columns_.key[i], fields[key_at_[i]], &key));
  }
  return txn::KeyCopy(key);
}

StatusOr<RowBytesOwned> ColumnReader::Row(const std::vector<std::string>& fields) const {
  StatusOr<txn::KeyCopy> key = KeyOf(fields);
  if (!key.ok()) return key.status();
  RowBytesOwned row{.key = *std::move(key), .payload = {}};
  if (payload_at_.size() == 1) {
    row.payload = fields[payload_at_.front()];
    return row;
  }
  for (size_t i = 0; i < payload_at_.size(); ++i) {
    absl::StrAppend(&row.payload, i == 0 ? "" : ",", CsvField(fields[payload_at_[i]]));
  }
  return row;
}

}  // namespace gannet::cli
