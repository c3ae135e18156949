// LocationCache: where a client found records before, so that a read of one is one READ. Key -> address, in place of
// the key only its hash: 8 bytes an entry. Whoever uses an address looks whether the record there is the key's, and
// forgets the entry if not (index/index.h: from_cache).
//
// A bucket is one cache line: 8 entries, the oldest leaves.
//
// Not thread-safe, but for simulations, where threads take turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "base/runtime.h"
#include "rdma/global_address.h"

namespace gannet::ycsb {

class LocationCache {
 public:
  // At most `max_bytes`, but at least one bucket; fewer than 2^32 of them.
  explicit LocationCache(size_t max_bytes)
      : entries_(std::max<size_t>(max_bytes / kLineBytes, 1) * kWays), buckets_(entries_.size() / kWays) {}

  size_t bytes() const { return entries_.size() * sizeof(uint64_t); }

  // Null: not known. Perhaps another key's.
  rdma::GlobalAddress Find(uint64_t key) const {
    Charge(Cost::kIndexStep, 1);
    const uint64_t hash = Mix64(key);
    const uint64_t* bucket = BucketOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      if (bucket[way] != 0 && TagOf(bucket[way]) == TagFor(hash)) return AddressOf(bucket[way]);
    }
    return {};
  }

  // Of a server whose node id is below kMaxServers.
  void Put(uint64_t key, rdma::GlobalAddress record) {
    const uint64_t hash = Mix64(key);
    uint64_t* bucket = BucketOf(hash);
    size_t at = kWays - 1;
    for (size_t way = 0; way < kWays; ++way) {
      if (bucket[way] == 0 || TagOf(bucket[way]) == TagFor(hash)) {
        at = way;
        break;
      }
    }
    std::memmove(bucket + 1, bucket, at * sizeof(uint64_t));
    bucket[0] = EntryFor(hash, record);
  }

  void Forget(uint64_t key) {
    const uint64_t hash = Mix64(key);
    uint64_t* bucket = BucketOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      if (bucket[way] != 0 && TagOf(bucket[way]) == TagFor(hash)) bucket[way] = 0;
    }
  }

  static constexpr rdma::NodeId kMaxServers = 32;

 private:
  static constexpr size_t kWays = kLineBytes / sizeof(uint64_t);
  // Of an entry, from below: 34 bits of the offset in lines (1 TiB), 5 of the node, 25 of the hash.
  static constexpr int kOffsetBits = 34;
  static constexpr int kNodeBits = 5;
  static constexpr int kTagBits = 64 - kOffsetBits - kNodeBits;

  static uint64_t TagFor(uint64_t hash) { return hash & ((uint64_t{1} << kTagBits) - 1); }
  static uint64_t TagOf(uint64_t entry) { return entry >> (64 - kTagBits); }
  static rdma::GlobalAddress AddressOf(uint64_t entry) {
    const auto node = static_cast<rdma::NodeId>((entry >> kOffsetBits) & ((1U << kNodeBits) - 1));
    return {node, (entry & ((uint64_t{1} << kOffsetBits) - 1)) * kLineBytes};
  }
  static uint64_t EntryFor(uint64_t hash, rdma::GlobalAddress record) {
    return TagFor(hash) << (64 - kTagBits) | uint64_t{record.node()} << kOffsetBits | record.offset() / kLineBytes;
  }

  const uint64_t* BucketOf(uint64_t hash) const { return &entries_[((hash >> 32) * buckets_ >> 32) * kWays]; }
  uint64_t* BucketOf(uint64_t hash) { return &entries_[((hash >> 32) * buckets_ >> 32) * kWays]; }

  std::vector<uint64_t> entries_;
  uint64_t buckets_;
};

}  // namespace gannet::ycsb
