// The columns of a CSV file of any origin that make the keys and payloads of rows (gannet import --key --payload).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/rows/row_text.h"
#include "txn/store/key_range.h"

namespace gannet::cli {

struct CsvColumn {
  enum class Type : uint8_t { kText, kInteger, kDouble, kBool };
  std::string name;
  Type type = Type::kText;
  bool typed = false;  // the flag says the type
};

// "name,year:integer": columns with the types that their fields have in a tuple key. InvalidArgument: none is named.
StatusOr<std::vector<CsvColumn>> ParseColumns(const std::string& text);

// Columns by which a file is read; both are there, or none is.
struct CsvColumns {
  std::vector<CsvColumn> key;
  std::vector<CsvColumn> payload;
  bool empty() const { return key.empty(); }
};

// Makes rows of the records of a file with this header. Values are taken as they are: a backslash is no escape.
class ColumnReader {
 public:
  // InvalidArgument: the header lacks a column, or names one twice; the table's keys cannot be made of these columns.
  static StatusOr<ColumnReader> For(const CsvColumns& columns, const RowText& text,
                                    const std::vector<std::string>& header);
  // `fields` has as many as the header. InvalidArgument says which column is wrong.
  StatusOr<RowBytesOwned> Row(const std::vector<std::string>& fields) const;

 private:
  ColumnReader(const CsvColumns& columns, const RowText& text) : columns_(columns), text_(text) {}
  StatusOr<txn::KeyCopy> KeyOf(const std::vector<std::string>& fields) const;

  CsvColumns columns_;
  RowText text_;
  bool tuple_ = false;
  std::vector<size_t> key_at_;      // of columns_.key, in the header
  std::vector<size_t> payload_at_;  // the same of columns_.payload
};

}  // namespace gannet::cli
