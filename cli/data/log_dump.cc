#include "cli/data/log_dump.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/stop.h"
#include "cli/common/data_directory.h"
#include "cli/rows/row_text.h"
#include "index/key.h"
#include "index/tuple_text.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "log/manifest/manifest.h"
#include "log/segment/log_reader.h"
#include "nlohmann/json.hpp"
#include "txn/store/key_form.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownBytes = 32;  // of a payload, in the text form

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

uint64_t IntegerOf(std::span<const std::byte> key) {
  uint64_t swapped = 0;
  std::memcpy(&swapped, key.data(), std::min(key.size(), sizeof swapped));
  return __builtin_bswap64(swapped);
}

// The text of a key by the form that the table keeps; otherwise printable keys as text, and others in hexadecimal.
std::string KeyText(const log::TableDescription& table, std::span<const std::byte> key) {
  if (table.integer_keys) {
    const index::Key number(IntegerOf(key));
    return table.key_form == txn::NameOf(txn::KeyForm::kSigned) ? absl::StrFormat("%d", number.signed_integer())
                                                                : absl::StrFormat("%d", number.integer());
  }
  const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size());
  if (table.key_form == txn::NameOf(txn::KeyForm::kTuple)) {
    const StatusOr<std::vector<index::TupleField>> fields = index::FieldsOfTuple(text);
    if (fields.ok()) return TupleText(*fields);
  }
  const bool printable = std::ranges::all_of(text, [](unsigned char c) { return std::isprint(c) != 0; });
  return printable ? absl::StrFormat("\"%s\"", text) : "0x" + Hex(key);
}

const char* NameOf(log::TransactionPart part) {
  switch (part) {
    case log::TransactionPart::kWhole:
      return "whole";
    case log::TransactionPart::kPart:
      return "part";
    case log::TransactionPart::kDecision:
      return "decision";
  }
  return "";
}

class Dumper {
 public:
  Dumper(const NodeData* node, const DumpOptions* options, std::FILE* to) : node_(node), options_(options), to_(to) {}

  Status Take(const log::TransactionView& transaction) {
    if (transaction.epoch < options_->from_epoch) return absl::OkStatus();
    std::vector<const log::ChangeView*> changes;
    for (const log::ChangeView& change : transaction.changes) {
      if (options_->table.empty() || TableOf(change.table).name == options_->table) changes.push_back(&change);
    }
    if (!options_->table.empty() && changes.empty()) return absl::OkStatus();
    const std::string text = options_->json ? JsonLine(transaction, changes) : Text(transaction, changes);
    if (std::fwrite(text.data(), 1, text.size(), to_) != text.size()) {
      return absl::UnavailableError("cannot write to standard output");
    }
    return absl::OkStatus();
  }

 private:
  // A table that the manifest does not name gets its number as its name.
  log::TableDescription TableOf(uint16_t id) const {
    const auto& tables = node_->manifest.tables;
    const auto found = std::ranges::find(tables, id, &log::TableDescription::id);
    if (found != tables.end()) return *found;
    log::TableDescription unknown;
    unknown.name = absl::StrFormat("#%d", id);
    unknown.integer_keys = false;
    return unknown;
  }

  std::string Text(const log::TransactionView& transaction, const std::vector<const log::ChangeView*>& changes) const {
    std::string text = absl::StrFormat("node %d, %s at %d: epoch %d, closed %d, %s", node_->manifest.node,
                                       log::SegmentName(transaction.batch.segment), transaction.batch.offset,
                                       transaction.epoch, transaction.closed_epoch, NameOf(transaction.part));
    if (transaction.part != log::TransactionPart::kWhole) {
      text += absl::StrFormat(" of transaction %d of node %d", transaction.id & 0xffffffffffff,
                              log::IdNode(transaction.id));
    }
    text += "\n";
    for (const log::ChangeView* change : changes) {
      const log::TableDescription table = TableOf(change->table);
      text += absl::StrFormat("  %-6s %s %s version %d", change->kind == log::ChangeKind::kPut ? "put" : "remove",
                              table.name, KeyText(table, change->key()), change->version);
      if (change->kind == log::ChangeKind::kPut) {
        text += absl::StrFormat(", %d bytes: %s%s", change->payload.size(),
                                Hex(change->payload.first(std::min(change->payload.size(), kShownBytes))),
                                change->payload.size() > kShownBytes ? "..." : "");
      }
      text += "\n";
    }
    return text;
  }

  std::string JsonLine(const log::TransactionView& transaction,
                       const std::vector<const log::ChangeView*>& changes) const {
    Json json = {{"node", node_->manifest.node},
                 {"segment", transaction.batch.segment},
                 {"offset", transaction.batch.offset},
                 {"epoch", transaction.epoch},
                 {"closed_epoch", transaction.closed_epoch},
                 {"part", NameOf(transaction.part)},
                 {"id", transaction.id},
                 {"changes", Json::array()}};
    for (const log::ChangeView* change : changes) {
      const log::TableDescription table = TableOf(change->table);
      Json one = {{"kind", change->kind == log::ChangeKind::kPut ? "put" : "remove"}, {"table", table.name}};
      one["version"] = change->version;
      if (table.integer_keys) {
        one["key"] = IntegerOf(change->key());
      } else {
        one["key_hex"] = Hex(change->key());
      }
      if (change->kind == log::ChangeKind::kPut) one["payload_hex"] = Hex(change->payload);
      json["changes"].push_back(std::move(one));
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  const NodeData* node_;
  const DumpOptions* options_;
  std::FILE* to_;
};

}  // namespace

Status DumpLog(log::FileSystem& files, const std::string& directory, const DumpOptions& options, std::FILE* to) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  if (!options.table.empty()) GANNET_RETURN_IF_ERROR(CheckTableName("--table", options.table, nodes->front()));
  for (const NodeData& node : *nodes) {
    Dumper dumper(&node, &options, to);
    const auto& checkpoints = node.manifest.checkpoints;
    const log::ReadOptions read{.from_segment = checkpoints.empty() ? 0 : checkpoints.back().first_segment};
    const StatusOr<log::LogSummary> summary = log::ReadLog(
        files, node.path, read, [&dumper, &options](int, const log::TransactionView& transaction) -> Status {
          GANNET_RETURN_IF_ERROR(CheckStop(options.stop, "transactions were printed"));
          return dumper.Take(transaction);
        });
    // A node that has never started has no log yet.
    if (!summary.ok() && (node.manifest.started || !absl::IsNotFound(summary.status()))) return summary.status();
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
