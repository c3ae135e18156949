// KeptLeaves: the verbs for the leaves that a node keeps (shared_leaf/claim/claim.h): those that write them back, write
// a change through, and renew their lease. The copies are in the page cache (Paths::ChangeKept).
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dex/paths.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dex {

// Keys: IntegerKeys or ByteKeys, of which no leaf is kept. Used by one thread at a time.
template <class Keys>
class KeptLeaves {
 public:
  using Key = typename Keys::Key;
  using KeptLeaf = typename Paths<Keys>::KeptLeaf;

  // `leaves`: of the owner. All must outlive this.
  KeptLeaves(shared_leaf::LeafChannel* leaves, shared_leaf::ClaimHolder* claims, PageCache* cache, Paths<Keys>* paths)
      : channel_(leaves->channel()),
        owner_(leaves->owner()),
        leaves_(leaves),
        claims_(claims),
        cache_(cache),
        paths_(paths) {}

  // Writes back and unlocks the leaves whose frames were taken: of all trees and owners.
  coro::Task<void> WriteBack();
  // Writes a change that was made in the copy, whose frame is latched. Unavailable: the connection has ended, and the
  // leaf is lost; whether the owner has the change is not known.
  coro::Task<Status> WriteThrough(KeptLeaf kept);
  // READs the state word of a kept leaf, which renews the lease, or shows that the leaf is lost.
  coro::Task<void> Renew(KeptLeaf kept);
  // It is not known whether the CAS that keeps the leaf was made; `state` is that of KeptOf.
  coro::Task<void> UnlockIfKept(rdma::GlobalAddress leaf, uint64_t state, shared_leaf::Lease lease);
  // Writes back and unlocks the leaves of this tree that may have keys from `from` to `to`.
  coro::Task<Status> HandBack(Key from, Key to);

 private:
  using Image = typename Keys::Image;

  // The WRITEs that write a leaf back and unlock it.
  void AppendWriteBack(const KeptFrame& kept, shared_leaf::Lease lease, shared_leaf::Posting* posting);
  // The one that only unlocks it.
  void AppendUnlock(rdma::GlobalAddress leaf, uint64_t state, shared_leaf::Lease lease, shared_leaf::Posting* posting);
  // Posts the WRITEs of one kept leaf, whose state word is `before` until the last of them, until they have taken
  // effect. `check`: READs the word first, because they may have already, or the leaf may not be kept. An error: the
  // connection has ended.
  coro::Task<Status> Post(rdma::GlobalAddress leaf, uint64_t before, shared_leaf::Lease lease, bool check,
                          shared_leaf::Posting* posting);

  rdma::Channel* const channel_;
  const rdma::NodeId owner_;
  shared_leaf::LeafChannel* const leaves_;
  shared_leaf::ClaimHolder* const claims_;
  PageCache* const cache_;
  Paths<Keys>* const paths_;
};

}  // namespace gannet::index::dex
