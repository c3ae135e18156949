// TaggedLeaf: a leaf of sorted slots of one word, however long their keys are (leaf.h). The keys are in the records.
//
//   line 0    | state   | meta | low ...             |     low, high: W words each, as in an inline leaf
//   ...       | version | ... low | high ...         |
//   lines ..  | version | entries                    |     as many as fill the lines: 44 for W = 9, 42 for 129
//
//   meta      | right (32) | incarnation (16) | last (8) | count (8) |
//   entry     | tag 16 | offset 48 |: of the record in the owner's memory. The tag is part of the key's hash
//   last      the slot that was filled last, or 255: it tells ascending inserts from others (split.cc)
//
// An entry has the form of shared_leaf::TaggedEntry. The rest of that leaf serves clients that change it by verbs: the
// lines' versions in line 0, which makes that line the commit point, and a second copy of the high fence. Here only the
// owner's CPU changes leaves. So all lines have one version, as in any versioned object, and the fences are words that
// the inner nodes and the models use, too. That takes 9 lines for keys of 64 bytes in place of 11.
//
// Keys by records. A reader that loads an entry from a leaf, be it in the middle of a change, may read the key of its
// record:
//
//   - At each moment a slot is null or has an entry that is in the index then, or that the lock's holder is about to
//     add or has just removed (leaf.h). So its record was not retired when the entry was loaded: that happens only
//     after the key has left the index, or after Replace has given the key another record.
//   - All callers are inside the epoch, at the owner and at clients, and a retired record is reused only after a grace
//     period. So the record stays until the reader leaves the epoch.
//   - The meta word and the key of a record are written before its address gets into an index, and never change
//     (record_header.h). So the key needs no version, also while the payload is being written.
//   - What the entries of one leaf say together, e.g. their order, is true only if the leaf's state word says so.
//
// Order. The owner finds a place among the keys by two rounds of overlapped cache misses (PlaceFor), and a scan of few
// keys reads few records. A point lookup reads the records of matching tags only.
//
// Trust. Leaves lie where clients cannot write, but records do not. A client that breaks the rules can overwrite the
// key in a record. Then the owner finds keys out of order, or outside of the fences: lookups, scans and, after a split,
// removals miss rows. A split that finds no border between its halves is refused (DataLoss). Nothing here depends on
// the order for its end or for its memory accesses.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "index/shared_leaf/leaf/tagged_leaf.h"
#include "index/xstore/tree/leaf_frame.h"
#include "index/xstore/tree/record_keys.h"

namespace gannet::index::xstore {

// Entries that fill the lines which the head and kMostSlots entries need.
template <int W>
constexpr int TaggedSlots() {
  constexpr int kHeadWords = 1 + 2 * W;
  constexpr int kLineWords = rdma::kLineDataBytes / kWordBytes;
  return (kHeadWords + shared_leaf::kMostSlots + kLineWords - 1) / kLineWords * kLineWords - kHeadWords;
}

template <int W>
using TaggedLayout = LeafLayoutOf<W, TaggedSlots<W>(), 1>;
static_assert(TaggedLayout<9>::kSlots == 44 && TaggedLayout<9>::kLines == 9);
static_assert(TaggedLayout<129>::kSlots == 42 && TaggedLayout<129>::kLines == 43);

// The tag of a key. It has no secret seed: keys of one tag that someone has chosen cost him reads of at most as many
// records as a leaf has entries.
template <int W>
uint64_t TagOf(const KeyWords<W>& key) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = 0;
  uint64_t mask = kOdd;
  for (const uint64_t word : key.words) {
    const auto product = static_cast<unsigned __int128>(word ^ mask) * 0xd6e8feb86659fd93;
    hash += static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    mask += kOdd;
  }
  return (hash ^ hash >> 32) * kOdd >> 48;
}

template <int W>
class TaggedLeaf : public LeafFrame<W, TaggedLayout<W>> {
  using Base = LeafFrame<W, TaggedLayout<W>>;
  using Base::at_;

