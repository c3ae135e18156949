// An inner node of XTree, in the owner's private memory, with optimistic lock coupling.
//
// Child i covers the keys <= key i and > key i - 1. Key count - 1 and all keys after it are the highest key, so a
// search needs no count. Readers load the version, read the node, and load the version again: if it is unchanged and
// unlocked, the read was consistent. Nodes live in a NodePool: a stale pointer always leads to a node of the same tree,
// whose version has grown.
//
//   version   lock bit 63, dead bit 62 (unlinked from the tree), counter
//   shape     | level (32) | count (32) |
//
// A key's first word is its head. Heads and children lie in blocks of eight. A search reads the header line, then one
// block: two dependent cache misses. The rests of the keys (words 1 to W - 1) are read only where heads are equal.
//
//   line 0      | version | shape | head 7 | head 15 | head 23 | head 31 | head 39 | head 47 |    copies of the last
//                                                                                                 head of each block
//   line 1, 2   | heads 0..7 |  | children 0..7 |
//   line 3, 4   | heads 8..15 |  | children 8..15 |   ...
//   then        | rest of key 0 | rest of key 1 | ...
#pragma once

#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"
#include "index/xstore/tree/key_codec.h"

namespace gannet::index::xstore {

template <int W>
class alignas(kLineBytes) InnerNode {
 public:
  using Words = KeyWords<W>;
  static constexpr int kBlocks = 7;
  static constexpr int kFanout = kBlocks * 8;

  static constexpr uint64_t kLocked = uint64_t{1} << 63;
  static constexpr uint64_t kDead = uint64_t{1} << 62;

  uint64_t version() const { return LoadWord(&words_[kVersion]); }
  static constexpr bool IsStable(uint64_t version) { return (version & (kLocked | kDead)) == 0; }
  bool Validate(uint64_t version) const { return LoadWord(&words_[kVersion]) == version; }

  int count() const { return static_cast<int>(LoadWord(&words_[kShape]) & 0xffffffff); }
  // 1: the children are leaves.
  int level() const { return static_cast<int>(LoadWord(&words_[kShape]) >> 32); }
  Words key(int i) const {
    Words key;
    key.words[0] = head(i);
    for (int word = 1; word < W; ++word) key.words[word] = LoadWord(&words_[RestIndex(i, word)]);
    return key;
  }
  // A leaf's or a node's address.
  uint64_t child(int i) const { return LoadWord(&words_[ChildIndex(i)]); }
  InnerNode* node(int i) const { return reinterpret_cast<InnerNode*>(child(i)); }

  // The child that covers `key`.
  int Search(const Words& key) const { return SearchBlock(FindBlock(key), key); }
  // The two steps of Search, for callers with other work to do in between.
  int FindBlock(const Words& key) const {
    int block = 0;
#pragma GCC unroll 6
    for (int i = 0; i < kSamples; ++i) block += LoadWord(&words_[kSample + i]) < key.words[0];
    const uint64_t* lines = &words_[HeadIndex(block * 8)];
    Prefetch(lines);
    Prefetch(lines + 8);
    return block;
  }
  int SearchBlock(int block, const Words& key) const {
    const uint64_t* heads = &words_[HeadIndex(block * 8)];
    int index = block * 8;
#pragma GCC unroll 7
    for (int i = 0; i < 7; ++i) index += LoadWord(&heads[i]) < key.words[0];
    if constexpr (W > 1) {
      if (head(index) == key.words[0]) return SearchRests(index, key);
    }
    return index;
  }

  // The functions below are for the lock's holder, or for a node that is not reachable yet.

  bool TryLock(uint64_t version) {
    return CompareAndSwapWord(&words_[kVersion], version, version | kLocked) == version;
  }
  // Locks any version; false if the node is locked or dead.
  bool TryLock() {
    const uint64_t seen = version();
    return IsStable(seen) && TryLock(seen);
  }
  void Unlock() {
    StoreWord(&words_[kVersion], (version() & ~kLocked) + 1);
  }
  // Unlocks a node that was not changed.
  void UnlockUnchanged() {
    StoreWord(&words_[kVersion], version() & ~kLocked);
  }
  void UnlockDead() {
    StoreWord(&words_[kVersion], ((version() & ~kLocked) + 1) | kDead);
  }

