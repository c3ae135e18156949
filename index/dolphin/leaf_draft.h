// LeafDraft: a leaf of Dolphin as the holder of its exclusive side wants it, and the verbs that make it so (leaf.h).
//
//   words      [target][key word] of each new entry; release. The lines keep their number.
//   tidy       [all lines][head]; release
//   split      [lock of the right leaf][right leaf][head of the left one, which commits][all its lines]; release; the
//              right leaf lives
//   absorb     [all lines, with the entries of the right leaf in free slots][head, which commits]; the right leaf is
//              dead; release
//
// Entries that stay keep their slots, so a rewriting that is half done has each of them once, and the repair keeps
// those that lie within the fences. All verbs may be repeated while the leaf is locked: WRITEs of its holder, which is
// alone there, and CASes whose expected word does not return. So a split releases the left leaf before the right one
// lives: others change that one from then on.
#pragma once

#include <cstdint>
#include <optional>

#include "index/dolphin/leaf.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

using shared_leaf::Posting;

class LeafDraft {
 public:
  // `image`: as the holder has READ it when it was alone, with the locked state word.
  LeafDraft(rdma::GlobalAddress address, const LeafImage& image);
  // A new leaf in a dead block, whose word is `last_word`.
  LeafDraft(rdma::GlobalAddress address, uint64_t last_word, size_t key_lines, uint64_t owner_bits);

  rdma::GlobalAddress address() const { return address_; }
  const LeafImage& image() const { return image_; }
  // The unlocked words before the change, and that it publishes.
  uint64_t before() const { return before_; }
  uint64_t after() const { return after_; }

  // Reserved slots, and those of removed entries, are free in the draft: the lines are to be rewritten. Nobody else
  // is inside, so a reserved slot is of an insert that has been given up.
  void Tidy();
  // Puts an entry into a free slot. False: there is none.
  bool Add(uint64_t key, uint64_t target);
  void TakeOut(uint64_t slots);
  void SetRange(uint64_t low, uint64_t high);
  void set_right(rdma::GlobalAddress right) { image_.head.right = right.bits(); }

  // WRITEs of the words that Add has changed.
  void AppendWords(Posting* posting);
  // All lines get a new number. Both are part of every rewriting.
  void AppendLines(Posting* posting);
  void AppendHead(Posting* posting);
  // For a new leaf: CAS that locks the block, then both in one WRITE. Nobody else has a use for the block, so the lock
  // is not for them, but for the repair: it names who is making the leaf.
  void AppendNew(Posting* posting);
  // CAS that publishes and unlocks, or declares dead.
  void AppendRelease(Posting* posting) { AppendState(posting, /*dead=*/false); }
  void AppendDead(Posting* posting) { AppendState(posting, /*dead=*/true); }

 private:
  // Gives all lines the number of the version that the change publishes.
  void Renumber();
  void AppendState(Posting* posting, bool dead);

  rdma::GlobalAddress address_;
  uint64_t locked_;  // the state word while the lock is held
  uint64_t before_;
  uint64_t after_ = 0;
  uint64_t added_ = 0;         // slots
  bool is_rewritten_ = false;  // slots were freed: words are not enough
  LeafImage image_;
};

// How a leaf is divided that has no room for another key.
struct SplitPlan {
  uint64_t moved = 0;   // slots whose entries go to the right leaf
  uint64_t border = 0;  // low fence of the right leaf
};
// `image`: full, covers `key` and does not have it. If the key comes behind all others, keys are being appended: all
// stay. Otherwise each leaf gets half. nullopt: it has a key twice, so a client has damaged it.
std::optional<SplitPlan> PlanSplit(const LeafImage& image, uint64_t key);

// Appends the changes above. `left` is locked and tidy; `fresh` is a new leaf, which is locked. The entry goes into the
// leaf that covers it then.
void AppendSplit(const SplitPlan& plan, uint64_t key, uint64_t target, LeafDraft* left, LeafDraft* fresh,
                 Posting* posting);
// Both are locked and drained, `left` is tidy and has room.
void AppendAbsorb(LeafDraft* left, LeafDraft* right, Posting* posting);
// True if the ranges of two neighbours, and their entries, fit into one leaf.
bool MayAbsorb(const LeafImage& left, const LeafImage& right);

}  // namespace gannet::index::dolphin
