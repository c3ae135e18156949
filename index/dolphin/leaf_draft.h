// LeafDraft: a leaf of Dolphin as the holder of its exclusive side wants it, and the verbs that make it so (leaf.h).
//
//   words      [target][key word] of each new entry; release. The lines keep their number. Byte keys: [entry]
//   tidy       [all lines][head]; release. The same if the record of an integer key is replaced
//   split      [lock of the right leaf][right leaf][head of the left one, which commits][all its lines]; release; the
//              right leaf lives. Byte keys: the fence lines go before the head (byte_leaf.h)
//   absorb     [all lines, with the entries of the right leaf in free slots][head, which commits]; the right leaf is
//              dead; release
//
// Keys: IntegerKeys or ByteKeys (keys.h).
//
// Entries that stay keep their slots, so a rewriting that is half done has each of them once, and the repair keeps
// those that lie within the fences. All verbs may be repeated while the leaf is locked: WRITEs of its holder, which is
// alone there, and CASes whose expected word does not return. So a split releases the left leaf before the right one
// lives: others change that one from then on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "index/dolphin/keys.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/leaf/posting.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

using shared_leaf::Posting;

template <class Keys>
class LeafDraft {
 public:
  using Key = typename Keys::Key;
  using Entry = typename Keys::Entry;
  using Leaf = typename Keys::Leaf;

  // `image`: as the holder has READ it when it was alone, with the locked state word.
  LeafDraft(rdma::GlobalAddress address, const Leaf& image);
  // A new leaf in a dead block, whose word is `last_word`.
  LeafDraft(rdma::GlobalAddress address, uint64_t last_word, size_t shape_lines, uint64_t owner_bits);

  rdma::GlobalAddress address() const { return address_; }
  const Leaf& image() const { return image_; }
  // The unlocked words before the change, and that it publishes.
  uint64_t before() const { return before_; }
  uint64_t after() const { return after_; }

  // Reserved slots, and those of removed entries, are free in the draft: the lines are to be rewritten. Nobody else
  // is inside, so a reserved slot is of an insert that has been given up.
  void Tidy();
  // Puts an entry into a free slot. False: there is none.
  bool Add(const Entry& entry);
  // Changes the entry of a slot, which keeps its key. All lines get a new number: a removal takes the entry out by its
  // key word, and knows by its image alone which target it removes. A READ may bring the target line from before this
  // change and the state word from behind it.
  void Replace(int slot, const Entry& entry);
  void TakeOut(uint64_t slots);
  // Of a new leaf, before its next low fence.
  void SetLow(const Key& low);
  // The low fence of the right sibling; nullopt: there is none. Once in a draft.
  void SetNextLow(const std::optional<Key>& next_low);
  void set_right(rdma::GlobalAddress right) { image_.head.right = right.bits(); }

  // The leaf of this draft, released: words, or all lines if it is rewritten.
  void AppendChange(Posting* posting);
  // WRITEs of the words that Add has changed.
  void AppendWords(Posting* posting);
  // All lines get a new number. Both are part of every rewriting. The lines may be written in two parts.
  void AppendLines(Posting* posting) { AppendLines(0, posting); }
  void AppendFences(Posting* posting);
  void AppendSlots(Posting* posting);
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
  // WRITE of the lines from this one on; the first one is that behind the head.
  void AppendLines(size_t from, Posting* posting);
  void AppendState(Posting* posting, bool dead);

  rdma::GlobalAddress address_;
  uint64_t locked_;  // the state word while the lock is held
  uint64_t before_;
  uint64_t after_ = 0;
  uint64_t added_ = 0;         // slots
  bool is_rewritten_ = false;  // slots were freed, or a target replaced: words are not enough
  Leaf image_;
};

// An insert has reserved a slot, and is over: its words are to be cleared.
template <class Leaf>
bool HasReserved(const Leaf& leaf) {
  for (int slot = 0; slot < leaf.slots(); ++slot) {
    if (leaf.IsReserved(slot)) return true;
  }
  return false;
}

// How a leaf is divided that has no room for another key.
template <class Keys>
struct SplitPlan {
  uint64_t moved = 0;           // slots whose entries go to the right leaf
  typename Keys::Key border{};  // low fence of the right leaf
};
// `leaf`: full, covers `key` and does not have it; all its keys are known. If the key comes behind all others, keys are
// being appended: all stay. Otherwise each leaf gets a quarter or more: where the border is shortest, because that
// takes the least of inner nodes (art_editor.h), and as near to the middle as that may be. nullopt: it has a key twice,
// so a client has damaged it.
template <class Keys>
std::optional<SplitPlan<Keys>> PlanSplit(const shared_leaf::LeafCopyOf<Keys>& leaf, const typename Keys::Key& key);

// Whether both leaves have room then for the entries that come into the leaf.
template <class Keys>
bool HasRoom(const SplitPlan<Keys>& plan, std::span<const typename Keys::IndexEntry> added,
             const typename Keys::Leaf& leaf);

// Append the changes above. `left` is locked and tidy; `fresh` is a new leaf, which is locked. Each added entry goes
// into the leaf that covers it then. HasRoom.
template <class Keys>
void AppendSplit(const SplitPlan<Keys>& plan, std::span<const typename Keys::IndexEntry> added, LeafDraft<Keys>* left,
                 LeafDraft<Keys>* fresh, Posting* posting);
// Both are locked and drained, `left` is tidy and has room.
template <class Keys>
void AppendAbsorb(LeafDraft<Keys>* left, LeafDraft<Keys>* right, Posting* posting);
// True if the ranges of two neighbours, and their entries, fit into one leaf.
template <class Keys>
bool MayAbsorb(const typename Keys::Leaf& left, const typename Keys::Leaf& right);

}  // namespace gannet::index::dolphin
