// TernaryLock: the lock of a leaf of Dolphin by verbs (leaf.h): reads beside it, the shared side, the exclusive side.
//
// Failures. A verb that fails although the owner is alive may or may not have taken effect, but has no effect later
// (fabric.h, 5). What became of it is READ: the node's own bit, the state word, or the word of an insert. All verbs
// name the connection over which the side was taken. If that has ended, the owner repairs the leaf as if this node had
// died.
//
// Not thread-safe, as the channel; coroutines of its worker may use it at once. Errors: Unavailable, if the owner
// cannot be reached, or if a leaf stays locked for longer than the patience of the channel; InvalidArgument, if no leaf
// can be at an address; DataLoss, if a client has damaged a leaf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/holder_book.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

// The lines of the leaf, or its entries, do not belong together.
Status DamagedLeaf(rdma::GlobalAddress leaf);

// Keys: IntegerKeys or ByteKeys (keys.h).
template <class Keys>
class TernaryLock {
 public:
  using Leaf = typename Keys::Leaf;

  // Both must outlive this. `shape_lines`: of the leaves of the index (Keys::Schema). `book`: of this node, whose
  // number is below 64, for the index. `rights`: of the index.
  TernaryLock(shared_leaf::LeafChannel* leaves, size_t shape_lines, HolderBook* book,
              IndexRights rights = IndexRights::kClients);

  shared_leaf::LeafChannel* leaves() const { return leaves_; }
  rdma::NodeId node() const { return leaves_->channel()->node(); }
  size_t shape_lines() const { return shape_lines_; }

  // READs a leaf until its image is valid, or dead. kWitness: with an FAA of 0 on the state word before it, in the same
  // posting; then image->lock.state is what that found. As long as the leaf has this word, it has the keys of the
  // image, and no others.
  // If only the owner changes the index, a READ of the word takes the place of the FAA, in a posting of its own.
  enum class For : uint8_t { kEntry, kWitness };
  coro::Task<StatusOr<LeafLook>> Read(rdma::GlobalAddress leaf, For use, Leaf* image);

  // READs several leaves once, in one posting, at most kMostReads. looks[i]: what images[i] is. The addresses are
  // checked.
  static constexpr size_t kMostReads = 16;
  coro::Task<Status> ReadOnce(std::span<const rdma::GlobalAddress> leaves, For use, std::span<Leaf> images,
                              std::span<LeafLook> looks);
  // The READ of a part of a leaf, for a posting of the caller; Judge judges what it has brought.
  rdma::Operation ReadOf(rdma::GlobalAddress leaf, Part part, Leaf* image) const {
    return rdma::Operation::Read(leaf, image, static_cast<uint32_t>(Leaf::BytesOf(part, shape_lines_)));
  }
  LeafLook Judge(Leaf* image, Part part) const { return LookAtLeaf(image, shape_lines_, part); }

  // A stay on the shared side.
  struct Stay {
    rdma::GlobalAddress leaf;
    uint64_t connection = 0;
    Leaf image;  // as READ inside, or as far as it was
  };
  // kWhole: this node is inside, alone of its coroutines, and the image is valid. kLocked: somebody has, or wants, the
  // exclusive side, or another coroutine of this node is inside. kDead, kTorn: the leaf is not, or no longer, what was
  // looked for.
  coro::Task<StatusOr<LeafLook>> Enter(rdma::GlobalAddress leaf, Part part, Stay* stay);
  // A slot that is reserved for a key word.
  struct Reservation {
    int slot = 0;
    uint64_t key_word = 0;
    // What the CAS has found: 0 if the slot was free. nullopt: it is not known what became of the CAS.
    std::optional<uint64_t> found = {};
  };
  // Reserves slots by CASes of one posting, in this order.
  coro::Task<Status> Reserve(const Stay& stay, std::span<Reservation> reservations) requires(!Keys::kKeysElsewhere);

