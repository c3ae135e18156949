#include "index/shared_leaf/claim/claim_ranges.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/key_wire.h"
#include "index/service_method.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {
namespace {

constexpr size_t kIndexBytes = sizeof(IndexId);

size_t WireBytes(const std::vector<ClaimRange>& ranges) {
  size_t bytes = 0;
  for (const ClaimRange& range : ranges) bytes += WireKeyBytes(range.first.view()) + sizeof(rdma::NodeId);
  return bytes;
}

void PutRanges(rdma::WireWriter& writer, const std::vector<ClaimRange>& ranges) {
  for (const ClaimRange& range : ranges) {
    PutKey(writer, range.first.view());
    writer.PutU16(range.node);
  }
}

// Reads up to the end of the message.
Status GetRanges(rdma::WireReader& reader, std::vector<ClaimRange>* ranges) {
  while (reader.remaining() > 0) {
    bool valid = false;
    const Key first = GetKey(reader, &valid);
    if (!valid) return absl::InvalidArgumentError("malformed ranges of keys");
    ranges->push_back({.first = OwnedKey(first), .node = reader.GetU16()});
  }
  return reader.Finish();
}

Status ServeSet(IndexService* service, BlockLender* index, rdma::WireReader& request) {
  std::vector<ClaimRange> ranges;
  GANNET_RETURN_IF_ERROR(GetRanges(request, &ranges));
  GANNET_RETURN_IF_ERROR(CheckRanges(ranges, index->blocks().key_kind(), service->fabric().num_nodes()));
  return index->SetClaimRanges(std::move(ranges));
}

}  // namespace

Status CheckRanges(const std::vector<ClaimRange>& ranges, KeyKind keys, int nodes) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Key first = ranges[i].first.view();
    if (first.kind() != keys || (i > 0 && !(ranges[i - 1].first.view() < first))) {
      return absl::InvalidArgumentError(
          absl::StrCat("range ", i, " begins at ", first.ToString(), "; give ascending keys of the table's kind"));
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

void RegisterClaimRanges(IndexService* service) {
  if (!service->MayRegister(kSetRanges)) return;
  ServeIndexMethod<BlockLender>(service, kSetRanges, "shared-leaf",
                                [service](BlockLender* index, Context&, rdma::WireReader& request, rdma::WireWriter&) {
                                  return ServeSet(service, index, request);
                                });
  ServeIndexMethod<BlockLender>(
      service, kReadRanges, "shared-leaf",
      [](BlockLender* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
        GANNET_RETURN_IF_ERROR(request.Finish());
        PutRanges(response, index->claim_ranges().Get());
        return absl::OkStatus();
      });
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
