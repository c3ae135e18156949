// Paths: a client's ways through one tree, as the page cache of its process has them (cache/page_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/blink/path_cache.h"
#include "index/dex/cache/inner_copy.h"
#include "index/dex/cache/leaf_copy.h"
#include "index/dex/cache/page_cache.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/claim/kept_edit.h"

namespace gannet::index::dex {

// The state word and the grant of the copy of a leaf that this process has claimed, or keeps. nullopt: there is no such
// copy, or somebody writes it. Thread-safe.
struct GrantedWord {
  uint64_t state = 0;
  shared_leaf::Grant grant;
};
std::optional<GrantedWord> FindGranted(const PageCache& cache, rdma::GlobalAddress leaf);

// Keys: IntegerKeys or ByteKeys. Used by one thread at a time.
template <class Keys>
class Paths final : public blink::PathCache<Keys> {
 public:
  using typename blink::PathCache<Keys>::LeafCopy;
  using typename blink::PathCache<Keys>::Point;
  using Key = typename Keys::Key;
  using Image = typename Keys::Image;

  // `cache` must outlive this. `tree`: its number there.
  Paths(PageCache* cache, uint16_t tree) : cache_(*cache), user_(cache), tree_(tree) {}

  // Before the first use of what follows.
  void set_root(rdma::GlobalAddress root) { root_ = root; }

  std::optional<blink::Start> StartFor(const Point& point, uint8_t level) override;
  void Keep(const LeafCopy& inner) override;
  void Drop(const Point& point, uint8_t level) override;
  bool FindCurrent(const Point& point, uint8_t level, LeafCopy* leaf) override;

  // The copy of the leaf that covers the point, whole, and its grant. False: there is none.
  bool FindLeaf(const Point& point, LeafCopy* copy, shared_leaf::Grant* grant);
  // The entry of the key in the copy, which is searched where it is; null: the leaf does not have the key. False: there
  // is no copy, or the keys are byte keys. *busy: another thread is changing the copy of a kept leaf.
  bool FindEntry(const Key& key, rdma::GlobalAddress* target, Witness* leaf, shared_leaf::Grant* grant, bool* busy);
  // The copy of this leaf.
  bool LoadLeaf(rdma::GlobalAddress leaf, Image* image, shared_leaf::Grant* grant);
  // A leaf that was READ just now, and is whole: as a hint. `admitted`: AdmitsLeaf has said so.
  void KeepLeaf(const LeafCopy& leaf, bool admitted = false);
  bool AdmitsLeaf() { return cache_.Admits(&user_, 0); }
  // The node of this level to which the copies lead; null: none does.
  rdma::GlobalAddress NodeAt(const Point& point, uint8_t level);
  // A copy of this node is behind.
  void Forget(rdma::GlobalAddress node) { cache_.Drop(&user_, node); }

  // Claims (shared_leaf/claim/claim.h). `claims` must outlive this.
  void set_claims(const shared_leaf::ClaimHolder* claims) { claims_ = claims; }
  // There is a copy of this leaf with this word, which this node has claimed.
  bool HasClaimed(rdma::GlobalAddress leaf, uint64_t claim) const {
    const std::optional<GrantedWord> found = FindGranted(cache_, leaf);
    return found.has_value() && found->state == claim;
  }
  // Before the CAS of a claim: from now on a change of this leaf by this process waits (Weaken), until KeepClaimed or
  // Withdraw. A hint is forgotten. False: not now.
  bool Announce(rdma::GlobalAddress leaf);
  void Withdraw(rdma::GlobalAddress leaf) { cache_.Withdraw(leaf); }
  // The leaf as it is since the CAS; of a kept leaf with the word that it would have unlocked. There may be no room for
  // it; then a kept one is among TakeKept.
  void KeepClaimed(const LeafCopy& leaf, shared_leaf::Grant grant);
  // Before the lock of a change by this process: the copy of this leaf is no more than a hint from now on. Returns the
  // mark that it has in place of a grant; nullopt: a claim is being made, or somebody has the latch.
  std::optional<uint64_t> Weaken(rdma::GlobalAddress leaf);
  // This process has changed a leaf of `leaf_bytes`. A copy of what was there before becomes a copy of what is there
  // now. It gets this grant if it has the mark still: otherwise another thread may have changed the leaf again.
  void TakeChange(const shared_leaf::LeafWatch::Release& change, size_t leaf_bytes, shared_leaf::Grant grant);

