// SharedInnerCache: the inner nodes of a B-link tree that the clients of a process have cached (inner_cache.h), with a
// lock for its readers.
//
//   SharedInnerCache<Keys>::Reading nodes(view);    nodes->Find(...)    // view: the client's, one per client
//   SharedInnerCache<Keys>::Changing nodes(view);   nodes->Put(...)
//
// Thread-safe, by these two. Neither may be held across a suspension.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/many_readers_lock.h"
#include "index/blink/inner_cache.h"
#include "index/blink/node.h"
#include "index/index.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index::blink {

template <class Keys>
class SharedInnerCache {
 public:
  explicit SharedInnerCache(size_t max_bytes) : nodes_(max_bytes) {}

  uint64_t bytes() const { return nodes_.bytes(); }

  // A client's place among the readers. Used by one thread at a time; the cache must outlive it.
  class View {
   public:
    explicit View(SharedInnerCache* cache) : cache_(cache), reader_(&cache->lock_) {}

   private:
    friend class SharedInnerCache;
    SharedInnerCache* const cache_;
    ManyReadersLock::Reader reader_;
  };

  class Reading {
   public:
    explicit Reading(View& view) : view_(view) { view.reader_.lock(); }
    ~Reading() { view_.reader_.unlock(); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const InnerCache<Keys>* operator->() const { return &view_.cache_->nodes_; }

   private:
    View& view_;
  };
  class Changing {
   public:
    explicit Changing(View& view) : view_(view) { view.cache_->lock_.lock(); }
    ~Changing() { view_.cache_->lock_.unlock(); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;
    InnerCache<Keys>* operator->() const { return &view_.cache_->nodes_; }

   private:
    View& view_;
  };

 private:
  ManyReadersLock lock_;
  InnerCache<Keys> nodes_;
};

// For trees of either kind of keys, because its maker does not know which; one of the two stays empty.
class SharedNodes final : public shared_leaf::SharedLeaves {
 public:
  explicit SharedNodes(size_t max_bytes) : integer_keys_(max_bytes), byte_keys_(max_bytes) {}

  uint64_t bytes() const override { return integer_keys_.bytes() + byte_keys_.bytes(); }

  template <class Keys>
  SharedInnerCache<Keys>* Of() {
    if constexpr (Keys::kKeysElsewhere) {
      return &byte_keys_;
    } else {
      return &integer_keys_;
    }
  }

 private:
  SharedInnerCache<IntegerKeys> integer_keys_;
  SharedInnerCache<ByteKeys> byte_keys_;
};

}  // namespace gannet::index::blink
