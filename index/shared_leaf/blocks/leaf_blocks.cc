#include "index/shared_leaf/blocks/leaf_blocks.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/mutant.h"

namespace gannet::index::shared_leaf {

// Line 0 goes on from the largest version, and is dead. Nobody writes the block now: a line that looks busy was left so
// by a client that does not keep the rules.
void LeafBlocks::MakeFree(std::byte* block) const {
  rdma::AbandonObject(block, leaf_bytes() / kLineBytes);
}

StatusOr<FreeBlock> LeafBlocks::TakeOne(Context& context) {
  if (!free_.empty()) {
    const uint64_t offset = free_.back();
    free_.pop_back();
    // Clients may have written into the block itself. Its note here is this node's own.
    GANNET_CHECK(blocks_[offset].use == Use::kFree, "block %d is listed as free and in use", offset);
    // Only a client that does not keep the rules writes into a free block, now or at any time.
    uint64_t word = LoadWord(At(offset));
    if (!IsAbsent(word) || IsLocked(word)) {
      MakeFree(At(offset));
      word = VersionOf(LoadWord(At(offset))) | kAbsentBit;
    }
    return FreeBlock{{node_->id(), offset}, word};
  }
  const StatusOr<std::byte*> block = rights_ == IndexRights::kClients ? context.slab->Allocate(leaf_bytes())
                                                                      : context.slab->AllocateReadOnly(leaf_bytes());
  if (!block.ok()) return block.status();
  // The lines of the block belonged to other objects, and in the read-only part not even to versioned ones.
  MakeFree(*block);
  if (format_.begin != nullptr) format_.begin(*block);
  const auto offset = static_cast<uint64_t>(*block - node_->memory().data());
  blocks_[offset] = {};
  return FreeBlock{{node_->id(), offset}, VersionOf(LoadWord(*block)) | kAbsentBit};
}

StatusOr<FreeBlock> LeafBlocks::Take(Context& context) {
  std::lock_guard lock(mutex_);
  StatusOr<FreeBlock> block = TakeOne(context);
  if (block.ok()) blocks_[block->address.offset()] = {.use = Use::kLent, .lessee = node_->id(), .word = block->word};
  return block;
}

void LeafBlocks::PutBack(const FreeBlock& block) {
  std::lock_guard lock(mutex_);
  List(block);
}

void LeafBlocks::Discard(const FreeBlock& block) {
  std::lock_guard lock(mutex_);
  if (List(block)) MakeFree(At(block.address.offset()));
}

// A Sweep may have listed it already, if a client that does not keep the rules has written into it.
bool LeafBlocks::List(const FreeBlock& block) {
  const auto known = blocks_.find(block.address.offset());
  GANNET_CHECK(known != blocks_.end() && block.address.node() == node_->id(), "%s is no block of this index",
               block.address.ToString());
  if (known->second.use == Use::kFree) return false;
  known->second = {};
  free_.push_back(block.address.offset());
  return true;
}

std::vector<FreeBlock> LeafBlocks::Lend(Context& context, rdma::NodeId lessee, size_t count) {
  GANNET_CHECK(rights_ == IndexRights::kClients, "a block for node %d, which may not write there", lessee);
  std::vector<FreeBlock> lent;
  std::lock_guard lock(mutex_);
  while (lent.size() < count) {
    const StatusOr<FreeBlock> block = TakeOne(context);
    if (!block.ok()) break;
    blocks_[block->address.offset()] = {.use = Use::kLent, .lessee = lessee, .word = block->word};
    lent.push_back(*block);
  }
  return lent;
}

void LeafBlocks::Return(const FreeBlock& block) {
  std::lock_guard lock(mutex_);
  const auto known = blocks_.find(block.address.offset());
  if (block.address.node() != node_->id() || known == blocks_.end()) return;
  Block& at = known->second;
  const uint64_t word = LoadWord(At(known->first));
  if (at.use == Use::kFree || word != block.word || !IsAbsent(word) || IsLocked(word)) return;
  if (at.use == Use::kLent && at.word == word) return;  // lent again since, and not used yet
  at = {};
  free_.push_back(known->first);
}

void LeafBlocks::GiveBack(rdma::NodeId lessee, const FreeBlock& block) {
  std::lock_guard lock(mutex_);
  const auto known = blocks_.find(block.address.offset());
  if (block.address.node() != node_->id() || known == blocks_.end()) return;
  Block& at = known->second;
  const bool is_unused = at.use == Use::kLent && at.lessee == lessee && at.word == block.word;
  if (!is_unused || LoadWord(At(known->first)) != block.word) return;
  at = {};
  free_.push_back(known->first);
}

void LeafBlocks::Sweep(rdma::NodeId lessee, const std::function<bool(rdma::GlobalAddress)>& is_linked) {
  if (GANNET_MUTANT(kNoSweep)) return;
  std::lock_guard lock(mutex_);
  for (auto& [offset, block] : blocks_) {
    if (block.use == Use::kFree) continue;
    const uint64_t word = LoadWord(At(offset));
    const bool is_dead = IsAbsent(word) && !IsLocked(word);
    if (block.use == Use::kLent) {
      if (block.lessee == lessee) {
        if (is_linked({node_->id(), offset})) {
          block = {.use = Use::kInUse};
          continue;
        }
        // The block was never used, or its leaf died, by the repair or before. Lines that were written go on from their
        // versions.
        MakeFree(At(offset));
      } else if (!is_dead || word == block.word) {
        continue;
      }
    } else if (!is_dead) {
      continue;
    }
    block = {};
    free_.push_back(offset);
  }
}

LeafBlocks::Counts LeafBlocks::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts;
  for (const auto& [offset, block] : blocks_) {
    ++(block.use == Use::kFree ? counts.free : block.use == Use::kLent ? counts.lent : counts.in_use);
  }
  return counts;
}

void LeafBlocks::ForEach(const std::function<void(rdma::GlobalAddress)>& visit) const {
  std::vector<uint64_t> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [offset, block] : blocks_) all.push_back(offset);
  }
  for (const uint64_t offset : all) visit({node_->id(), offset});
}

Status LeafBlocks::Check(const std::function<bool(rdma::GlobalAddress)>& is_linked) const {
  std::lock_guard lock(mutex_);
  for (const auto& [offset, block] : blocks_) {
    const rdma::GlobalAddress address(node_->id(), offset);
    const uint64_t word = LoadWord(At(offset));
    const bool linked = is_linked(address);
    if (linked && block.use == Use::kFree) {
      return absl::InternalError(absl::StrCat("the leaf at ", address.ToString(), " is also a free block"));
    }
    if (!linked && (!IsAbsent(word) || IsLocked(word))) {
      return absl::InternalError(absl::StrCat("the block at ", address.ToString(), " is neither linked nor dead"));
    }
  }
  return absl::OkStatus();
}

void LeafBlocks::Close(rdma::SlabCache& slab) {
  std::lock_guard lock(mutex_);
  for (const auto& [offset, block] : blocks_) {
    MakeFree(At(offset));
    slab.Free(At(offset), leaf_bytes());
  }
  blocks_.clear();
  free_.clear();
}

uint64_t LeafBlocks::bytes() const {
  std::lock_guard lock(mutex_);
  return blocks_.size() * rdma::SlabAllocator::BlockBytes(leaf_bytes());
}

}  // namespace gannet::index::shared_leaf
