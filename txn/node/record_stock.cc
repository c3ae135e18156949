#include "txn/node/record_stock.h"

#include <algorithm>
#include <mutex>

#include "rdma/slab.h"

namespace gannet::txn {

RecordStock::PerOwner* RecordStock::Of(rdma::NodeId owner, uint64_t connection) {
  if (connection == 0 || node_->ConnectionTo(owner) != connection) return nullptr;
  PerOwner& of = owners_[owner];
  if (of.connection != connection) of = {.connection = connection, .free = {}, .used = {}};
  return &of;
}

bool RecordStock::Take(rdma::NodeId owner, uint64_t connection, size_t bytes, LentBlock* block) {
  const std::lock_guard lock(mutex_);
  PerOwner* const of = Of(owner, connection);
  if (of == nullptr) return false;
  std::vector<LentBlock>& free = of->free[rdma::SlabAllocator::BlockBytes(bytes)];
  if (free.empty()) return false;
  *block = free.back();
  free.pop_back();
  return true;
}

void RecordStock::Add(rdma::NodeId owner, uint64_t connection, size_t bytes, std::span<const LentBlock> blocks) {
  const std::lock_guard lock(mutex_);
  PerOwner* const of = Of(owner, connection);
  if (of == nullptr) return;
  std::vector<LentBlock>& free = of->free[rdma::SlabAllocator::BlockBytes(bytes)];
  free.insert(free.end(), blocks.begin(), blocks.end());
}

void RecordStock::NoteUsed(rdma::NodeId owner, uint64_t connection, std::span<const UsedBlock> used) {
  const std::lock_guard lock(mutex_);
  if (PerOwner* const of = Of(owner, connection)) of->used.insert(of->used.end(), used.begin(), used.end());
}

std::vector<UsedBlock> RecordStock::TakeUsed(rdma::NodeId owner, uint64_t connection, size_t most) {
  const std::lock_guard lock(mutex_);
  PerOwner* const of = Of(owner, connection);
  if (of == nullptr) return {};
  const auto n = static_cast<ptrdiff_t>(std::min(most, of->used.size()));
  std::vector<UsedBlock> taken(of->used.end() - n, of->used.end());
  of->used.resize(of->used.size() - static_cast<size_t>(n));
  return taken;
}

}  // namespace gannet::txn
