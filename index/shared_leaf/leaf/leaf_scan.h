// What a scan takes from one leaf.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "index/index.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

// Average number of entries of a leaf, as the scans of a client have met them: it tells how many leaves the next READs.
class LeafFill {
 public:
  explicit LeafFill(double at_first) : average_(at_first) {}

  void Note(int entries) { average_ += (entries - average_) / kMemory; }
  // Leaves that have `entries` entries from any place in the first one on, if all are filled alike; at most `most`.
  size_t LeavesFor(size_t entries, size_t most) const {
    const double leaves = std::ceil(static_cast<double>(entries) / std::max(average_, 1.0)) + 1;
    return leaves >= static_cast<double>(most) ? most : static_cast<size_t>(leaves);
  }
  // The same as LeavesFor, if the scan does not take the entries of a share `skipped` of the first leaf.
  size_t LeavesBehind(double skipped, size_t entries, size_t most) const {
    constexpr double kSlack = 0.15;  // the error of `skipped`: an entry or two
    const double leaves = std::ceil(static_cast<double>(entries) / std::max(average_, 1.0) + skipped + kSlack);
    return leaves >= static_cast<double>(most) ? most : static_cast<size_t>(leaves);
  }

 private:
  static constexpr double kMemory = 64;  // leaves
  double average_;
};

// How much of each leaf a scan READs. Slots are filled from the first on, so the last line is often empty. It is READ
// later where line 0 shows that it is not: line 0 proves a line whenever that was READ (leaf.h). If that is so for too
// many leaves, it is READ at once.
class ScanTails {
 public:
  // Number of slot lines to READ with line 0.
  size_t lines() const { return share_ > kMostTails ? kSlotLines : kSlotLines - 1; }
  // Judges an image of line 0 and the first `lines` slot lines. True: the last line is needed, and not there. Otherwise
  // the image is one of the whole leaf.
  bool Needs(size_t lines, LeafImage* image) {
    constexpr size_t kLast = kSlotLines - 1;
    const bool used = image->used<IntegerEntry>() >> (kLast * IntegerEntry::kPerLine) != 0;
    share_ += ((used ? 1 : 0) - share_) / kMemory;
    if (lines > kLast) return false;
    if (!used) image->lines[kLast].version = kAbsentBit | image->head.versions[kLast];
    return used;
  }

 private:
  static constexpr double kMemory = 64;           // leaves
  static constexpr double kMostTails = 1.0 / 16;  // a scan of five leaves then takes a third round trip now and then
  double share_ = 0;                              // of leaves whose last line is used
};

// Appends the leaf's witness and its entries, in the direction of the scan, from *next to the end of [from, to], until
// the result has `end` entries. `place` covers *next. True: the scan is at its end. Otherwise it continues at *next.
// A leaf whose words change one by one (index/dolphin/leaf.h) may have a key twice in an image, if it was removed and
// came into another slot during the READ, as the witness shows. A scan takes it once.
template <class Keys>
bool TakeLeaf(const LeafCopyOf<Keys>& place, uint64_t from, uint64_t to, bool reverse, size_t end, ScanResult* result,
              uint64_t* next) requires(!Keys::kKeysElsewhere) {
  result->witnesses.push_back(place.witness());
  const uint64_t low = reverse ? from : *next;
  const uint64_t high = reverse ? *next : to;
  std::array<IntegerEntry, Keys::kSlots> entries;
  size_t n = 0;
  for (uint64_t used = place.image.template used<IntegerEntry>(); used != 0; used &= used - 1) {
    const auto entry = place.image.template entry<IntegerEntry>(std::countr_zero(used));
    if (low <= entry.key && entry.key <= high) entries[n++] = entry;
  }
  std::sort(
      entries.begin(), entries.begin() + static_cast<ptrdiff_t>(n),
      [reverse](const IntegerEntry& a, const IntegerEntry& b) { return reverse ? b.key < a.key : a.key < b.key; });
  for (size_t i = 0; i < n; ++i) {
    if (result->entries.size() >= end) break;
    if (i > 0 && entries[i].key == entries[i - 1].key) continue;
    result->entries.push_back({OwnedKey(entries[i].key), rdma::GlobalAddress::FromBits(entries[i].target)});
    *next = reverse ? entries[i].key - 1 : entries[i].key + 1;
    if (entries[i].key == (reverse ? from : to)) return true;
  }
  if (result->entries.size() >= end) return false;
  if (reverse ? place.image.head.low <= from : place.image.head.high >= to) return true;
  *next = reverse ? place.image.head.low - 1 : place.image.head.high + 1;
  return false;
}

// TakeLeaf for byte keys. `place` has the keys that it could read (ReadKeys). An entry without is left out: the leaf
// has changed meanwhile, as its witness shows, and the key's record is gone.
template <class Keys>
bool TakeLeaf(const LeafCopyOf<Keys>& place, const ByteKey& from, const ByteKey& to, bool reverse, size_t end,
              ScanResult* result, ByteKeys::Cut* next) requires(Keys::kKeysElsewhere) {
  result->witnesses.push_back(place.witness());
  const auto key = [&place](int slot) { return place.keys.of[static_cast<size_t>(slot)].view(); };
  const auto is_in_range = [&](int slot) {
    const std::string_view at = key(slot);
    if (reverse) return from.view() <= at && (next->after ? at <= next->key.view() : at < next->key.view());
    return at <= to.view() && (next->after ? next->key.view() < at : next->key.view() <= at);
  };
  std::array<uint8_t, TaggedEntry::kSlots> slots;
  size_t n = 0;
  for (uint64_t known = place.keys.known & place.image.template used<TaggedEntry>(); known != 0; known &= known - 1) {
    const int slot = std::countr_zero(known);
    if (is_in_range(slot)) slots[n++] = static_cast<uint8_t>(slot);
  }
  std::sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(n),
            [&](int a, int b) { return reverse ? key(b) < key(a) : key(a) < key(b); });
  for (size_t i = 0; i < n && result->entries.size() < end; ++i) {
    if (i > 0 && key(slots[i]) == key(slots[i - 1])) continue;
    const ByteKey& taken = place.keys.of[static_cast<size_t>(slots[i])];
    result->entries.push_back({OwnedKey(Key(taken.view())),
                               {place.address.node(), place.image.template entry<TaggedEntry>(slots[i]).offset()}});
    *next = {taken, !reverse};
  }
  if (result->entries.size() >= end) return false;
  if (reverse) {
    const ByteKey low = ByteKeys::LowOf(place.image);
    if (low <= from) return true;
    *next = {low, false};
    return false;
  }
  if (ByteKeys::IsLast(place.image)) return true;
  const ByteKey high = ByteKeys::NextLow(place.image);
  if (to < high) return true;
  *next = {high, false};
  return false;
}

}  // namespace gannet::index::shared_leaf