  // The change of a slot that a node makes as it leaves. Places are those of words in the leaf.
  struct Departure {
    enum class Do : uint8_t {
      kFill,    // writes `word`, a target, then `key_word` into a slot that is reserved for that
      kVoid,    // writes kGone to a slot that is reserved
      kUpdate,  // writes `word`, a value
      kInsert,  // CAS of a free slot to `word`, an entry of byte keys whose record no other insert has
      kSwap,    // CAS from `expected` to `word`: removes or replaces an entry
    };
    Do what = Do::kFill;
    size_t at = 0;  // the place of `word`
    uint64_t word = 0;
    uint64_t expected = 0;
    size_t key_at = 0;
    uint64_t key_word = 0;

    bool is_cas() const { return what == Do::kInsert || what == Do::kSwap; }
  };
  struct Left {
    bool is_done = true;   // kInsert, kSwap: the word was what was expected
    bool is_known = true;  // false: it is not known what a kUpdate, kInsert or kSwap did; others were made
    // The state word that was raised, in its unlocked form; 0: it is not known, or was not raised.
    uint64_t before = 0;
  };
  // Changes words of slots, raises the state word, takes the bit away, by one posting. A kUpdate alone raises nothing:
  // it changes a value. Several changes are none of them CASes. Error: it is not known whether this node has left.
  coro::Task<StatusOr<Left>> Leave(const Stay& stay, std::span<const Departure> departures);

  // Takes the exclusive side of a leaf that had this unlocked state word. True: this channel is alone, and `image` is
  // the leaf, with its locked state word. False: the leaf has changed, or others stay inside; nothing is locked.
  // `connection`: as LeafChannel::Lock.
  coro::Task<StatusOr<bool>> Lock(rdma::GlobalAddress leaf, uint64_t state, uint64_t connection, Leaf* image);
  // READs the state word first, and then does what Lock does. False also if the leaf is locked or dead.
  coro::Task<StatusOr<bool>> LockAsItIs(rdma::GlobalAddress leaf, uint64_t connection, Leaf* image);
  // Gives it back; no line was written. `image`: of Lock.
  coro::Task<Status> GiveBack(rdma::GlobalAddress leaf, const Leaf& image);

  // Lock in parts, for a caller that posts the verbs of several leaves together (LeafChannel::NoteLock). AppendLock
  // appends [CAS, FAA of 0, READ]. When TakeLock has found the lock taken, IsAlone says whether nobody was inside, and
  // the image is valid; otherwise it is to be given back.
  void AppendLock(const shared_leaf::LeafLock& lock, uint64_t connection, Leaf* image,
                  std::vector<rdma::Operation>* operations) const;
  // `found`: what the FAA has found.
  bool IsAlone(const shared_leaf::LeafLock& lock, uint64_t found, Leaf* image) const;
  coro::Task<Status> GiveBack(const shared_leaf::LeafLock& lock) {
    return Release(lock.address(), lock.Lock().operand, lock.unlocked());
  }
  // Posts a change of the leaf, its first `changes` verbs, which end with the CAS that releases it, or with that and
  // the CASes of leaves that it has made.
  coro::Task<Status> Commit(rdma::GlobalAddress leaf, shared_leaf::Posting* posting, size_t changes) {
    return leaves_->Commit(leaf, posting, changes);
  }

 private:
  // Looks at the holders of a leaf whose exclusive side is being taken, before the lock is given back.
  static constexpr int kDrainLooks = 64;

  // What became of the CAS of a kInsert whose posting has failed.
  enum class Fate : uint8_t {
    kNone,     // it had no effect, and the slot is still free
    kDone,     // the entry was inserted
    kRefused,  // the slot has another entry
    kUnknown,
  };
  // `is_inside`: the bit is still set.
  coro::Task<StatusOr<Fate>> FateOf(const Stay& stay, const Departure& insert, bool is_inside);
  // Takes the bit away, and nothing else.
  coro::Task<Status> TurnBack(const Stay& stay);
  // Unlocks a leaf that has, or had, the state word `locked`, with the generation of another word.
  coro::Task<Status> Release(rdma::GlobalAddress leaf, uint64_t locked, uint64_t generation_of);

  shared_leaf::LeafChannel* leaves_;
  size_t shape_lines_;
  HolderBook* book_;
  IndexRights rights_;
  uint64_t bit_;
};

}  // namespace gannet::index::dolphin
