// CachedModel: the cache of an owner's model, which the clients of one index may share. And CacheView, by which one
// client uses it.
//
// The cache has one generation at a time (cached_generation.h). Each client keeps the one that it works with. At the
// beginning of an operation it compares the number of changes with the one it knows: a load of a word that only a new
// generation changes, so it stays in the CPU's cache. Only if they differ does it take the mutex. An old generation is
// freed when the last client has left it. A client that does nothing keeps the one that it used last; a generation
// follows another only when the number of keys has doubled or halved, so few can be left behind.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "index/index.h"
#include "index/xstore/client/cached_generation.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

// Thread-safe.
class CachedModel final : public SharedCache {
 public:
  // The mode and the limit of `options` count here.
  explicit CachedModel(const XCacheOptions& options);

  // Number of times that another generation was installed.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // The current generation, and the change that brought it.
  std::shared_ptr<CachedGeneration> Current(uint64_t* change) const;

  // Installs a generation, empty but for its top model and the places of the sub-models' lines. `asked`: changes() when
  // the owner was asked for it. Nothing happens if it is the current one, or if another client has installed a newer
  // one since then.
  void Begin(uint64_t number, uint64_t asked, TopModel top, std::vector<uint32_t> directory);
  // Installs a copy of the other cache's current generation, as far as the limit allows. No other thread may write to
  // that one.
  void CopyFrom(const CachedModel& other);

  // All memory of the current generation, and of older ones that clients still keep.
  uint64_t bytes() const override;

 private:
  void Install(std::shared_ptr<CachedGeneration> generation);  // the mutex is held

  const XCacheMode mode_;
  const size_t max_bytes_;
  std::atomic<uint64_t> changes_{0};
  mutable Mutex mutex_;  // guards the members below, and writes of changes_
  std::shared_ptr<CachedGeneration> current_;
  std::vector<std::weak_ptr<CachedGeneration>> older_;
};

// One client's view of a cache. Used by one thread.
class CacheView {
 public:
  explicit CacheView(std::shared_ptr<CachedModel> cache) : cache_(std::move(cache)) {
    generation_ = cache_->Current(&change_);
  }

  // Changes to the current generation of the cache. True if that is another one than before: what `->` gave is void.
  bool Follow() {
    if (cache_->changes() == change_) [[likely]]
      return false;
    generation_ = cache_->Current(&change_);
    return true;
  }
  // 0: no model yet.
  uint64_t number() const { return generation_->number(); }
  CachedGeneration* operator->() const { return generation_.get(); }
  CachedGeneration& operator*() const { return *generation_; }
  CachedModel& cache() const { return *cache_; }
  uint64_t change() const { return change_; }

  // True if it pays to READ only the predicted slots of a leaf. It does, unless many of the keys looked up are absent
  // or were inserted after the training. Both are also noticed while whole leaves are READ. Each client decides for
  // itself: it has its own keys, and lookups of several threads do not write to one place.
  bool trusts_slots() const { return credit_ >= 0; }
  void NoteSlots(bool held) {
    constexpr int kMostCredit = 256;
    constexpr int kMissCost = 15;  // a miss costs a round trip; a hit saves some lines
    credit_ = held ? std::min(credit_ + 1, kMostCredit) : std::max(credit_ - kMissCost, -kMostCredit);
  }

 private:
  std::shared_ptr<CachedModel> cache_;
  std::shared_ptr<CachedGeneration> generation_;
  uint64_t change_ = 0;
  int credit_ = 0;
};

}  // namespace gannet::index::xstore
