// The newest change of each key of a table: a hash table of half cache lines. A lookup costs one cache miss, whose
// address is known as soon as the hash is. (absl::flat_hash_map has two misses, one after the other, and the second
// cannot be prefetched.) What the change wrote lies in a record, so an entry is small.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/keyed_hash.h"
#include "index/key.h"
#include "index/record_header.h"

namespace gannet::txn {

// A key as a ChangeMap looks it up.
struct HashedKey {
  HashedKey(const index::Key& its_key, const KeyedHash& keyed)
      : key(its_key),
        hash(key.kind() == index::KeyKind::kInteger ? keyed(key.integer()) : keyed(key.bytes())),
        number(key.kind() == index::KeyKind::kInteger ? key.integer() : hash) {}
  // The parts of a HashedKey that was made of this key before.
  HashedKey(const index::Key& its_key, uint64_t its_hash, uint64_t its_number)
      : key(its_key), hash(its_hash), number(its_number) {}

  index::Key key;
  uint64_t hash;
  uint64_t number;  // what an entry keeps of the key: an integer key itself, or the hash of a byte key
};

// Open addressing, linear probing, at most three quarters full; nothing is removed. Not thread-safe. Whatever chose the
// keys must not know the seed of the hash.
class ChangeMap {
 public:
  class alignas(kLineBytes / 2) Entry {
   public:
    uint64_t number;  // HashedKey
    uint64_t epoch;
    uint64_t version;

    bool used() const { return (place_ & kUsed) != 0; }
    // The key was removed. An entry of a byte key has a record also then, which keeps the key.
    bool removed() const { return (place_ & kRemoved) != 0; }
    // Null if there is none.
    std::byte* record() const { return reinterpret_cast<std::byte*>(place_ & ~kFlags); }
    void Set(std::byte* record, bool removed) {
      place_ = reinterpret_cast<uintptr_t>(record) | kUsed | (removed ? kRemoved : 0);
    }

   private:
    static constexpr uint64_t kUsed = 1;
    static constexpr uint64_t kRemoved = 2;
    static constexpr uint64_t kFlags = kLineBytes - 1;  // records are aligned to lines

    uint64_t place_;
  };
  static_assert(sizeof(Entry) == kLineBytes / 2 && std::is_trivial_v<Entry>);

  // `keyed`, which must outlive this, hashes the keys.
  ChangeMap(index::KeyKind kind, const KeyedHash* keyed) : kind_(kind), keyed_(keyed) {}

  size_t size() const { return size_; }

  // Null if it is not there.
  const Entry* Find(const HashedKey& key) const {
    if (size_ == 0) return nullptr;
    const Entry* entry = Probe(key);
    return entry->used() ? entry : nullptr;
  }
  // An entry that is probably the one of the key with this number and hash, if there is one. Looks at entries only.
  const Entry* Guess(uint64_t number, uint64_t hash) const {
    if (size_ == 0) return nullptr;
    for (size_t i = hash;; ++i) {
      const Entry* entry = entries() + (i & (capacity_ - 1));
      if (!entry->used()) return nullptr;
      if (entry->number == number) return entry;
    }
  }
  // Returns the key's entry or, if there is none, a free place for it (all zeros, so not `used`), to be taken by Use.
  // Valid until the next call.
  Entry* FindOrMakeRoom(const HashedKey& key) {
    if (size_ >= capacity() / 4 * 3) Grow();
    return Probe(key);
  }
  // Called before the first Entry::Set of a free place.
  void Use(Entry* entry, const HashedKey& key) {
    entry->number = key.number;
    ++size_;
  }

  // Calls visit(entry) for each, in no particular order.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < capacity(); ++i) {
      if (entries()[i].used()) visit(entries()[i]);
    }
  }
  // Walks in steps use these: the entry at place `i`, of capacity().
  size_t capacity() const { return capacity_; }
  const Entry& at(size_t i) const { return entries()[i]; }

  // Input of PrefetchAt: one word, so that other threads may read it while the map grows. 0: nothing to prefetch.
  uint64_t hint() const {
    return capacity() == 0
               ? 0
               : reinterpret_cast<uintptr_t>(entries()) | static_cast<uint64_t>(std::countr_zero(capacity()));
  }
  // Prefetches the line where a key of this hash most probably is, if the map has not grown since.
  static void PrefetchAt(uint64_t hint, uint64_t hash) {
    if (hint == 0) return;
    const auto* entries = reinterpret_cast<const Entry*>(hint & ~uint64_t{kLineBytes - 1});
    PrefetchToWrite(entries + (hash & ((uint64_t{1} << (hint & (kLineBytes - 1))) - 1)));
  }

 private:
  static constexpr size_t kLeastEntries = 16;
  static constexpr size_t kHugeFrom = BulkMemory::kHugePageBytes / sizeof(Entry) / 8;

  Entry* entries() const { return reinterpret_cast<Entry*>(memory_.data()); }
  bool Holds(const Entry& entry, const HashedKey& key) const {
    return entry.number == key.number &&
           (kind_ == index::KeyKind::kInteger || index::RecordHoldsKey(entry.record(), key.key));
  }
  uint64_t HashOf(const Entry& entry) const {
    return kind_ == index::KeyKind::kInteger ? (*keyed_)(entry.number) : entry.number;
  }

  Entry* Probe(const HashedKey& key) const {
    for (size_t i = key.hash;; ++i) {
      Entry* entry = entries() + (i & (capacity_ - 1));
      if (!entry->used() || Holds(*entry, key)) return entry;
    }
  }
  // Doubles in place, or grows to a huge page at once when it would take several doublings more to get there: scattered
  // accesses to small pages cost a page walk each. An entry stays in its half or moves to the new one, so both halves
  // are filled from front to back. (The same with more than one new part of the old size.)
  //
  // Why each entry is found again: a probe must meet no gap between an entry's home and its place. Entries are moved in
  // the order of their places, from the first gap on; entries before that gap, whose homes may be at the end of the old
  // table, are put back last. So the home of entry i is at i or before, and so is the home of each entry that was put
  // back before it. None of those lies further on than it did, counted within its half. So of the places from i's home
  // to i, in either half, they take at most as many as lay there before i. This leaves one free for i, and never passes
  // the end. After that, entries are only added in front of i.
  void Grow() {
    const size_t old = capacity_;
    capacity_ = std::max(kLeastEntries, 2 * old);
    if (capacity_ >= kHugeFrom) capacity_ = std::max(capacity_, BulkMemory::kHugePageBytes / sizeof(Entry));
    memory_.Grow(capacity_ * sizeof(Entry));
    size_t first = 0;
    std::vector<Entry> last;
    for (; first < old && entries()[first].used(); ++first) last.push_back(TakeOut(first));
    for (size_t i = first; i < old; ++i) {
      if (entries()[i].used()) PutBack(TakeOut(i));
    }
    for (const Entry& entry : last) PutBack(entry);
  }
  Entry TakeOut(size_t i) { return std::exchange(entries()[i], Entry{}); }
  void PutBack(const Entry& entry) {
    for (size_t i = HashOf(entry);; ++i) {
      Entry& place = entries()[i & (capacity_ - 1)];
      if (place.used()) continue;
      place = entry;
      return;
    }
  }

  index::KeyKind kind_;
  const KeyedHash* keyed_;
  BulkMemory memory_;
  size_t capacity_ = 0;  // entries; a power of two, or 0
  size_t size_ = 0;
};

}  // namespace gannet::txn
