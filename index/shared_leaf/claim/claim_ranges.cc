#include "index/shared_leaf/claim/claim_ranges.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/key_wire.h"

namespace gannet::index::shared_leaf {
namespace {

constexpr size_t kIndexBytes = sizeof(IndexId);

size_t WireBytes(const std::vector<ClaimRange>& ranges) {
  size_t bytes = 0;
  for (const ClaimRange& range : ranges) bytes += WireKeyBytes(range.first.view()) + sizeof(rdma::NodeId);
  return bytes;
}

}  // namespace

Status CheckRanges(const std::vector<ClaimRange>& ranges, KeyKind keys, size_t max_key_bytes, int nodes,
                   const std::function<std::string(const Key&)>& text) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Key first = ranges[i].first.view();
    if (first.kind() == KeyKind::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("range ", i, " begins at ", text(first), "; Key::Signed makes keys of negative numbers"));
    }
    if (first.kind() != keys || (i > 0 && !(ranges[i - 1].first.view() < first))) {
      return absl::InvalidArgumentError(
          absl::StrCat("range ", i, " begins at ", text(first), "; give ascending keys of the table's kind"));
    }
    if (first.size() > max_key_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("range ", i, " begins at ", text(first), ", a key of ",
                                                     first.size(), " bytes; the table's keys have at most ",
                                                     max_key_bytes));
    }
    if (ranges[i].node >= nodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("range ", i, " is of node ", ranges[i].node, "; the nodes are 0 to ", nodes - 1));
    }
  }
  if (const size_t bytes = kIndexBytes + WireBytes(ranges); bytes > rdma::kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(ranges.size(), " ranges take ", bytes, " bytes; give fewer, of ",
                                                   rdma::kMaxMessageBytes, " bytes at most"));
  }
  return absl::OkStatus();
}

void ClaimRanges::Set(std::vector<ClaimRange> ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = std::move(ranges);
}

std::vector<ClaimRange> ClaimRanges::Get() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

void PutRanges(rdma::WireWriter& writer, const std::vector<ClaimRange>& ranges) {
  for (const ClaimRange& range : ranges) {
    PutKey(writer, range.first.view());
    writer.PutU16(range.node);
  }
}

Status GetRanges(rdma::WireReader& reader, std::vector<ClaimRange>* ranges) {
  while (reader.remaining() > 0) {
    bool valid = false;
    const Key first = GetKey(reader, &valid);
    if (!valid) return absl::InvalidArgumentError("malformed ranges of keys");
    ranges->push_back({.first = OwnedKey(first), .node = reader.GetU16()});
  }
  return reader.Finish();
}

coro::Task<Status> SetRanges(rdma::Channel* channel, rdma::NodeId owner, IndexId index, std::vector<ClaimRange> ranges,
                             absl::Duration timeout) {
  std::vector<std::byte> request(kIndexBytes + WireBytes(ranges));
  rdma::WireWriter writer(request);
  writer.PutU16(index);
  PutRanges(writer, ranges);
  const StatusOr<size_t> bytes =
      co_await channel->Call(owner, kSetRanges, writer.written(), std::span<std::byte>(), timeout);
  co_return bytes.status();
}

coro::Task<StatusOr<std::vector<ClaimRange>>> ReadRanges(rdma::Channel* channel, rdma::NodeId owner, IndexId index,
                                                         absl::Duration timeout) {
  std::array<std::byte, kIndexBytes> request;
  rdma::WireWriter writer(request);
  writer.PutU16(index);
  std::vector<std::byte> response(rdma::kMaxMessageBytes);
  const StatusOr<size_t> bytes = co_await channel->Call(owner, kReadRanges, writer.written(), response, timeout);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  std::vector<ClaimRange> ranges;
  if (!GetRanges(reader, &ranges).ok()) {
    co_return absl::DataLossError(absl::StrCat("node ", owner, " sent malformed ranges of keys"));
  }
  co_return ranges;
}

}  // namespace gannet::index::shared_leaf
