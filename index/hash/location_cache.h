// A client's cache of record locations: hash of the key -> offset of its record, in a fixed number of bytes.
//
// A set is one line of four entries in the order of their last use. The table is set-associative, so a lookup costs one
// cache miss and no allocation. An entry may be stale (the record was removed, its memory reused), or, with probability
// 2^-64, belong to another key with the same hash. So the user of an entry must check the record.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "index/hash/bucket.h"

namespace gannet::index::hash {

class LocationCache {
 public:
  // Makes a cache of `bytes`, rounded down to whole sets. 0: no cache. Pages are touched as entries are added.
  explicit LocationCache(size_t bytes) : sets_(bytes / sizeof(Set)), table_(Allocate(sets_)) {}

  bool enabled() const { return sets_ > 0; }
  size_t bytes() const { return sets_ * sizeof(Set); }

  // The cached offset, or 0.
  uint64_t Get(KeyHash hash) {
    if (!enabled()) return 0;
    Set& set = SetOf(hash);
    for (int i = 0; i < kWays; ++i) {
      if (set.entries[i].hash != hash.bits || set.entries[i].offset == 0) continue;
      if (i > 0) std::swap(set.entries[i], set.entries[i - 1]);
      return set.entries[i > 0 ? i - 1 : 0].offset;
    }
    return 0;
  }

  // True if Get would return an offset. Leaves the order of use as it is.
  bool Has(KeyHash hash) const {
    if (!enabled()) return false;
    const Set& set = SetOf(hash);
    for (const Entry& entry : set.entries) {
      if (entry.hash == hash.bits && entry.offset != 0) return true;
    }
    return false;
  }

  // Adds an entry; the least recently used one of the set is evicted.
  void Put(KeyHash hash, uint64_t offset) {
    if (!enabled()) return;
    Set& set = SetOf(hash);
    int at = 0;
    while (at < kWays - 1 && set.entries[at].hash != hash.bits && set.entries[at].offset != 0) ++at;
    set.entries[at] = {hash.bits, offset};
  }

  void Forget(KeyHash hash) {
    if (!enabled()) return;
    for (Entry& entry : SetOf(hash).entries) {
      if (entry.hash == hash.bits) entry = {};
    }
  }

 private:
  static constexpr int kWays = 4;
  struct Entry {
    uint64_t hash = 0;
    uint64_t offset = 0;  // 0: free
  };
  struct alignas(kLineBytes) Set {
    Entry entries[kWays];
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  // calloc returns large tables as untouched zero pages; one extra set leaves room to align.
  static std::unique_ptr<void, Free> Allocate(size_t sets) {
    return std::unique_ptr<void, Free>(sets == 0 ? nullptr : std::calloc(sets + 1, sizeof(Set)));
  }
  Set& SetOf(KeyHash hash) const {
    const uintptr_t base = RoundUp(reinterpret_cast<uintptr_t>(table_.get()), sizeof(Set));
    return reinterpret_cast<Set*>(base)[hash.Reduce(sets_)];
  }

  size_t sets_;
  std::unique_ptr<void, Free> table_;
};

}  // namespace gannet::index::hash
