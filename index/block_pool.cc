#include "index/block_pool.h"

namespace gannet::index {

std::byte* BlockPool::TakeFree(size_t bytes) {
  if (free_blocks_.load(std::memory_order_relaxed) == 0) return nullptr;
  std::lock_guard lock(mutex_);
  auto it = free_.find(rdma::SlabAllocator::BlockBytes(bytes));
  if (it == free_.end() || it->second.empty()) return nullptr;
  std::byte* block = it->second.back();
  it->second.pop_back();
  free_blocks_.fetch_sub(1, std::memory_order_relaxed);
  return block;
}

StatusOr<std::byte*> BlockPool::Allocate(Context& context, size_t bytes) {
  if (std::byte* block = TakeFree(bytes)) return block;
  StatusOr<std::byte*> block =
      part_ == Part::kReadOnly ? context.slab->AllocateReadOnly(bytes) : context.slab->Allocate(bytes);
  if (block.ok()) {
    bytes_.fetch_add(rdma::SlabAllocator::BlockBytes(bytes), std::memory_order_relaxed);
  } else if (std::byte* collected = TakeFree(bytes)) {  // a full slab makes retired blocks free
    return collected;
  }
  return block;
}

void BlockPool::Release(std::byte* block, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (closed_to_ != nullptr) {
    rdma::SlabCache(closed_to_).Free(block, bytes);
    return;
  }
  free_[rdma::SlabAllocator::BlockBytes(bytes)].push_back(block);
  free_blocks_.fetch_add(1, std::memory_order_relaxed);
}

void BlockPool::Retire(Context& context, std::byte* block, size_t bytes) {
  context.epoch->RetireWith([pool = shared_from_this(), block, bytes] { pool->Release(block, bytes); });
}

void BlockPool::Close(rdma::SlabCache& slab) {
  std::lock_guard lock(mutex_);
  closed_to_ = &slab.allocator();
  for (auto& [bytes, blocks] : free_) {
    for (std::byte* block : blocks) slab.Free(block, bytes);
  }
  free_.clear();
  free_blocks_.store(0, std::memory_order_relaxed);
}

}  // namespace gannet::index
