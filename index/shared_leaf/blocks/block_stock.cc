#include "index/shared_leaf/blocks/block_stock.h"

#include <algorithm>
#include <mutex>

namespace gannet::index::shared_leaf {
namespace {

// Takes at most `most` from the end, and leaves at least `keep`.
std::vector<FreeBlock> TakeFrom(std::vector<FreeBlock>* blocks, size_t keep, size_t most) {
  const size_t n = blocks->size() > keep ? std::min(blocks->size() - keep, most) : 0;
  std::vector<FreeBlock> taken(blocks->end() - static_cast<ptrdiff_t>(n), blocks->end());
  blocks->resize(blocks->size() - n);
  return taken;
}

}  // namespace

// A client may come late, with a connection that has ended. Then the blocks of the next one stay lent until that has
// ended, too.
void BlockStock::Follow(uint64_t connection) {
  if (connection == connection_) return;
  connection_ = connection;
  free_.clear();
  dead_.clear();
}

std::optional<FreeBlock> BlockStock::Take(uint64_t connection) {
  const std::lock_guard lock(mutex_);
  Follow(connection);
  if (free_.empty()) return std::nullopt;
  const FreeBlock block = free_.back();
  free_.pop_back();
  return block;
}

size_t BlockStock::unused(uint64_t connection) {
  const std::lock_guard lock(mutex_);
  Follow(connection);
  return free_.size();
}

void BlockStock::Add(uint64_t connection, std::span<const FreeBlock> blocks) {
  const std::lock_guard lock(mutex_);
  Follow(connection);
  free_.insert(free_.end(), blocks.begin(), blocks.end());
}

size_t BlockStock::AddDead(uint64_t connection, std::span<const FreeBlock> blocks) {
  const std::lock_guard lock(mutex_);
  Follow(connection);
  dead_.insert(dead_.end(), blocks.begin(), blocks.end());
  return dead_.size();
}

BlockStock::Surplus BlockStock::TakeSurplus(uint64_t connection, size_t keep, size_t most) {
  const std::lock_guard lock(mutex_);
  Follow(connection);
  return {.dead = TakeFrom(&dead_, 0, most), .unused = TakeFrom(&free_, keep, most)};
}

BlockStock::Borrowing::Borrowing(BlockStock* stock) : stock_(stock) {
  const std::lock_guard lock(stock_->mutex_);
  is_first_ = stock_->borrowing_++ == 0;
}

BlockStock::Borrowing::~Borrowing() {
  const std::lock_guard lock(stock_->mutex_);
  --stock_->borrowing_;
}

}  // namespace gannet::index::shared_leaf