  // Empties the node. It is not locked afterwards.
  void Reset(int level) {
    StoreWord(&words_[kVersion], (version() | kLocked) & ~kDead);
    SetShape(level, 0);
    for (int i = 0; i < kFanout; ++i) SetKey(i, Words::Highest());
    Unlock();
  }
  // Adds a last child. `previous_high` is the highest key of the previous last child.
  void Append(const Words& previous_high, uint64_t child) {
    const int n = count();
    GANNET_CHECK(n < kFanout, "child %d of a node of %d", n, kFanout);
    if (n > 0) SetKey(n - 1, previous_high);
    SetChild(n, child);
    SetShape(level(), n + 1);
  }
  // Child i has split: it now ends at `high`, and `right` covers the rest of its range.
  void InsertAfter(int i, const Words& high, uint64_t right) {
    const int n = count();
    GANNET_CHECK(i >= 0 && i < n && n < kFanout && high < key(i),
                 "child %d of %d in a node of %d splits out of its range", i, n, kFanout);
    for (int j = n - 1; j > i; --j) {
      SetChild(j + 1, child(j));
      SetKey(j, key(j - 1));
    }
    SetKey(i, high);
    SetChild(i + 1, right);
    SetShape(level(), n + 1);
  }
  // Removes child i; its left neighbour takes over its range, or the right one that of the first child.
  void Remove(int i) {
    const int n = count();
    GANNET_CHECK(i >= 0 && i < n && n > 1, "child %d of %d is removed", i, n);
    for (int j = i == 0 ? 0 : i - 1; j < n - 1; ++j) SetKey(j, key(j + 1));
    for (int j = i; j < n - 1; ++j) SetChild(j, child(j + 1));
    SetShape(level(), n - 1);
  }
  // Moves the children from `from` (> 0) on to the empty node `right`, and returns the highest key that stays.
  Words MoveUpper(int from, InnerNode* right) {
    const int n = count();
    GANNET_CHECK(from > 0 && from < n && right->count() == 0, "%d of %d children move to a node with %d", n - from, n,
                 right->count());
    const Words high = key(from - 1);
    for (int j = from; j < n; ++j) right->Append(key(j - 1), child(j));
    for (int j = from - 1; j < n; ++j) SetKey(j, Words::Highest());
    SetShape(level(), from);
    return high;
  }

 private:
  static constexpr int kVersion = 0;
  static constexpr int kShape = 1;
  static constexpr int kSample = 2;
  static constexpr int kSamples = kBlocks - 1;
  static_assert(kSample + kSamples <= 8);

  static constexpr size_t HeadIndex(int i) {
    const auto at = static_cast<size_t>(i);
    return 8 + at / 8 * 16 + at % 8;
  }
  static constexpr size_t ChildIndex(int i) {
    return HeadIndex(i) + 8;
  }
  static constexpr size_t RestIndex(int i, int word) {
    return size_t{8 + kBlocks * 16} + static_cast<size_t>(i) * (W - 1) + static_cast<size_t>(word) - 1;
  }

  uint64_t head(int i) const {
    return LoadWord(&words_[HeadIndex(i)]);
  }
  bool IsBelow(int i, const Words& key) const {
    if (head(i) != key.words[0]) return head(i) < key.words[0];
    int word = 1;
    while (word < W - 1 && LoadWord(&words_[RestIndex(i, word)]) == key.words[word]) ++word;
    return LoadWord(&words_[RestIndex(i, word)]) < key.words[word];
  }
  // `first`: the first key with the head of `key`. Few keys share a head, unless all begin alike: the first two are
  // looked at, then the others are halved. The last key is the highest, so it is not below any.
  int SearchRests(int first, const Words& key) const {
    int low = first;
    for (int looks = 0; looks < 2; ++looks) {
      if (low == kFanout - 1 || !IsBelow(low, key)) return low;
      ++low;
    }
    for (int high = kFanout - 1; low < high;) {
      const int middle = (low + high) / 2;
      if (IsBelow(middle, key)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  void SetKey(int i, const Words& key) {
    StoreWord(&words_[HeadIndex(i)], key.words[0]);
    for (int word = 1; word < W; ++word) StoreWord(&words_[RestIndex(i, word)], key.words[word]);
    if (i % 8 == 7 && i / 8 < kSamples) StoreWord(&words_[kSample + i / 8], key.words[0]);
  }
  void SetChild(int i, uint64_t child) {
    StoreWord(&words_[ChildIndex(i)], child);
  }
  void SetShape(int level, int count) {
    StoreWord(&words_[kShape], static_cast<uint64_t>(level) << 32 | static_cast<uint64_t>(count));
  }

  uint64_t words_[8 + kBlocks * 16 + kFanout * (W - 1)] = {};
};

}  // namespace gannet::index::xstore