  // Kept leaves. Of byte keys there are none.
  enum class Kept : uint8_t {
    kDone,
    kToWrite,   // changed, and latched; the caller writes it to the owner, and then calls Wrote or Forsake
    kNotFound,  // this and the next: nothing is changed, for this reason
    kExists,
    kFull,
    kBusy,       // another thread has the latch
    kLeaseOver,  // a READ of the state word may renew it
    kNotKept,
  };
  struct KeptLeaf {
    rdma::GlobalAddress leaf;
    uint64_t state = 0;  // as it would be unlocked
    shared_leaf::Grant grant;
    LatchedFrame frame;  // of kToWrite
  };
  // Changes the copy; null `leaf`: that to which the way of the key leads. `through`: the owner is to have the change
  // before it counts.
  Kept ChangeKept(const shared_leaf::KeptEdit<Keys>& edit, rdma::GlobalAddress leaf, bool through, KeptLeaf* kept);
  void Wrote(const LatchedFrame& frame, const Image& image, uint16_t lease);
  void Forsake(const LatchedFrame& frame) { cache_.Forsake(&user_, frame); }
  // This node has lost the leaf, and what was not written back. False: the copy is another by now.
  bool ForsakeKept(const KeptLeaf& kept);
  // The next search of an editor for this leaf finds it as it was READ here.
  void Expect(const LeafCopy& leaf) { expected_ = leaf; }
  // Kept leaves whose frames were taken, of any tree; they are the caller's, to be written back.
  bool has_kept() const { return user_.has_kept(); }
  std::vector<KeptFrame> TakeKept() { return user_.TakeKept(); }
  // Adds one for which there was no frame.
  void AddKept(rdma::GlobalAddress leaf, const Image& image, shared_leaf::Grant grant);
  // Takes the frames of this tree's kept leaves with keys from `from` to `to`, from block `at` on, some of them.
  // Returns where to go on; nullopt: at the end. *missed: a frame was latched.
  std::optional<size_t> TakeKeptFrom(size_t at, const Key& from, const Key& to, bool* missed);

  // The addresses of the leaf that covers the point and of those behind it up to `to` (in reverse: before it), as far
  // as one inner node knows them. Returns their number. *skipped: as InnerBody::FindFrom.
  size_t LeavesFrom(const Point& point, const Key& to, bool reverse, std::span<rdma::GlobalAddress> leaves,
                    double* skipped);

  // Levels from the one of the first node that a search for the leaf would READ, down to the leaf; 0: it is cached.
  int LevelsToRead(const Point& point);

 private:
  // Where a way ends in the cache.
  struct End {
    bool is_reached = false;  // at a copy of the level that was asked for: then the next three are of it
    FrameId frame = kNoFrame;
    FrameLook look;
    Place place;
    rdma::GlobalAddress node;  // that was reached, or is missing; null: the root is missing
    // The next copy is of a kept leaf, which another thread is changing.
    bool is_busy = false;
    // The copy that leads to it, and its level; kMaxLevels: none does.
    FrameId parent = kNoFrame;
    uint8_t above = blink::kMaxLevels;
  };
  // Goes from the root to the copy of `level` that covers the point, as far as there are copies.
  End Follow(const Point& point, uint8_t level);
  // False: copies have changed meanwhile.
  bool FollowOnce(const Point& point, uint8_t level, End* end);
  // Puts a copy of this node into a frame of that size: `write` writes its body. False: there is no room.
  enum class Entry : uint8_t { kDraw, kAdmitted, kAnnounced, kKept };
  template <class Write>
  bool Put(const LeafCopy& node, FrameSize size, size_t children, Entry entry, Write write);
  // The copy of this leaf, wherever the ways lead.
  End EndAt(rdma::GlobalAddress leaf) const;
  bool IsKept(rdma::GlobalAddress leaf) const;
  // The leaf in a frame that was found. False: it has changed.
  bool Load(const FrameLook& look, Image* image, shared_leaf::Grant* grant);

  PageCache& cache_;
  PageCache::User user_;
  const uint16_t tree_;
  const shared_leaf::ClaimHolder* claims_ = nullptr;
  rdma::GlobalAddress root_;
  uint8_t root_level_ = 0;  // as it was READ last; 0: not yet
  std::optional<LeafCopy> expected_;
};

}  // namespace gannet::index::dex