 public:
  using typename Base::Layout;
  using typename Base::Words;
  using Entry = shared_leaf::TaggedEntry;
  static constexpr bool kKeysInRecords = true;
  static constexpr int kInLine = rdma::kLineDataBytes / kWordBytes;
  static constexpr int kNoSlot = 255;

  using Base::Base;

  LeafMeta meta() const {
    LeafMeta meta = Base::meta();
    meta.incarnation >>= 8;
    return meta;
  }
  int last() const { return static_cast<int>(LoadWord(at_ + Layout::Meta()) >> 8 & 0xff); }
  static Entry EntryOf(const Words& key, uint64_t record) {
    return Entry::Of(TagOf(key), rdma::GlobalAddress::FromBits(record).offset());
  }
  Entry entry(int slot) const { return {LoadWord(at_ + Layout::RecordAt(slot))}; }
  // Copies the addresses of the records of the slots [first, end), by whole lines, to `out`, which has room for
  // kWordsOfLines words. Returns the place of the first one there; what the other words hold means nothing.
  static constexpr size_t kWordsOfLines = ((Layout::kSlots - 1) / kInLine + 2) * kInLine;
  size_t CopyAddresses(const RecordKeys& records, int first, int end, rdma::GlobalAddress* out) const {
    if (first >= end) return 0;
    const size_t first_word = Layout::kHeadWords + static_cast<size_t>(first);
    const size_t first_line = first_word / kInLine;
    const size_t last_line = (Layout::kHeadWords + static_cast<size_t>(end) - 1) / kInLine;
    const FourWords offsets = FourWords{} + rdma::GlobalAddress::kOffsetMask;
    const FourWords node = FourWords{} + records.node_bits();
    for (size_t line = first_line; line <= last_line; ++line, out += kInLine) {
      const std::byte* const at = at_ + line * kLineBytes;
      // | version, 0, 1, 2 | 3, 4, 5, 6 |
      const FourWords low = (LoadFourWords(at) & offsets) | node;
      const FourWords high = (LoadFourWords(at + kLineBytes / 2) & offsets) | node;
      const FourWords without_version = __builtin_shufflevector(low, low, 1, 2, 3, 3);
      std::memcpy(static_cast<void*>(out), &without_version, sizeof without_version);
      std::memcpy(static_cast<void*>(out + 3), &high, sizeof high);
    }
    return first_word - first_line * kInLine;
  }
  Words key(const RecordKeys& records, int slot) const { return records.KeyOf<W>(entry(slot)); }
  uint64_t record(const RecordKeys& records, int slot) const { return records.AddressOf(entry(slot)); }

