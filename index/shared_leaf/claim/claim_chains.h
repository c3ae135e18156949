// ClaimChains: words of leaves between which there are claims of this process only (claim.h). A claim changes the state
// word of a leaf, and no set of keys: a transaction whose witness is a word from before must not conflict with it. That
// matters where the page cache is too small for what a transaction reads: a leaf is claimed, its copy evicted, and the
// leaf claimed again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "base/thread.h"
#include "index/lock_word.h"
#include "rdma/global_address.h"

namespace gannet::index::shared_leaf {

// Thread-safe.
class ClaimChains {
 public:
  // A CAS has changed the leaf's word from `before` to `after`: this process has claimed it, or the owner has ended a
  // claim for that.
  void Note(rdma::GlobalAddress leaf, uint64_t before, uint64_t after) {
    Part& part = PartOf(leaf);
    const std::lock_guard lock(part.mutex);
    is_empty_.store(false, std::memory_order_relaxed);
    if (part.chains.size() >= kMostOfPart) part.chains.clear();
    const auto [at, is_new] = part.chains.try_emplace(leaf.bits(), Chain{before, after});
    if (is_new) return;
    if (at->second.last != before) at->second.first = before;
    at->second.last = after;
  }

  // Nothing was noted: this process claims nothing.
  bool is_empty() const { return is_empty_.load(std::memory_order_relaxed); }

  // The leaf, whose word is `now`, has the set of keys that it had when its word was `seen`, unlocked. False: that is
  // not known. (No version of a leaf returns, so an unlocked word between the first and the last of a chain is one of
  // the chain.)
  bool Has(rdma::GlobalAddress leaf, uint64_t seen, uint64_t now) const {
    const Part& part = PartOf(leaf);
    const std::lock_guard lock(part.mutex);
    const auto at = part.chains.find(leaf.bits());
    if (at == part.chains.end() || at->second.last != now) return false;
    const auto since_first = [&](uint64_t word) { return VersionOf(word - at->second.first); };
    return since_first(seen) <= since_first(now);
  }

 private:
  static constexpr size_t kParts = 16;
  static constexpr size_t kMostOfPart = 4096;

  struct Chain {
    uint64_t first = 0;
    uint64_t last = 0;
  };
  struct Part {
    mutable Mutex mutex;
    absl::flat_hash_map<uint64_t, Chain> chains;  // by leaf
  };
  Part& PartOf(rdma::GlobalAddress leaf) { return parts_[leaf.offset() / 64 % kParts]; }
  const Part& PartOf(rdma::GlobalAddress leaf) const { return parts_[leaf.offset() / 64 % kParts]; }

  std::array<Part, kParts> parts_;
  std::atomic<bool> is_empty_{true};
};

}  // namespace gannet::index::shared_leaf
