// HolderBook: which leaves of an index this node is inside of, on the shared side (leaf.h). A node has one bit in a
// leaf, so one of its coroutines is inside, or on the way in or out, at a time. Otherwise a second FAA would carry into
// the bit of another node. All channels of the node's process share the book of an index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "base/cache_line.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/global_address.h"

namespace gannet::index::dolphin {

// Thread-safe.
class HolderBook {
 public:
  // The book of a node for an index of `owner`. A process may have several nodes; each is known by its memory.
  static std::shared_ptr<HolderBook> Of(const std::byte* node_memory, rdma::NodeId owner, IndexId index);

  // False: somebody is inside by this connection. What came over an ended one is over: the owner has taken that bit
  // away.
  bool Enter(rdma::GlobalAddress leaf, uint64_t connection) {
    Shard& shard = ShardOf(leaf);
    std::lock_guard lock(shard.mutex);
    const auto [at, is_new] = shard.inside.try_emplace(leaf.bits(), connection);
    if (!is_new && at->second == connection) return false;
    at->second = connection;
    return true;
  }
  void Leave(rdma::GlobalAddress leaf) {
    Shard& shard = ShardOf(leaf);
    std::lock_guard lock(shard.mutex);
    shard.inside.erase(leaf.bits());
  }

 private:
  static constexpr size_t kShards = 16;

  struct Shard {
    Mutex mutex;
    absl::flat_hash_map<uint64_t, uint64_t> inside;  // connections, by leaf
  };
  Shard& ShardOf(rdma::GlobalAddress leaf) { return shards_[leaf.offset() / kLineBytes % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace gannet::index::dolphin
