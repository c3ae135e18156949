// ClientCaches: the caches that all sessions of a database share: one for each owner and each table whose kind of index
// has such caches (index::SharedCache).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "index/index.h"
#include "index/registry.h"
#include "rdma/fabric.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Thread-safe.
class ClientCaches {
 public:
  // The cache of the table's part at `owner`, made at the first call. Null if clients of its index share none.
  // `pool_bytes`: of the caches of all tables of its kind, if they have their memory in common.
  std::shared_ptr<index::SharedCache> Of(const Table& table, rdma::NodeId owner, size_t pool_bytes) {
    const index::IndexKindEntry& kind = index::EntryOf(table.options().index);
    if (kind.make_cache == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<index::SharedCache>& cache = caches_[{table.id(), owner}];
    if (cache == nullptr)
      cache = kind.make_pool == nullptr ? kind.make_cache(0) : MakePool(kind, pool_bytes).NewCache();
    return cache;
  }

  // The memory that the caches of all tables of the kind have in common. Null: no cache of it was made, or each has its
  // own. It stays until this is destroyed.
  const index::CachePool* PoolOf(const index::IndexKindEntry& kind) const {
    const std::lock_guard lock(mutex_);
    const auto found = pools_.find(&kind);
    return found == pools_.end() ? nullptr : found->second.get();
  }

  // The table has been dropped. A session that has one of its caches keeps that until it drops it.
  void Forget(TableId table) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = CachesOf(table);
    caches_.erase(first, last);
  }

  // The sum over all owners.
  uint64_t BytesOf(TableId table) const {
    const std::lock_guard lock(mutex_);
    uint64_t sum = 0;
    const auto [first, last] = CachesOf(table);
    for (auto at = first; at != last; ++at) sum += at->second->bytes();
    return sum;
  }

 private:
  using Caches = std::map<std::pair<TableId, rdma::NodeId>, std::shared_ptr<index::SharedCache>>;

  // The caller has the lock.
  std::pair<Caches::const_iterator, Caches::const_iterator> CachesOf(TableId table) const {
    return {caches_.lower_bound({table, 0}), caches_.upper_bound({table, std::numeric_limits<rdma::NodeId>::max()})};
  }
  index::CachePool& MakePool(const index::IndexKindEntry& kind, size_t bytes) {
    std::shared_ptr<index::CachePool>& pool = pools_[&kind];
    if (pool == nullptr) pool = kind.make_pool(bytes);
    return *pool;
  }

  mutable Mutex mutex_;  // guards the members below
  std::map<const index::IndexKindEntry*, std::shared_ptr<index::CachePool>> pools_;
  Caches caches_;
};

}  // namespace gannet::txn
