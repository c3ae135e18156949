#include "txn/node/lent_records.h"

#include <algorithm>
#include <mutex>

#include "index/lock_word.h"
#include "index/record_header.h"
#include "rdma/slab.h"
#include "rdma/versioned.h"

namespace gannet::txn {

std::vector<LentBlock> LentRecords::Lend(index::Context& context, rdma::NodeId lessee, size_t bytes, size_t count) {
  // Smaller records, and larger ones, may be made in it.
  bytes = rdma::SlabAllocator::BlockBytes(bytes);
  std::vector<LentBlock> blocks;
  while (blocks.size() < count) {
    const StatusOr<std::byte*> block = context.slab->Allocate(bytes);
    if (!block.ok()) break;
    const uint64_t word = index::VersionOf(LoadWord(*block)) | index::kAbsentBit;
    StoreWord(*block, word);
    blocks.push_back({node_->AddressOf(*block), word, index::LoadMeta(*block).incarnation});
  }
  const std::lock_guard lock(mutex_);
  for (const LentBlock& block : blocks) {
    lent_[block.address.bits()] = {.lessee = lessee, .bytes = static_cast<uint32_t>(bytes), .word = block.word};
    Count(block.address, 1);
  }
  return blocks;
}

int64_t LentRecords::TakeOut(rdma::GlobalAddress block, rdma::NodeId lessee, uint64_t word) {
  if (!MayHave(block)) return 0;
  const std::lock_guard lock(mutex_);
  const auto at = lent_.find(block.bits());
  if (at == lent_.end() || at->second.lessee != lessee || (word != 0 && at->second.word != word)) return 0;
  const size_t bytes = at->second.bytes;
  lent_.erase(at);
  Count(block, -1);
  return static_cast<int64_t>(bytes);
}

bool LentRecords::Erase(rdma::GlobalAddress block) {
  const std::lock_guard lock(mutex_);
  if (lent_.erase(block.bits()) == 0) return false;
  Count(block, -1);
  return true;
}

void LentRecords::Sweep(index::Context& context, rdma::NodeId lessee) {
  std::vector<std::pair<uint64_t, uint32_t>> swept;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, lent] : lent_) {
      if (lent.lessee == lessee) swept.emplace_back(address, lent.bytes);
    }
    for (const auto& [address, bytes] : swept) {
      lent_.erase(address);
      Count(rdma::GlobalAddress::FromBits(address), -1);
    }
  }
  std::ranges::sort(swept);  // not in the order of a hash table, which differs between runs
  for (const auto& [address, bytes] : swept) {
    std::byte* const block = node_->memory().data() + rdma::GlobalAddress::FromBits(address).offset();
    rdma::AbandonObject(block, bytes / kLineBytes);
    context.slab->Free(block, bytes);
  }
}

void LentRecords::ForEach(const std::function<void(rdma::GlobalAddress, size_t bytes)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, lent] : lent_) visit(rdma::GlobalAddress::FromBits(address), lent.bytes);
}

}  // namespace gannet::txn
