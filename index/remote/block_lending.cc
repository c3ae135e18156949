#include "index/remote/block_lending.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::index::remote {
namespace {

constexpr size_t kMostBlocks = 64;  // of one message, in each direction
constexpr size_t kMessageBytes = 8 + kMostBlocks * 16;

void PutBlocks(rdma::WireWriter& writer, std::span<const FreeBlock> blocks) {
  writer.PutU16(static_cast<uint16_t>(blocks.size()));
  for (const FreeBlock& block : blocks) {
    writer.PutAddress(block.address);
    writer.PutU64(block.word);
  }
}

// False: too many, or an early end.
bool GetBlocks(rdma::WireReader& reader, std::vector<FreeBlock>* blocks) {
  const size_t n = reader.GetU16();
  if (n > kMostBlocks) return false;
  for (size_t i = 0; i < n; ++i) {
    const rdma::GlobalAddress address = reader.GetAddress();
    blocks->push_back({address, reader.GetU64()});
  }
  return reader.ok();
}

StatusOr<size_t> ServeExchange(IndexService* service, rdma::NodeId caller, std::span<const std::byte> request,
                               std::span<std::byte> response) {
  rdma::WireReader reader(request);
  const IndexId id = reader.GetU16();
  const size_t wanted = reader.GetU16();
  std::vector<FreeBlock> returned;
  if (!GetBlocks(reader, &returned) || !reader.Finish().ok()) {
    return absl::InvalidArgumentError("a malformed request for blocks");
  }
  auto* lender = dynamic_cast<BlockLender*>(service->Find(id));
  if (lender == nullptr) {
    return absl::NotFoundError(absl::StrCat("node ", service->node().id(), " lends no blocks of index ", id));
  }
  if (lender->blocks().rights() == IndexRights::kOwnerOnly) {
    return absl::PermissionDeniedError(absl::StrCat("node ", service->node().id(), " lends no blocks of index ", id,
                                                    ": only the owner changes it; clients change it by calls"));
  }
  for (const FreeBlock& block : returned) lender->blocks().Return(block);
  IndexService::Lease lease(service);
  rdma::WireWriter writer(response);
  PutBlocks(writer, lender->blocks().Lend(lease.context(), caller, std::min(wanted, kMostBlocks)));
  return writer.Finish();
}

}  // namespace

void RegisterBlockLending(IndexService* service) {
  if (!service->MayRegister(kExchange)) return;
  service->node().Handle(
      kExchange, [service](rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte> response) {
        return ServeExchange(service, caller, request, response);
      });
}

coro::Task<StatusOr<FreeBlock>> BorrowedBlocks::Take() {
  if (free_.empty()) {
    const Status status = co_await Exchange(kAtOnce);
    GANNET_CO_RETURN_IF_ERROR(status);
    if (free_.empty()) {
      co_return absl::ResourceExhaustedError(
          absl::StrCat("node ", owner_, " has no room for another leaf; give its nodes more memory"));
    }
  }
  const FreeBlock block = free_.back();
  free_.pop_back();
  co_return block;
}

coro::Task<void> BorrowedBlocks::Return(FreeBlock block) {
  dead_.push_back(block);
  if (dead_.size() >= kAtOnce) co_await Exchange(0);
}

coro::Task<Status> BorrowedBlocks::Exchange(size_t wanted) {
  std::array<std::byte, kMessageBytes> request;
  std::array<std::byte, kMessageBytes> response;
  rdma::WireWriter writer(request);
  writer.PutU16(index_);
  writer.PutU16(static_cast<uint16_t>(wanted));
  // If the answer is lost, they are sent again: the owner ignores what it has taken back already.
  const std::vector<FreeBlock> sent(dead_.begin(),
                                    dead_.begin() + static_cast<ptrdiff_t>(std::min(dead_.size(), kMostBlocks)));
  PutBlocks(writer, sent);
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, kExchange, writer.written(), response, timeout_);
  if (!bytes.ok()) co_return bytes.status();
  // Other coroutines may have added dead blocks, or sent the same ones.
  std::erase_if(dead_, [&sent](const FreeBlock& block) {
    return std::ranges::any_of(sent, [&block](const FreeBlock& other) { return other.address == block.address; });
  });
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  std::vector<FreeBlock> lent;
  const bool valid =
      GetBlocks(reader, &lent) && reader.Finish().ok() && std::ranges::all_of(lent, [this](const FreeBlock& block) {
        return block.address.node() == owner_ && block.address.offset() % kLineBytes == 0 && IsAbsent(block.word) &&
               !IsLocked(block.word);
      });
  if (!valid) co_return absl::DataLossError(absl::StrCat("node ", owner_, " lent blocks that are none"));
  free_.insert(free_.end(), lent.begin(), lent.end());
  co_return absl::OkStatus();
}

}  // namespace gannet::index::remote
