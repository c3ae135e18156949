// DEX (Lu, Huang, Liang, Wang, Lo: DEX: Scalable Range Indexing on Disaggregated Memory; VLDB 2024): the B-link tree of
// index/blink, whose clients also cache leaves. START HERE.
//
// The owner's side is that of the B-link tree. A client's side is another: all inner nodes and leaves that this process
// reads at other nodes, of all tables, are in one page cache (cache/page_cache.h), through which a search goes as
// through a tree in local memory (paths.h).
//
// What a copy of a leaf may be used for. A leaf that this node has claimed is what its copy says, for as long as the
// claim lasts (shared_leaf/claim/claim.h): neither a lookup nor the validation of a transaction (PagePool::Confirms)
// takes a verb. A node claims the leaves of its ranges of keys (shared_leaf/claim/claim_ranges.h), if it has any. Any
// other copy is a hint: others may have changed the leaf.
//   - A key that it has leads to a record without a READ of the index, and the record shows whether it is the key's.
//   - For a key that it has not, for a scan, and where entries hold values and there are no records, the state word of
//     the leaf is READ: 8 bytes in place of 448. No state word returns (shared_leaf/leaf/leaf.h), so if it is that of
//     the copy, the copy is the leaf. (A commit would notice, too, that the leaf has changed. But a transaction may end
//     without a commit, because it found no row, and that answer must not be from long ago.)
// A copy that is behind is dropped. A change by this process goes into its copy, too.
//
// In loads without transactions a node can also keep the leaves of its range: it locks those that it caches, and
// changes their copies, which are written back when they are evicted, or written through (ClaimHolder::set_keeping).
// What it has not cached, the owner can read or change for it (section 6: opportunistic offloading; ycsb/client.h): a
// leaf that somebody keeps, the owner refuses (LeafIsKept).
//
// What differs from the paper:
//   - Nodes have 448 bytes, not 1,024, so inner nodes are a larger part of the cache. They are kept decoded
//     (cache/inner_copy.h).
//   - Ranges of keys are advice, and the leaves' words tell who has claimed what, or keeps it. In transactions nothing
//     is dirty in a cache: changes go to the owner's memory by the locks of shared leaves.
//   - A leaf that is changed, and that the cache does not admit, is locked for that; so is one that is split.
//   - All leaves are admitted while blocks of the cache are unused.
//   - A split adds the separator later (blink/blink.h), so no split goes from the top down.
//   - A leaf may be cached whose parent is not, and a thread keeps free frames for each index and owner that it uses.
//     An inner node of byte keys that would take more than a frame is not cached.
//   - Only verbs for claims and kept leaves renew a lease. So a transaction of a node that sends no other verbs to this
//     owner asks for the lease's sake once in 15 ms, by a READ of 8 bytes.
//   - A thread that misses a node which another one READs just now READs it, too: one READ in a thousand, by 36 threads
//     of a machine with zipfian keys. The I/O flag of 5.4 announces only copies of leaves that are claimed or kept.
//   - A call does not keep other threads from caching the leaf (6.2): the word by which they keep it is the one that
//     they have READ, or the CAS fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/blink/blink.h"
#include "index/dex/cache/page_cache.h"
#include "index/shared_leaf/client_options.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index {
namespace dex {

// As that of blink (blink/blink_index.h).
inline constexpr rdma::MethodId kDescribe = kDexMethods;

// What the clients of one index share.
class SharedPages final : public shared_leaf::SharedLeaves {
 public:
  explicit SharedPages(std::shared_ptr<PageCache> cache) : cache_(std::move(cache)), tree_(cache_->AddTree()) {}

  uint64_t bytes() const override { return cache_->BytesOf(tree_); }
  PageCache* cache() const { return cache_.get(); }
  uint16_t tree() const { return tree_; }

  // The index's ranges (shared_leaf/claim/claim_ranges.h), as the owner told them over this connection, when the word
  // of the board was this.
  struct Asked {
    uint64_t connection = 0;
    uint64_t word = 0;
  };
  void SetRanges(std::vector<ClaimRange> ranges, Asked asked);
  // Gives the clients ranges from elsewhere: they ask no owner from then on. For loads whose coordinator tells each
  // machine itself, because a leaf that is kept waits for nobody (ycsb/moving_part.h).
  void Pin(std::vector<ClaimRange> ranges);
  // The owner may have others by now.
  bool MayBeOld(Asked now) const {
    return !is_pinned_.load(std::memory_order_relaxed) &&
           (connection_.load(std::memory_order_relaxed) != now.connection ||
            word_.load(std::memory_order_relaxed) != now.word);
  }
  // True: the caller is to ask, and then calls EndAsking. False: another client asks.
  bool BeginAsking();
  void EndAsking() { asking_until_.store(0, std::memory_order_relaxed); }
  // Changes with each SetRanges; 0: there are no ranges.
  uint64_t ranges_number() const { return number_.load(std::memory_order_acquire); }
  std::vector<ClaimRange> ranges() const;

 private:
  const std::shared_ptr<PageCache> cache_;
  const uint16_t tree_;
  mutable Mutex mutex_;
  std::vector<ClaimRange> ranges_;  // guarded by mutex_
  std::atomic<uint64_t> number_{0};
  std::atomic<uint64_t> connection_{0};  // this and the next: Asked
  std::atomic<uint64_t> word_{0};
  std::atomic<uint64_t> asking_until_{0};
  std::atomic<bool> is_pinned_{false};
};

// The page cache of a process.
class PagePool final : public CachePool {
 public:
  explicit PagePool(const PageCacheOptions& options) : cache_(std::make_shared<PageCache>(options)) {}

  std::shared_ptr<SharedCache> NewCache() override { return std::make_shared<SharedPages>(cache_); }
  bool Confirms(const Witness& witness, const shared_leaf::ClaimHolder& claims) const override;

 private:
  const std::shared_ptr<PageCache> cache_;
};

}  // namespace dex

// A page cache of its own for the clients of one index, of at most `max_bytes`; 0: of PageCacheOptions' default.
std::shared_ptr<dex::SharedPages> MakeDexCache(size_t max_bytes = 0);

using DexClientOptions = shared_leaf::ClientOptions<dex::SharedPages>;  // their cache is from MakeDexCache, or a pool

// The owner's side, and the calls of its clients, as those of blink.h.
StatusOr<std::unique_ptr<LocalIndex>> CreateDex(IndexService* service, IndexId id, KeyKind key_kind,
                                                BlinkOptions options = {});
void RegisterDexMethods(IndexService* service);

StatusOr<std::unique_ptr<RemoteIndex>> ConnectDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                  const DexClientOptions& options);

}  // namespace gannet::index
