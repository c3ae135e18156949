#include "cli/table_export.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/stop.h"
#include "cli/data_directory.h"
#include "index/index.h"
#include "index/record_header.h"
#include "log/utf8.h"
#include "nlohmann/json.hpp"
#include "rdma/versioned.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::cli {
namespace {

std::string Format(ByteText format, std::string_view bytes) {
  const absl::string_view text(bytes.data(), bytes.size());
  if (format == ByteText::kHex) return absl::BytesToHexString(text);
  return log::IsUtf8(bytes) ? absl::Utf8SafeCHexEscape(text) : absl::CHexEscape(text);
}

// A field of RFC 4180: quoted if necessary.
std::string Field(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

class RowWriter {
 public:
  RowWriter(const ExportOptions* options, std::FILE* to) : options_(options), to_(to) {}

  Status Header() { return options_->json ? absl::OkStatus() : Put("key,payload\n"); }

  Status Row(const index::Key& key, std::string_view payload) {
    GANNET_RETURN_IF_ERROR(CheckStop(options_->recover.stop, "rows were written"));
    ++rows_;
    const std::string value = Format(options_->payloads, payload);
    const bool integer = key.kind() == index::KeyKind::kInteger;
    const std::string name = integer ? absl::StrCat(key.integer()) : Format(options_->keys, key.bytes());
    if (!options_->json) return Put(absl::StrCat(Field(name), ",", Field(value), "\n"));
    nlohmann::ordered_json json;
    if (integer) {
      json["key"] = key.integer();
    } else {
      json[options_->keys == ByteText::kHex ? "key_hex" : "key"] = name;
    }
    json[options_->payloads == ByteText::kHex ? "payload_hex" : "payload"] = value;
    return Put(json.dump() + "\n");
  }

  uint64_t rows() const { return rows_; }

 private:
  Status Put(const std::string& text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), to_) == text.size()) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot write row ", rows_, ": ", std::strerror(errno)));
  }

  const ExportOptions* options_;
  std::FILE* to_;
  uint64_t rows_ = 0;
};

// No other thread uses the database: every record in the index is committed and unlocked.
Status WriteRows(txn::Database& database, const txn::Table& table, RowWriter* writer) {
  const std::byte* memory = database.node().memory().data();
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> addresses;
  std::vector<std::byte> payload;
  for (bool more = true; more;) {
    addresses.clear();
    more = table.local_index().Walk(&position, &addresses);
    for (const rdma::GlobalAddress address : addresses) {
      const std::byte* record = memory + address.offset();
      const index::RecordMeta meta = index::LoadMeta(record);
      payload.resize(meta.payload_bytes);
      uint64_t state = 0;
      if (!rdma::TryReadLocal(record, index::PayloadDataOffset(meta.key_bytes), payload, &state)) {
        return absl::InternalError(absl::StrCat("a recovered record of table '", table.name(), "' is locked"));
      }
      if (txn::IsAbsent(state)) continue;
      const index::OwnedKey key = index::LoadKey(record, table.options().key_kind);
      const std::string_view bytes(reinterpret_cast<const char*>(payload.data()), payload.size());
      if (Status written = writer->Row(key.view(), bytes); !written.ok()) return written;
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status ExportTable(log::FileSystem& files, const std::string& directory, const ExportOptions& options, std::FILE* to,
                   uint64_t* rows) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  GANNET_RETURN_IF_ERROR(CheckTableName("--table", options.table, nodes->front()));
  RowWriter writer(&options, to);
  GANNET_RETURN_IF_ERROR(writer.Header());
  bool written = false;
  const auto visit = [&](txn::Database& database) -> Status {
    const txn::Table* table = database.FindTable(options.table);
    if (table->options().placement.replicated && written) return absl::OkStatus();
    written = true;
    return WriteRows(database, *table, &writer);
  };
  const auto recovered = RecoverDataDirectory(files, directory, options.recover, visit);
  *rows = writer.rows();
  return recovered.status();
}

}  // namespace gannet::cli