  // The slots below `count` whose entries have the key's tag, as bits.
  uint64_t MatchTag(const Words& key, uint32_t count) const {
    // A tag is the upper quarter of a word, whose comparison the mask of the signs tells.
    const __m256i tag = _mm256_set1_epi16(static_cast<short>(TagOf(key)));
    uint64_t equal = 0;
    constexpr int kFirst = static_cast<int>(Layout::kHeadWords) / kInLine;  // the line with slot 0
#pragma GCC unroll 8
    for (int line = kFirst; line < static_cast<int>(Layout::kLines); ++line) {
      const std::byte* const at = at_ + static_cast<size_t>(line) * kLineBytes;
      const auto signs = [&](const std::byte* four) {
        const __m256i same = _mm256_cmpeq_epi16(reinterpret_cast<__m256i>(LoadFourWords(four)), tag);
        return static_cast<uint64_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(same)));
      };
      const uint64_t words = (signs(at) | signs(at + kLineBytes / 2) << 4) >> 1;  // without the line's version
      const int slot = line * kInLine - static_cast<int>(Layout::kHeadWords);     // of the line's first word
      equal |= slot < 0 ? words >> -slot : words << slot;
    }
    return equal & ((uint64_t{1} << count) - 1);
  }
  // The slot below `count` that holds `key`, or -1.
  int FindSlot(const RecordKeys& records, const Words& key, uint32_t count) const {
    for (uint64_t equal = MatchTag(key, count); equal != 0; equal &= equal - 1) {
      const int slot = std::countr_zero(equal);
      if (TaggedLeaf::key(records, slot) == key) return slot;
    }
    return -1;
  }
  // Prefetches the keys that FindSlot will compare.
  void PrefetchMatches(const RecordKeys& records, const Words& key) const {
    for (uint64_t equal = MatchTag(key, meta().count); equal != 0; equal &= equal - 1) {
      records.PrefetchFor<W>(entry(std::countr_zero(equal)));
    }
  }
  // The slot below `count` that holds `key` with this record, or -1. It takes no look at the record.
  int FindPair(const RecordKeys& records, const Words& key, uint64_t record, uint32_t count) const {
    const Entry pair = EntryOf(key, record);
    if (records.AddressOf(pair) != record) return -1;
    int slot = static_cast<int>(count) - 1;
    while (slot >= 0 && entry(slot) != pair) --slot;
    return slot;
  }
  // Number of the `count` keys that are below `key`: the slot where it belongs. Every seventh record is read first, and
  // then those between two of them.
  int PlaceFor(const RecordKeys& records, const Words& key, uint32_t count) const {
    constexpr int kStep = 7;
    const int all = static_cast<int>(count);
    for (int slot = kStep - 1; slot < all; slot += kStep) records.PrefetchFor<W>(entry(slot));
    int place = 0;
    for (int slot = kStep - 1; slot < all && TaggedLeaf::key(records, slot) < key; slot += kStep) place = slot + 1;
    const int end = std::min(place + kStep - 1, all);
    for (int slot = place; slot < end; ++slot) records.PrefetchFor<W>(entry(slot));
    while (place < end && TaggedLeaf::key(records, place) < key) ++place;
    return place;
  }

  // The functions below are for the lock's holder.

  void set_entry(int slot, Entry entry) {
    StoreWord(at_ + Layout::RecordAt(slot), entry.bits);
  }
  void set_pair(int slot, const Words& key, uint64_t record) {
    set_entry(slot, EntryOf(key, record));
  }
  // The slot's key has another record now.
  void set_record(int slot, uint64_t record) {
    set_entry(slot, Entry::Of(entry(slot).tag(), rdma::GlobalAddress::FromBits(record).offset()));
  }
  // `last`: by default as if the keys had been inserted in ascending order.
  void set_meta(const LeafMeta& meta) {
    set_meta(meta, static_cast<int>(meta.count) - 1);
  }
  void set_meta(const LeafMeta& meta, int last) {
    Base::set_meta({.right = meta.right,
                    .incarnation = meta.incarnation << 8 | (static_cast<uint32_t>(last) & 0xffu),
                    .count = meta.count});
  }
  // Adds a key in `slot`, which PlaceFor gave: those from there on move up. `meta`: of now.
  void Insert(int slot, const Words& key, uint64_t record, const LeafMeta& meta) {
    const int count = static_cast<int>(meta.count);
    Base::MarkSlotsBusy(slot, count);
    for (int at = count; at > slot; --at) set_entry(at, entry(at - 1));
    set_pair(slot, key, record);
    set_meta({.right = meta.right, .incarnation = meta.incarnation, .count = meta.count + 1}, slot);
  }
  // Removes the key of a slot: those after it move down.
  void Remove(int slot, const LeafMeta& meta) {
    const int end = static_cast<int>(meta.count) - 1;
    Base::MarkSlotsBusy(slot, end);
    for (int at = slot; at < end; ++at) set_entry(at, entry(at + 1));
    Base::ClearSlots(end, end + 1);
    set_meta({.right = meta.right, .incarnation = meta.incarnation, .count = meta.count - 1}, kNoSlot);
  }
};

}  // namespace gannet::index::xstore
