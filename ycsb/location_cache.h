// LocationCache: the places of records that a client has read, so that reading one again is one READ. It maps a hash of
// the key to an address, with 8 bytes per entry. The user of an address must check that the record there holds the key,
// and forget the entry if it does not (from_cache in index/index.h).
//
// A bucket is one cache line with 8 entries; a new entry evicts the oldest one.
//
// Not thread-safe, except in simulations, which run one thread at a time.
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
  // The cache has at most `max_bytes`, but at least one bucket; fewer than 2^32 of them.
  explicit LocationCache(size_t max_bytes)
      : entries_(std::max<size_t>(max_bytes / kLineBytes, 1) * kWays), buckets_(entries_.size() / kWays) {}

  size_t bytes() const { return entries_.size() * sizeof(uint64_t); }

  // Null: unknown. The address may belong to another key.
  rdma::GlobalAddress Find(uint64_t key) const {
    Charge(Cost::kIndexStep, 1);
    const uint64_t hash = Mix64(key);
    const uint64_t* bucket = BucketOf(hash);
    for (size_t way = 0; way < kWays; ++way) {
      if (bucket[way] != 0 && TagOf(bucket[way]) == TagFor(hash)) return AddressOf(bucket[way]);
    }
    return {};
  }

  // `record` must be on a server whose node id is below kMaxServers.
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
  // Bits of an entry, from the lowest: 34 of the offset in lines (1 TiB), 5 of the node, 25 of the hash.
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
