// LeafChannel: reads, locks and changes shared leaves of one owner over a channel.
//
// Failures. A verb that fails although the owner is alive may or may not have taken effect, but has no effect later
// (fabric.h, 5). So the outcome of a lock is read from the leaf, and a posting is repeated while the leaf is still
// locked. All verbs of a change name the connection over which the lock was taken. If that connection ends, the owner
// repairs the leaf as if this node had died, and none of the verbs takes effect any more. If this node has died, which
// its threads need not know, all its verbs fail: none is repeated then.
//
// The owner reads its own leaves by its CPU. It also changes them by its CPU, if that and NICs may lock the same words
// (rdma::Capabilities), or if no NIC may (IndexRights::kOwnerOnly); otherwise by verbs, like a client.
//
// Coroutines of one channel have the same owner bits, so "locked by us" must be this coroutine's lock: before a leaf is
// locked, its address is noted here, and no other coroutine of the channel asks for its lock until it is released.
//
// Not thread-safe, as the channel. Errors: Unavailable, if the owner cannot be reached, or if a leaf stays locked for
// longer than `patience`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/coro/task.h"
#include "base/runtime.h"
#include "base/status.h"
#include "index/claim_boards.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

// Is told of the leaves that a channel changes: a client's cache of leaves. Used by the channel's thread.
class LeafWatch {
 public:
  // The watch notes this when a change begins, and gets it back at the end.
  struct Note {
    uint64_t grant = 0;
    uint64_t mark = 0;
  };
  // The channel is about to ask for the lock of a leaf with this unlocked word, over `connection`. From now on no copy
  // is good without a verb (claim/claim.h): the lock may be taken as soon as this returns. Returns what NoteRelease
  // gets as `noted`; nullopt: not now, the leaf is to be READ again.
  virtual std::optional<Note> NoteLock(rdma::GlobalAddress leaf, uint64_t state, uint64_t connection) = 0;
  // The leaf was found changed, or what became of the change is not known.
  virtual void NoteChanged(rdma::GlobalAddress leaf) = 0;
  // This channel has changed the leaf from the word `before` to `after` by the WRITEs among `operations`, and has
  // released the lock: others may have changed the leaf since.
  struct Release {
    rdma::GlobalAddress leaf;
    uint64_t before;
    uint64_t after;
    Note noted;
    std::span<const rdma::Operation> operations;
  };
  virtual void NoteRelease(const Release& release) = 0;

 protected:
  ~LeafWatch() = default;
};

// The error of a change of a leaf that another node has claimed: the owner is to make it.
Status ClaimedElsewhere(rdma::GlobalAddress leaf);
bool IsClaimedElsewhere(const Status& status);

