#include "index/xstore/client/cached_model.h"

#include <mutex>

namespace gannet::index::xstore {

CachedModel::CachedModel(const XCacheOptions& options)
    : mode_(options.mode),
      max_bytes_(options.max_bytes),
      current_(std::make_shared<CachedGeneration>(XCacheMode::kTopOnly, 0, 0, TopModel(), std::vector<uint32_t>())) {}

std::shared_ptr<CachedGeneration> CachedModel::Current(uint64_t* change) const {
  const std::lock_guard lock(mutex_);
  *change = changes();
  return current_;
}

void CachedModel::Begin(uint64_t number, uint64_t asked, TopModel top, std::vector<uint32_t> directory) {
  const std::lock_guard lock(mutex_);
  if (number == current_->number() || (number < current_->number() && changes() != asked)) return;
  Install(std::make_shared<CachedGeneration>(mode_, max_bytes_, number, std::move(top), std::move(directory)));
}

void CachedModel::CopyFrom(const CachedModel& other) {
  uint64_t change = 0;
  const std::shared_ptr<CachedGeneration> from = other.Current(&change);
  auto copy = std::make_shared<CachedGeneration>(mode_, max_bytes_, from->number(), from->top(), from->directory());
  copy->FillFrom(*from);
  const std::lock_guard lock(mutex_);
  Install(std::move(copy));
}

void CachedModel::Install(std::shared_ptr<CachedGeneration> generation) {
  std::erase_if(older_, [](const auto& older) { return older.expired(); });
  older_.push_back(current_);
  current_ = std::move(generation);
  changes_.store(changes() + 1, std::memory_order_release);
}

uint64_t CachedModel::bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = current_->bytes();
  for (const std::weak_ptr<CachedGeneration>& each : older_) {
    if (const std::shared_ptr<CachedGeneration> older = each.lock()) sum += older->bytes();
  }
  return sum;
}

}  // namespace gannet::index::xstore
