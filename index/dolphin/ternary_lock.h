// TernaryLock: the lock of a leaf of Dolphin by verbs (leaf.h): reads beside it, the shared side, the exclusive side.
//
// Failures. A verb that fails although the owner is alive may or may not have taken effect, but has no effect later
// (fabric.h, 5). What became of it is READ: the node's own bit, the state word, or the key word of an insert. All verbs
// name the connection over which the side was taken. If that has ended, the owner repairs the leaf as if this node had
// died.
//
// Not thread-safe, as the channel; coroutines of its worker may use it at once. Errors: Unavailable, if the owner
// cannot be reached, or if a leaf stays locked for longer than the patience of the channel; InvalidArgument, if no leaf
// can be at an address; DataLoss, if a client has damaged a leaf.
#pragma once

#include <cstdint>
#include <optional>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/holder_book.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

// The lines of the leaf, or its entries, do not belong together.
Status DamagedLeaf(rdma::GlobalAddress leaf);

class TernaryLock {
 public:
  // Both must outlive this. `book`: of this node, whose number is below 64, for the index.
  TernaryLock(shared_leaf::LeafChannel* leaves, size_t key_lines, HolderBook* book);

  shared_leaf::LeafChannel* leaves() const { return leaves_; }
  size_t key_lines() const { return key_lines_; }

  // READs a leaf until its image is valid, or dead. kWitness: with an FAA of 0 on the state word before it, in the same
  // posting; then image->lock.state is what that found. As long as the leaf has this word, it has the keys of the
  // image, and no others.
  enum class For : uint8_t { kEntry, kWitness };
  coro::Task<StatusOr<LeafLook>> Read(rdma::GlobalAddress leaf, For use, LeafImage* image);

  // A stay on the shared side.
  struct Stay {
    rdma::GlobalAddress leaf;
    uint64_t connection = 0;
    LeafImage image;  // as READ inside, or as far as it was
  };
  // kWhole: this node is inside, alone of its coroutines, and the image is valid. kLocked: somebody has, or wants, the
  // exclusive side, or another coroutine of this node is inside. kDead, kTorn: the leaf is not, or no longer, what was
  // looked for.
  coro::Task<StatusOr<LeafLook>> Enter(rdma::GlobalAddress leaf, Part part, Stay* stay);
  // Reserves the slot for a key word by a CAS. Returns the word found, which is 0 if the slot was free. nullopt: it is
  // not known what became of the CAS.
  coro::Task<StatusOr<std::optional<uint64_t>>> Reserve(const Stay& stay, int slot, uint64_t key_word);

  // The change that a node makes as it leaves.
  struct Departure {
    enum class Do : uint8_t { kNothing, kInsert, kUpdate, kRemove, kReplace };
    Do what = Do::kNothing;
    int slot = 0;
    uint64_t key_word = 0;  // of the slot; kInsert: reserved
    uint64_t target = 0;    // new one
    uint64_t from = 0;      // kRemove, kReplace: the target before
  };
  struct Left {
    bool is_done = true;  // kRemove, kReplace: the slot had what was expected
    // The state word that was raised, in its unlocked form; 0: it is not known, or was not raised.
    uint64_t before = 0;
  };
  // Changes words of the slot, raises the state word, takes the bit away, by one posting. kUpdate raises nothing: it
  // changes a value. Unavailable: it is not known what a kUpdate, kRemove or kReplace did.
  coro::Task<StatusOr<Left>> Leave(const Stay& stay, const Departure& departure);

  // Takes the exclusive side of a leaf that had this unlocked state word. True: this channel is alone, and `image` is
  // the leaf, with its locked state word. False: the leaf has changed, or others stay inside; nothing is locked.
  // `connection`: as LeafChannel::Lock.
  coro::Task<StatusOr<bool>> Lock(rdma::GlobalAddress leaf, uint64_t state, uint64_t connection, LeafImage* image);
  // READs the state word first, and then does what Lock does. False also if the leaf is locked or dead.
  coro::Task<StatusOr<bool>> LockAsItIs(rdma::GlobalAddress leaf, uint64_t connection, LeafImage* image);
  // Gives it back; no line was written. `image`: of Lock.
  coro::Task<Status> GiveBack(rdma::GlobalAddress leaf, const LeafImage& image);
  // Posts a change of the leaf, which ends with the CAS that releases it, or with that and the CASes of leaves that it
  // has made.
  coro::Task<Status> Commit(rdma::GlobalAddress leaf, shared_leaf::Posting* posting) {
    return leaves_->Commit(leaf, posting);
  }

 private:
  // Looks at the holders of a leaf whose exclusive side is being taken, before the lock is given back.
  static constexpr int kDrainLooks = 64;

  rdma::Operation ReadOf(rdma::GlobalAddress leaf, Part part, LeafImage* image) const {
    return rdma::Operation::Read(leaf, image, static_cast<uint32_t>(BytesOf(part, key_lines_)));
  }
  // Takes the bit away, and nothing else.
  coro::Task<Status> TurnBack(const Stay& stay);
  // Unlocks a leaf that has, or had, the state word `locked`, with the generation of another word.
  coro::Task<Status> Release(rdma::GlobalAddress leaf, uint64_t locked, uint64_t generation_of);

  shared_leaf::LeafChannel* leaves_;
  size_t key_lines_;
  HolderBook* book_;
  uint64_t bit_;
};

}  // namespace gannet::index::dolphin
