#include "index/shared_leaf/blocks/block_lending.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"
#include "rdma/memory_full.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {
namespace {

constexpr size_t kMostBlocks = 64;  // of one message, in each direction
constexpr size_t kMessageBytes = 10 + 2 * kMostBlocks * 16;

// Blocks of one call. A split needs a few; what fills up leaves needs the next ones soon. Inner nodes are made seldom.
constexpr size_t kAtOnce = 32;
constexpr size_t kNodesAtOnce = 8;
constexpr size_t AtOnce(size_t pool) {
  return pool == 0 ? kAtOnce : kNodesAtOnce;
}
// If so few are left, it is time for the next call.
constexpr size_t kFew = 12;
// Unused blocks that are kept, and dead ones that wait.
constexpr size_t kMostUnused = 2 * kAtOnce;
constexpr size_t kMostDead = 16;

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
  const size_t number = reader.GetU16();
  const size_t wanted = reader.GetU16();
  std::vector<FreeBlock> dead;
  std::vector<FreeBlock> unused;
  if (!GetBlocks(reader, &dead) || !GetBlocks(reader, &unused) || !reader.Finish().ok()) {
    return absl::InvalidArgumentError("a malformed request for blocks");
  }
  IndexService::Guard guard(service);
  auto* lender = dynamic_cast<BlockLender*>(service->Find(id));
  LeafBlocks* const pool = lender == nullptr ? nullptr : lender->pool(number);
  if (pool == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("node ", service->node().id(), " lends no blocks of pool ", number, " of index ", id));
  }
  if (pool->rights() == IndexRights::kOwnerOnly) {
    return absl::PermissionDeniedError(absl::StrCat("node ", service->node().id(), " lends no blocks of index ", id,
                                                    ": only the owner changes it; clients change it by calls"));
  }
  for (const FreeBlock& block : dead) pool->Return(block);
  for (const FreeBlock& block : unused) pool->GiveBack(caller, block);
  rdma::WireWriter writer(response);
  PutBlocks(writer, pool->Lend(guard.context(), caller, std::min(wanted, kMostBlocks)));
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

// Nothing is borrowed over a later connection for a caller that still uses an earlier one. The repair after that one
// may be under way, and would take such blocks back (LeafBlocks::Sweep) while the stock keeps them.
coro::Task<StatusOr<FreeBlock>> BorrowedBlocks::Take(uint64_t wanted) {
  const uint64_t connection = Connection();
  if (wanted != 0 && wanted != connection) {
    co_return absl::UnavailableError(absl::StrCat("the connection to node ", owner_, " has ended; try again"));
  }
  const std::optional<FreeBlock> known = stock_->Take(connection);
  if (known.has_value()) co_return *known;
  std::vector<FreeBlock> lent;
  {
    // One borrows for all; others that find nothing meanwhile borrow what they need.
    const BlockStock::Borrowing borrowing(stock_);
    const Status status = co_await Exchange(connection, borrowing.is_first() ? AtOnce(pool_) : 1, &lent);
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  if (lent.empty()) {
    co_return absl::ResourceExhaustedError(
        absl::StrCat("node ", owner_, " has no room for another node of an index; ", rdma::kGiveMemory));
  }
  stock_->Add(connection, std::span(lent).subspan(1));
  co_return lent[0];
}

coro::Task<void> BorrowedBlocks::Return(FreeBlock block) {
  const uint64_t connection = Connection();
  if (stock_->AddDead(connection, {&block, 1}) < kMostDead) co_return;
  std::vector<FreeBlock> none;
  co_await Exchange(connection, 0, &none);
}

coro::Task<void> BorrowedBlocks::Refill() {
  const uint64_t connection = Connection();
  const BlockStock::Borrowing borrowing(stock_);
  if (!borrowing.is_first() || stock_->unused(connection) > kFew) co_return;
  std::vector<FreeBlock> lent;
  const Status status = co_await Exchange(connection, AtOnce(pool_), &lent);
  if (status.ok()) stock_->Add(connection, lent);
}

coro::Task<Status> BorrowedBlocks::Exchange(uint64_t connection, size_t wanted, std::vector<FreeBlock>* lent) {
  std::array<std::byte, kMessageBytes> request;
  std::array<std::byte, kMessageBytes> response;
  rdma::WireWriter writer(request);
  writer.PutU16(index_);
  writer.PutU16(static_cast<uint16_t>(pool_));
  writer.PutU16(static_cast<uint16_t>(wanted));
  const BlockStock::Surplus surplus = stock_->TakeSurplus(connection, kMostUnused, kMostBlocks);
  PutBlocks(writer, surplus.dead);
  PutBlocks(writer, surplus.unused);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kExchange, writer.written(), response, timeout_, connection);
  if (!bytes.ok()) {
    // The owner may have taken them back, or may do so yet. Dead ones can be sent again: it ignores those that it has
    // taken back already. Unused ones cannot, because it may lend them again with the same words. If it has not taken
    // them, they stay lent until the connection has ended.
    stock_->AddDead(connection, surplus.dead);
    co_return bytes.status();
  }
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const bool valid =
      GetBlocks(reader, lent) && reader.Finish().ok() && std::ranges::all_of(*lent, [this](const FreeBlock& block) {
        return block.address.node() == owner_ && block.address.offset() % kLineBytes == 0 && IsAbsent(block.word) &&
               !IsLocked(block.word);
      });
  if (!valid) {
    lent->clear();
    co_return absl::DataLossError(absl::StrCat("node ", owner_, " lent blocks that are none"));
  }
  for (FreeBlock& block : *lent) block.connection = connection;
  co_return absl::OkStatus();
}

}  // namespace gannet::index::shared_leaf
