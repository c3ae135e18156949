// The newest change of each key: a hash table whose entries are cache lines. A lookup costs one cache miss, whose
// address is known as soon as the hash is. (absl::flat_hash_map has two misses, one after the other, and the second
// cannot be prefetched.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/keyed_hash.h"

namespace gannet::txn {

// A key of the log; its bytes belong to another object.
class RedoKeyView {
 public:
  RedoKeyView() = default;
  explicit RedoKeyView(std::string_view bytes) : first_(0), data_(bytes.data()), size_(bytes.size()) {
    std::memcpy(&first_, bytes.data(), std::min(bytes.size(), sizeof first_));
    first_ = __builtin_bswap64(first_);
  }
  std::string_view bytes() const { return {data_, size_}; }
  // The same key, with its bytes at `bytes`, which are a copy.
  RedoKeyView At(const char* bytes) const {
    RedoKeyView copy = *this;
    copy.data_ = bytes;
    return copy;
  }

  friend bool operator==(const RedoKeyView& a, const RedoKeyView& b) {
    return a.first_ == b.first_ && a.size_ == b.size_ && (a.size_ <= sizeof a.first_ || a.bytes() == b.bytes());
  }
  // Orders keys as their bytes compare.
  friend bool operator<(const RedoKeyView& a, const RedoKeyView& b) {
    return a.first_ != b.first_ ? a.first_ < b.first_ : a.bytes() < b.bytes();
  }
  uint64_t Hash(const KeyedHash& keyed) const {
    return size_ <= sizeof first_ ? keyed(first_ ^ size_) : keyed(bytes());
  }

 private:
  uint64_t first_;  // the first eight bytes, as a number that compares as they do
  const char* data_;
  size_t size_;
};

struct LatestChange {
  uint64_t epoch;
  uint64_t version;
  char* payload;
  uint32_t payload_bytes;
  uint32_t room : 31;  // capacity at `payload`
  uint32_t removed : 1;

  std::string_view bytes() const { return {payload, payload_bytes}; }
};

// Open addressing, linear probing, at most three quarters full; nothing is removed. Not thread-safe. Whatever chose the
// keys must not know the seed of the hash.
class ChangeMap {
 public:
  struct alignas(kLineBytes) Entry {
    RedoKeyView key;
    LatestChange change;
    uint64_t used;  // 0: free; else the key's hash, with kUsed
  };
  static constexpr uint64_t kUsed = uint64_t{1} << 63;  // no table is so large that this bit would choose a place
  static_assert(sizeof(Entry) == kLineBytes && std::is_trivial_v<Entry>);

  size_t size() const { return size_; }

  // Null if it is not there.
  const Entry* Find(const RedoKeyView& key, uint64_t hash) const {
    if (size_ == 0) return nullptr;
    const Entry* entry = Probe(key, hash);
    return entry->used != 0 ? entry : nullptr;
  }
  // Returns the key's entry or, if there is none, a free place for it, to be taken by Use (all zeros, so not `used`).
  // Valid until the next call.
  Entry* FindOrMakeRoom(const RedoKeyView& key, uint64_t hash) {
    if (size_ >= capacity() / 4 * 3) Grow();
    return Probe(key, hash);
  }
  // The key's bytes must outlive this.
  void Use(Entry* entry, const RedoKeyView& key, uint64_t hash) {
    entry->key = key;
    entry->used = hash | kUsed;
    ++size_;
  }

  // Calls visit(entry) for each, in no particular order.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < capacity(); ++i) {
      if (entries()[i].used != 0) visit(entries()[i]);
    }
  }

  // Input of PrefetchAt: one word, so that other threads may read it while the map grows. 0: nothing to prefetch.
  uint64_t hint() const {
    return capacity() == 0
               ? 0
               : reinterpret_cast<uintptr_t>(entries()) | static_cast<uint64_t>(std::countr_zero(capacity()));
  }
  // Prefetches the line where a key of this hash most probably is, if the map has not grown since.
  static void PrefetchAt(uint64_t hint, uint64_t hash) {
    const auto* entries = reinterpret_cast<const Entry*>(hint & ~uint64_t{kLineBytes - 1});
    __builtin_prefetch(entries + (hash & ((uint64_t{1} << (hint & (kLineBytes - 1))) - 1)), 1);
  }

 private:
  static constexpr size_t kLeastEntries = 16;

  size_t capacity() const { return capacity_; }
  Entry* entries() const { return reinterpret_cast<Entry*>(memory_.data()); }

  Entry* Probe(const RedoKeyView& key, uint64_t hash) const {
    for (size_t i = hash;; ++i) {
      Entry* entry = entries() + (i & (capacity_ - 1));
      if (entry->used == 0 || entry->key == key) return entry;
    }
  }
  // Doubles in place. An entry stays in its half or moves to the new one, so both halves are filled from front to back.
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
    memory_.Grow(capacity_ * sizeof(Entry));
    size_t first = 0;
    std::vector<Entry> last;
    for (; first < old && entries()[first].used != 0; ++first) last.push_back(TakeOut(first));
    for (size_t i = first; i < old; ++i) {
      if (entries()[i].used != 0) PutBack(TakeOut(i));
    }
    for (const Entry& entry : last) PutBack(entry);
  }
  Entry TakeOut(size_t i) { return std::exchange(entries()[i], Entry{}); }
  void PutBack(const Entry& entry) { *Probe(entry.key, entry.used) = entry; }

  BulkMemory memory_;
  size_t capacity_ = 0;  // entries; a power of two, or 0
  size_t size_ = 0;
};

}  // namespace gannet::txn
