#include "cli/rows/csv.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/quantity.h"

namespace gannet::cli {
namespace {

Status TooLong() {
  return absl::InvalidArgumentError(absl::StrCat("is longer than ", FormatBytes(kMostRecordBytes),
                                                 "; is it the right file, with all quotes closed?"));
}

Status CheckRead(std::FILE* from) {
  if (std::ferror(from) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot be read: ", std::strerror(errno)));
}

}  // namespace

std::string CsvField(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll({text.data(), text.size()}, {{"\"", "\"\""}}), "\"");
}

int CsvReader::GetBehindMark() {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (!begun_) {
    begun_ = true;
    size_t same = 0;
    int c = std::getc(from_);
    while (c == static_cast<unsigned char>(kMark[same]) && ++same < kMark.size()) c = std::getc(from_);
    if (same < kMark.size()) {
      if (c != EOF) std::ungetc(c, from_);
      first_bytes_ = kMark.substr(0, same);
    }
  }
  if (first_bytes_.empty()) return std::getc(from_);
  const auto c = static_cast<unsigned char>(first_bytes_.front());
  first_bytes_.remove_prefix(1);
  return c;
}

int CsvReader::Get() {
  const int c = GetBehindMark();
  if (c == '\n') ++lines_read_;
  if (c != EOF) ++record_bytes_;
  return c;
}

StatusOr<bool> CsvReader::Next(std::vector<std::string>* fields) {
  for (;;) {
    StatusOr<bool> there = NextRecord(fields);
    if (!there.ok() || !*there) return there;
    if (fields->size() > 1 || !fields->front().empty()) return true;
  }
}

StatusOr<bool> CsvReader::NextRecord(std::vector<std::string>* fields) {
  enum class Place : uint8_t { kBegin, kPlain, kQuoted, kBehindQuote };
  Place place = Place::kBegin;
  line_ = lines_read_ + 1;
  record_bytes_ = 0;
  fields->assign(1, "");
  for (;;) {
    const int c = Get();
    if (record_bytes_ > kMostRecordBytes) return TooLong();
    if (c == EOF) {
      GANNET_RETURN_IF_ERROR(CheckRead(from_));
      if (place == Place::kQuoted) return absl::InvalidArgumentError("has a quote that is not closed");
      return record_bytes_ > 0;
    }
    std::string& field = fields->back();
    if (place == Place::kQuoted) {
      if (c == '"') {
        place = Place::kBehindQuote;
      } else {
        field += static_cast<char>(c);
      }
    } else if (c == '"' && place == Place::kBegin) {
      place = Place::kQuoted;
    } else if (c == '"' && place == Place::kBehindQuote) {
      field += '"';
      place = Place::kQuoted;
    } else if (c == ',') {
      fields->emplace_back();
      place = Place::kBegin;
    } else if (c == '\n') {
      return true;
    } else if (c == '\r') {
      const int next = Get();
      if (next == '\n') return true;
      if (next == EOF && std::feof(from_) != 0) return true;
      return absl::InvalidArgumentError("has a carriage return that ends no line; put the field in quotes");
    } else if (place == Place::kBehindQuote) {
      return absl::InvalidArgumentError("has text behind a closing quote; a quote in a field is written twice");
    } else if (c == '"') {
      return absl::InvalidArgumentError(
          "has a quote in a field that is not in quotes; put the field in quotes, and "
          "write the quote twice");
    } else {
      field += static_cast<char>(c);
      place = Place::kPlain;
    }
  }
}

StatusOr<bool> ReadLine(std::FILE* from, std::string* line) {
  line->clear();
  for (;;) {
    const int c = std::getc(from);
    if (c == EOF) {
      GANNET_RETURN_IF_ERROR(CheckRead(from));
      return !line->empty();
    }
    if (c == '\n') return true;
    if (line->size() >= kMostRecordBytes) return TooLong();
    *line += static_cast<char>(c);
  }
}

}  // namespace gannet::cli
