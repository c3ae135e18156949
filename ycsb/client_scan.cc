// Scans of Client.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "ycsb/client.h"
#include "ycsb/client_internal.h"
#include "ycsb/messages.h"
#include "ycsb/record.h"

namespace gannet::ycsb {

coro::Task<Status> Client::Scan(uint64_t from, size_t limit, std::optional<uint64_t> last) {
  scanned_keys_.clear();
  scanned_values_.clear();
  const int servers = connection_->keys().servers();
  for (int server = connection_->keys().OwnerOf(from); server < servers && scanned_keys_.size() < limit; ++server) {
    const size_t missing = limit - scanned_keys_.size();
    const uint64_t to = last.value_or(UINT64_MAX);
    const Status scanned = co_await ScanServer(static_cast<rdma::NodeId>(server), from, to, missing);
    GANNET_CO_RETURN_IF_ERROR(scanned);
    if (last.has_value()) break;
  }
  co_return absl::OkStatus();
}

txn::PathChoice Client::ChooseForScan(const index::ScanRange& range, rdma::NodeId server) {
  txn::OffloadChooser& chooser = connection_->chooser();
  txn::AskedAccess asked{.kind = txn::AccessKind::kScan, .owner = server};
  const bool is_kept = connection_->keeps_leaves();
  if (paths_.reads != Path::kAdaptive || is_kept) {
    const txn::AccessPath path = is_kept ? txn::AccessPath::kOneSided : Fixed(paths_.reads);
    return chooser.Fixed(asked.kind, asked.table, asked.owner, path);
  }
  asked.reads = connection_->index(server).Estimate(range);
  const double rows = asked.reads.keys;
  asked.reads += {.postings = 1, .reads = rows, .bytes = rows * static_cast<double>(image_.size())};
  asked.answer_bytes = rows * static_cast<double>(sizeof(uint64_t) + value_.size());
  return chooser.Choose(asked, connection_->LoadOf(server), connection_->random());
}

coro::Task<Status> Client::ScanServer(rdma::NodeId server, uint64_t from, uint64_t to, size_t limit) {
  const index::ScanRange range{.from = from, .to = to, .limit = limit};
  const txn::PathChoice choice = ChooseForScan(range, server);
  txn::MeasuredAccess measured(channel_, &connection_->chooser(), choice.measured);
  Status scanned;
  if (choice.path == txn::AccessPath::kOneSided) {
    scanned = co_await ScanByReads(server, range);
  } else {
    scanned = co_await ScanByCall(server, from, limit);
  }
  measured.End(scanned, choice);
  co_return scanned;
}

coro::Task<Status> Client::ScanByReads(rdma::NodeId server, const index::ScanRange& range) {
  const InEpoch in(connection_);
  found_.Clear();
  const Status scanned = co_await connection_->index(server).Scan(range, &found_);
  GANNET_CO_RETURN_IF_ERROR(scanned);
  if (connection_->values_in_entries()) {
    for (const index::Entry& entry : found_.entries) {
      scanned_keys_.push_back(entry.key.integer());
      scanned_values_.resize(scanned_keys_.size() * value_.size());
      CopyValue(entry.record, std::span(scanned_values_).last(value_.size()));
    }
    co_return absl::OkStatus();
  }
  Status read = co_await ReadEntries();
  co_return read;
}

// READs the records of found_, adjacent ones with one READ: all with one doorbell, then again those that were being
// written.
coro::Task<Status> Client::ReadEntries() {
  const auto bytes = static_cast<uint32_t>(image_.size());
  images_.Clear();
  image_memory_.Reset();
  reads_.clear();
  for (const index::Entry& entry : found_.entries) images_.Add(entry.record, bytes);
  images_.AppendTo(&reads_, channel_->capabilities().line_consistent, &image_memory_);
  if (reads_.empty()) co_return absl::OkStatus();
  const Status read = co_await channel_->Post(reads_);
  GANNET_CO_RETURN_IF_ERROR(read);
  Patience patience;
  for (size_t i = 0; i < found_.entries.size(); ++i) {
    const uint64_t key = found_.entries[i].key.integer();
    std::byte* const image = images_.image(i);
    index::RecordLook look = LookAt(image, value_.size(), key);
    while (look.is_unsettled()) {
      channel_->CountRetry();
      if (patience.over()) co_return Patience::Error();
      co_await connection_->Yield();
      const Status again = co_await channel_->Read(found_.entries[i].record, image, bytes);
      GANNET_CO_RETURN_IF_ERROR(again);
      look = LookAt(image, value_.size(), key);
    }
    // The bench removes no records.
    if (look.is != index::RecordImage::kWhole) {
      co_return absl::DataLossError(absl::StrCat("a scan led to no record of key ", key));
    }
    scanned_keys_.push_back(key);
    scanned_values_.resize(scanned_keys_.size() * value_.size());
    rdma::CopyOut(image, kValueOffset, std::span(scanned_values_).last(value_.size()));
  }
  co_return absl::OkStatus();
}

coro::Task<Status> Client::ScanByCall(rdma::NodeId server, uint64_t from, size_t limit) {
  rdma::WireWriter writer(request_);
  writer.PutU64(from);
  writer.PutU16(static_cast<uint16_t>(limit));
  const std::span<const std::byte> request = writer.written();
  const StatusOr<size_t> bytes = co_await Ask(server, kScanCall, request);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response_).first(*bytes));
  const size_t n = reader.GetU16();
  for (size_t i = 0; i < n && reader.ok(); ++i) {
    scanned_keys_.push_back(reader.GetU64());
    const std::span<const std::byte> value = reader.GetRaw(value_.size());
    scanned_values_.insert(scanned_values_.end(), value.begin(), value.end());
  }
  co_return reader.Finish();
}

}  // namespace gannet::ycsb
