// SharedLeaves: what all clients of an index whose leaves they change have in common in this process, in any of its
// threads. SharedLeavesOf: the same with what a kind of index caches.
//
//   using SharedNodes = SharedLeavesOf<InnerCache>;
//   SharedNodes::View<Keys> view(cache);             the client's, one per client
//   SharedNodes::Reading<Keys> nodes(view);          nodes->Find(...)
//   SharedNodes::Changing<Keys> nodes(view);         nodes->Put(...)
//
// Thread-safe, by the last two. Neither may be held across a suspension.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/many_readers_lock.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_stock.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

class SharedLeaves : public SharedCache {
 public:
  // Those of a pool of the index (BlockLender).
  BlockStock& blocks(size_t pool = 0) { return blocks_[pool]; }

 private:
  std::array<BlockStock, kMostPools> blocks_;
};

// Holds indexes of either kind of keys, because its maker does not know which; the content for the other one stays
// empty.
template <template <class> class Content>
class SharedLeavesOf : public SharedLeaves {
  template <class Keys>
  struct Part {
    explicit Part(size_t max_bytes) : content(max_bytes) {}

    ManyReadersLock lock;
    Content<Keys> content;
  };

 public:
  explicit SharedLeavesOf(size_t max_bytes) : integer_keys_(max_bytes), byte_keys_(max_bytes) {}

  uint64_t bytes() const override { return integer_keys_.content.bytes() + byte_keys_.content.bytes(); }

  // A client's place among the readers. Used by one thread at a time; the cache must outlive it.
  template <class Keys>
  class View {
   public:
    explicit View(SharedLeavesOf* cache) : part_(cache->Of<Keys>()), reader_(&part_->lock) {}

   private:
    friend class SharedLeavesOf;
    Part<Keys>* const part_;
    ManyReadersLock::Reader reader_;
  };

  template <class Keys>
  class Reading {
   public:
    explicit Reading(View<Keys>& view) : view_(view) { view.reader_.lock(); }
    ~Reading() { view_.reader_.unlock(); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const Content<Keys>* operator->() const { return &view_.part_->content; }

   private:
    View<Keys>& view_;
  };
  template <class Keys>
  class Changing {
   public:
    explicit Changing(View<Keys>& view) : view_(view) { view.part_->lock.lock(); }
    ~Changing() { view_.part_->lock.unlock(); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;
    Content<Keys>* operator->() const { return &view_.part_->content; }

   private:
    View<Keys>& view_;
  };

 private:
  template <class Keys>
  Part<Keys>* Of() {
    if constexpr (Keys::kKeysElsewhere) {
      return &byte_keys_;
    } else {
      return &integer_keys_;
    }
  }

  Part<IntegerKeys> integer_keys_;
  Part<ByteKeys> byte_keys_;
};

}  // namespace gannet::index::shared_leaf
