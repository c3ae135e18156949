// Files of rows: CSV (RFC 4180) with a header that names the forms of the columns, or one JSON object per line
// (row_text.h). What RowWriter writes, RowReader reads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/rows/csv.h"
#include "cli/rows/csv_columns.h"
#include "cli/rows/row_text.h"
#include "index/key.h"

namespace gannet::cli {

enum class RowFormat : uint8_t {
  kLines,  // for people: key, tab, payload; written only
  kCsv,
  kJson,
};

// The format that the name of a file says: .csv, .json or .jsonl. Nothing: it says none.
std::optional<RowFormat> FormatOfName(std::string_view path);

class RowWriter {
 public:
  // `to` must outlive it.
  RowWriter(const RowText& text, RowFormat format, std::FILE* to) : text_(text), format_(format), to_(to) {}

  // Unavailable: `to` cannot be written. Header comes first; it writes nothing unless the format has one.
  Status Header();
  Status Row(const index::Key& key, std::string_view payload);
  uint64_t rows() const { return rows_; }

 private:
  Status Put(const std::string& text);

  const RowText text_;
  const RowFormat format_;
  std::FILE* const to_;
  uint64_t rows_ = 0;
};

class RowReader {
 public:
  // `text` says the table; the file says the forms, unless `columns` of CSV do. `from` must outlive it. Not kLines.
  RowReader(const RowText& text, RowFormat format, std::FILE* from, CsvColumns columns = {})
      : text_(text), format_(format), columns_(std::move(columns)), from_(from), csv_(from) {}

  // False: there is no further row. InvalidArgument says what is wrong with line().
  StatusOr<bool> Next(RowBytesOwned* row);
  // The line of the last row, from 1.
  uint64_t line() const { return line_; }

 private:
  StatusOr<bool> NextOfCsv(RowBytesOwned* row);
  StatusOr<bool> NextOfJson(RowBytesOwned* row);
  Status ReadHeader();

  RowText text_;
  const RowFormat format_;
  const CsvColumns columns_;
  std::FILE* const from_;
  CsvReader csv_;
  std::vector<std::string> fields_;
  std::string json_;
  uint64_t line_ = 0;
  bool header_read_ = false;
  size_t header_size_ = 2;
  size_t key_at_ = 0;                   // of the two columns; the payload is the other one
  std::optional<ColumnReader> reader_;  // of others
};

}  // namespace gannet::cli