// The error of a verb, or of a call, that may have taken effect.
inline bool IsUnknownOutcome(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

class LeafChannel {
 public:
  // kClient: reads and changes leaves by verbs, also those of its own node. An operation then suspends whenever it
  // looks at a leaf, so a coroutine that waits for the lock of another one of its thread lets that one go on.
  enum class As : uint8_t { kOwner, kClient };

  // `node`: of the channel; null if neither node is ever lost, or dies, while this is used. `fence_lines`: of the
  // leaves (tagged_leaf.h). `own`: the blocks of the leaves, if the owner is this node, and `boards` of the nodes that
  // may have claimed them (null: nobody has); both outlive this. `as` has no effect if the owner is another node.
  LeafChannel(rdma::Channel* channel, rdma::Node* node, rdma::NodeId owner, absl::Duration patience,
              size_t fence_lines = 0, const LeafBlocks* own = nullptr, As as = As::kOwner,
              ClaimBoards* boards = nullptr);

  // `watch` must outlive the channel's use. Null: none.
  void set_watch(LeafWatch* watch) { watch_ = watch; }

  rdma::Channel* channel() const { return channel_; }
  rdma::NodeId owner() const { return owner_; }
  uint64_t owner_bits() const { return owner_bits_; }
  size_t fence_lines() const { return fence_lines_; }
  size_t leaf_bytes() const { return LeafBytesWith(fence_lines_); }
  // The leaves are in this node's memory, and are read by its CPU. False for a client.
  bool is_own() const { return is_own_; }
  const LeafBlocks* own_blocks() const { return own_blocks_; }
  // Judges the image of a READ of leaf_bytes() that the caller has posted itself. First it sets the image's number of
  // fence lines to that of the index: what was READ may have another.
  template <class Head>
  LeafLook Judge(BasicLeafImage<Head>* image) const {
    image->head.set_fence_lines(fence_lines_);
    return LookAtLeaf(*image);
  }
  uint64_t leaves_read() const { return leaves_read_; }
  uint64_t patience_nanos() const { return patience_nanos_; }
  // This node has died, which its threads need not know.
  bool is_dead() const {
    return node_ != nullptr && (own_life_ == 0 || node_->ConnectionTo(channel_->node()) != own_life_);
  }

  // READs a leaf until its image is whole or dead, which it returns. InvalidArgument if there is no leaf at this
  // address, as a hostile client may have written it. `along`: READs that go out with the first one of the leaf; only
  // of a client. `kept`: what to do with a leaf that is kept. To wait, or LeafIsKept if this node keeps it or is its
  // owner; or to return kLocked; then its fences are right, because its holder does not change them.
  enum class IfKept : uint8_t { kWait, kReturn };
  template <class Head>
  coro::Task<StatusOr<LeafLook>> Read(rdma::GlobalAddress leaf, BasicLeafImage<Head>* image,
                                      std::span<const rdma::Operation> along = {}, IfKept kept = IfKept::kWait);

  // Looks at a leaf once, and waits for nobody. kWhole: nobody had locked it at some moment of this call; this is what
  // it was then. kLocked or kTorn: somebody changes it. InvalidArgument: as Read.
  template <class Head>
  coro::Task<StatusOr<LeafLook>> Glance(rdma::GlobalAddress leaf, BasicLeafImage<Head>* image);

  // Another node has claimed a leaf with this word, and this one may not change it. Not for an owner.
  bool IsClaimedByAnother(uint64_t state) const {
    return !is_own_ && IsClaimed(state) && HolderOf(state) != channel_->node();
  }
  // Takes the lock. False: the leaf has changed since the draft's image, or this channel is changing it now.
  // `connection`: that of another lock, or of the blocks that the change makes leaves; then False also if it has ended.
  // 0: any. The owner ends a claim of the leaf first. ClaimedElsewhere: another node has claimed it.
  coro::Task<StatusOr<bool>> Lock(const LeafLock& draft, uint64_t connection = 0);
  // Locks a leaf, changes it and unlocks it by the owner's CPU, without a coroutine. False: the leaf is claimed, or has
  // changed since the draft's image, and nothing was done. Only if may_change_at_once(). `lock`: of the draft, before
  // it appended its change to `posting`.
  bool ChangeAtOnce(const rdma::Operation& lock, Posting* posting);
  bool may_change_at_once() const { return by_own_cpu_ && locked_.empty(); }
  // The connection over which this channel took the lock of `leaf`, which it holds.
  uint64_t ConnectionOf(rdma::GlobalAddress leaf) const { return locked_.at(leaf.bits()).connection; }
  // Gives back a lock; no line was written.
  coro::Task<Status> GiveBack(const LeafLock& draft);
  // Posts a change of `leaf`, whose lock Lock took: its WRITEs end with line 0 that unlocks it. Further leaves in the
  // posting are new, or locked by Lock and released by a CAS in the posting. Last in it may be FAAs that are hints: if
  // the change has to be posted again, they are made twice, or not at all, and their results may stay what they were.
  // Verbs behind the first `changes` are hints that are never posted again.
  coro::Task<Status> Commit(rdma::GlobalAddress leaf, Posting* posting, size_t changes = SIZE_MAX);
  // Posts verbs that are not part of a change, on writable memory of the owner. If it fails, they may have taken
  // effect.
  coro::Task<Status> PostHint(std::span<rdma::Operation> operations);

  // Lock and Commit in parts, for a caller that posts the verbs of several leaves together. It is alone on the channel
  // (rdma::Channel::Alone) from the first NoteLock to the last TakeChange. None of these suspends then, and they go on
  // until it is known what the verbs did, or `connection`, over which they were posted, has ended.
  //
  // NoteLock is called before the lock's CAS is posted. False: this channel is changing the leaf now, or somebody of
  // this node is claiming it. Not of a leaf that IsClaimedByAnother.
  bool NoteLock(const LeafLock& draft, uint64_t connection);
  // The outcome of the lock's CAS, after a posting with this result.
  coro::Task<StatusOr<bool>> TakeLock(rdma::Operation cas, Status posted);
  // The outcome of a change's operations (as those of Commit).
  coro::Task<Status> TakeChange(rdma::GlobalAddress leaf, std::span<rdma::Operation> operations, Status posted);

  // The following serve locks that have more states than this one.
  //
  // Carries out verbs on the owner's memory: by this CPU, if it may change leaves. It then READs words, not lines, so
  // what it has READ is right only if nobody writes lines of the leaf meanwhile.
  coro::Task<Status> Post(std::span<rdma::Operation> operations);
  // InvalidArgument: no leaf can be there.
  Status CheckAddress(rdma::GlobalAddress leaf) const;
  // The state word of a leaf that this channel has locked.
  bool IsOurs(uint64_t state) const {
    return IsLocked(state) && !rdma::IsLineBusy(state) && (state & OwnerBits(0x7fff, 0x7f)) == owner_bits_;
  }
  // The connection to the owner; 0: there is none to lose.
  uint64_t Connection() const {
    return node_ == nullptr || owner_ == channel_->node() ? 0 : node_->ConnectionTo(owner_);
  }
  // Whether what failed is not to be repeated any more.
  bool IsOver(uint64_t connection, uint64_t deadline) const;
  // READs a word of a leaf, over the connection, until that succeeds: what a verb has done whose outcome is unknown.
  coro::Task<StatusOr<uint64_t>> ReadWord(rdma::GlobalAddress word, uint64_t connection);

  // The lock of a further leaf was released by a posting that Commit has posted. The leaf is dead.
  void NoteReleased(rdma::GlobalAddress leaf) { Drop(leaf); }

  // The owner takes away a claim: by the board of its holder, or from one that has lost it. False: the leaf has another
  // word by now, or its holder cannot be reached, and the repair will end the claim.
  enum class EndBy : uint8_t { kBoard, kLoss };
  coro::Task<StatusOr<bool>> EndClaim(rdma::GlobalAddress leaf, uint64_t claim, EndBy by);

 private:
  struct Held {
    uint64_t connection = 0;
    uint64_t before = 0;  // this and the next: of LeafWatch
    LeafWatch::Note noted{};
  };
  // The leaf is not locked by this channel any more, and is not what it was.
  void Drop(rdma::GlobalAddress leaf) {
    locked_.erase(leaf.bits());
    if (watch_ != nullptr) watch_->NoteChanged(leaf);
  }
  // The lock was released by `operations`.
  void Release(rdma::GlobalAddress leaf, std::span<const rdma::Operation> operations);
  // Judges what this channel has READ itself.
  template <class Head>
  LeafLook JudgeRead(BasicLeafImage<Head>* image) {
    ++leaves_read_;
    Charge(Cost::kRecordLine, leaf_bytes() / kLineBytes);
    return Judge(image);
  }
  // Carries out operations on this node's memory by its CPU.
  void CarryOut(std::span<rdma::Operation> operations);
  // At the owner: no copy of a claimed leaf is good any more. False: not yet; the repair sees to that.
  coro::Task<bool> EndCopies(rdma::GlobalAddress leaf, uint64_t claim);

  rdma::Channel* channel_;
  rdma::Node* node_;
  rdma::NodeId owner_;
  uint64_t own_life_;  // connection of this node to itself; 0: it was dead already, or there is no `node_`
  size_t fence_lines_;
  const LeafBlocks* own_blocks_;
  bool is_own_;      // the leaves are in this node's memory
  bool by_own_cpu_;  // and this node's CPU may change them
  ClaimBoards* boards_;
  uint64_t owner_bits_;
  uint64_t patience_nanos_;
  uint64_t leaves_read_ = 0;
  LeafWatch* watch_ = nullptr;
  absl::flat_hash_map<uint64_t, Held> locked_;  // leaves that are locked, or may be
};

}  // namespace gannet::index::shared_leaf
