// Comma-separated values (RFC 4180).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gannet::cli {

// A longer record, or line of a file, is refused: its quote was never closed, or the file is another one.
inline constexpr size_t kMostRecordBytes = size_t{1} << 20;

// `text`, in quotes if it needs them.
std::string CsvField(std::string_view text);

// Reads records from a stream, which must outlive it. Lines may end with CR LF or LF. Empty lines are left out, and so
// is the mark of UTF-8 (EF BB BF) with which spreadsheets begin a file.
class CsvReader {
 public:
  explicit CsvReader(std::FILE* from) : from_(from) {}

  // False: there is no further record. InvalidArgument says what is wrong, for instance with a quote; Unavailable: the
  // stream cannot be read. No further call then.
  StatusOr<bool> Next(std::vector<std::string>* fields);
  // Number of the line with which the last record began, from 1.
  uint64_t line() const { return line_; }

 private:
  StatusOr<bool> NextRecord(std::vector<std::string>* fields);
  int Get();
  // The next byte; the mark of UTF-8 is left out.
  int GetBehindMark();

  std::FILE* const from_;
  uint64_t line_ = 0;
  uint64_t lines_read_ = 0;
  size_t record_bytes_ = 0;
  bool begun_ = false;
  std::string_view first_bytes_;  // that are to be read again
};

// Reads a line without its end. False: there is none. Errors as from CsvReader::Next.
StatusOr<bool> ReadLine(std::FILE* from, std::string* line);

}  // namespace gannet::cli
