#include "cli/rows/row_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/rows/escaped_text.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {

std::optional<RowFormat> FormatOfName(std::string_view path) {
  if (path.ends_with(".json") || path.ends_with(".jsonl")) return RowFormat::kJson;
  if (path.ends_with(".csv")) return RowFormat::kCsv;
  return std::nullopt;
}

Status RowWriter::Header() {
  if (format_ != RowFormat::kCsv) return absl::OkStatus();
  return Put(absl::StrCat(text_.KeyColumn(), ",", text_.PayloadColumn(), "\n"));
}

Status RowWriter::Row(const index::Key& key, std::string_view payload) {
  ++rows_;
  switch (format_) {
    case RowFormat::kLines:
      return Put(absl::StrCat(text_.KeyText(key), "\t", text_.PayloadText(payload), "\n"));
    case RowFormat::kCsv:
      return Put(absl::StrCat(CsvField(text_.KeyText(key)), ",", CsvField(text_.PayloadText(payload)), "\n"));
    case RowFormat::kJson:
      break;
  }
  return Put(text_.ToJson(key, payload).dump() + "\n");
}

Status RowWriter::Put(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), to_) == text.size()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write row ", rows_, ": ", std::strerror(errno)));
}

StatusOr<bool> RowReader::Next(RowBytesOwned* row) {
  return format_ == RowFormat::kCsv ? NextOfCsv(row) : NextOfJson(row);
}

Status RowReader::ReadHeader() {
  header_read_ = true;
  const StatusOr<bool> there = csv_.Next(&fields_);
  line_ = csv_.line();
  if (!there.ok()) return there.status();
  if (!*there) return absl::InvalidArgumentError("must name the columns, such as key,payload; the file is empty");
  header_size_ = fields_.size();
  if (!columns_.empty()) {
    StatusOr<ColumnReader> reader = ColumnReader::For(columns_, text_, fields_);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return absl::OkStatus();
  }
  if (fields_.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("must name two columns, such as key,payload; it has ", fields_.size(), ", the first one is '",
                     EscapeText(fields_[0]), "'; --key and --payload say which columns of another file make a row"));
  }
  key_at_ = fields_[0].starts_with("payload") ? 1 : 0;
  StatusOr<RowText> text = text_.WithColumns(fields_[key_at_], fields_[1 - key_at_]);
  if (!text.ok()) return text.status();
  text_ = *std::move(text);
  return absl::OkStatus();
}

StatusOr<bool> RowReader::NextOfCsv(RowBytesOwned* row) {
  if (!header_read_) GANNET_RETURN_IF_ERROR(ReadHeader());
  const StatusOr<bool> there = csv_.Next(&fields_);
  line_ = csv_.line();
  if (!there.ok() || !*there) return there;
  if (fields_.size() != header_size_) {
    return absl::InvalidArgumentError(absl::StrCat("has ", fields_.size(), " fields, not ",
                                                   header_size_ == 2 ? "two" : absl::StrCat(header_size_),
                                                   "; a comma in a field needs quotes around the field"));
  }
  if (reader_.has_value()) {
    StatusOr<RowBytesOwned> read = reader_->Row(fields_);
    if (!read.ok()) return read.status();
    *row = *std::move(read);
    return true;
  }
  StatusOr<txn::KeyCopy> key = text_.ParseKey(fields_[key_at_]);
  if (!key.ok()) return absl::InvalidArgumentError(absl::StrCat("the key ", key.status().message()));
  StatusOr<std::string> payload = text_.ParsePayload(fields_[1 - key_at_]);
  if (!payload.ok()) return absl::InvalidArgumentError(absl::StrCat("the payload ", payload.status().message()));
  row->key = *std::move(key);
  row->payload = *std::move(payload);
  return true;
}

StatusOr<bool> RowReader::NextOfJson(RowBytesOwned* row) {
  do {
    ++line_;
    const StatusOr<bool> there = ReadLine(from_, &json_);
    if (!there.ok() || !*there) return there;
  } while (std::ranges::all_of(json_, [](unsigned char c) { return absl::ascii_isspace(c); }));
  std::vector<std::string> members;
  std::string twice;  // of two members with one name, the parser keeps the last
  const auto note = [&](int depth, nlohmann::ordered_json::parse_event_t event, const nlohmann::ordered_json& name) {
    if (depth != 1 || event != nlohmann::ordered_json::parse_event_t::key) return true;
    if (std::ranges::find(members, name.get<std::string>()) != members.end()) twice = name.get<std::string>();
    members.push_back(name.get<std::string>());
    return true;
  };
  const auto json = nlohmann::ordered_json::parse(json_, note, /*allow_exceptions=*/false);
  if (!twice.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", EscapeText(twice), "\" is there twice"));
  }
  if (json.is_discarded()) return absl::InvalidArgumentError("is no JSON; each line must be one object");
  StatusOr<RowBytesOwned> read = text_.FromJson(json);
  if (!read.ok()) return read.status();
  *row = *std::move(read);
  return true;
}

}  // namespace gannet::cli
