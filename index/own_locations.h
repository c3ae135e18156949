// OwnLocations: where the records of one table of this node probably lie, for the node's own CPU. A location cache, as
// the clients of a DrTM-style hash table have for records of other nodes.
//
// A lookup in an ordered index takes several dependent cache misses: the nodes of the tree, its leaf, and the record. A
// location takes two: one line of this cache, which is small and so often in the CPU's own caches, and the record. What
// the cache says is a guess. Find checks it at the record: it must be one of the table, with the key, present and not
// locked (Holds). A key has one such record at a time, and the index leads to it (see below). So nobody has to tell the
// cache about changes of the index, and a wrong entry costs only time.
//
//   set       | tag 0 .. tag 11 | - | record 0 .. record 11 |       one line
//   tag       8 bits of the key's hash; 0: free
//   record    its offset in the node's memory, in lines
//
// Why a record that Holds is the one to which the index leads. A record becomes present and unlocked only after its
// address has got into the index, and is locked before it leaves it. It stays locked until it is absent, or back in the
// index. (Bulk loads, WidenTable and ArrangeTable do it in another order, but nobody else uses the table meanwhile.)
// The check loads the state word, then the table and the key, then the state word again. If both words are equal and
// present, the key belongs to this state, and the index led to the record at the second load. The caller is in the
// epoch, so from then on it may use the record as if it had found it in the index. Memory that has become another
// record's, or a part of one, has another key, or a first word that is no state of a present record (versioned.h).
//
// When it is used. Rows that are read once, such as the lines of an order when it is delivered, would only cost the
// work to remember them. So the cache first remembers a sample of the keys, chosen by their hashes, apart from all
// others. While at least half of the lookups of the sample find their record, the cache is used for all keys.
//
// The cache is not used for many lookups at once: those overlap their cache misses by the index (FindMany), which
// measured faster.
//
// Size. The sample tells how many keys there may be. Either part doubles when it is nearly full and entries that are
// still right have to leave. It is then empty, and reads fill it again. All caches of a node share a budget.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/keyed_hash.h"
#include "base/thread.h"
#include "index/key.h"
#include "index/lock_word.h"
#include "index/record_header.h"
#include "index/record_key.h"
#include "rdma/epoch.h"
#include "rdma/global_address.h"

namespace gannet::index {

// Bytes that all caches of a node may take. Thread-safe.
class LocationBudget {
 public:
  explicit LocationBudget(uint64_t most_bytes) : left_(most_bytes) {}
  bool Take(uint64_t bytes) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void GiveBack(uint64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> left_;
};

// Thread-safe, except for the destructor. Callers of Find and Remember are inside the epoch.
class OwnLocations {
 public:
  // `memory`: of node `node`; outlives this.
  OwnLocations(uint16_t table, KeyKind kind, rdma::NodeId node, std::byte* memory,
               std::shared_ptr<LocationBudget> budget);
  ~OwnLocations();
  OwnLocations(const OwnLocations&) = delete;
  OwnLocations& operator=(const OwnLocations&) = delete;

  uint64_t HashOf(const Key& key) const {
    return key.kind() == KeyKind::kInteger ? hash_(key.integer()) : hash_(key.bytes());
  }

  // True if the cache is used for keys with this hash now. If not, Find need not be called, and Remember does nothing.
  bool IsFor(uint64_t hash) const { return for_all_.load(std::memory_order_relaxed) || IsSampled(hash); }

  // The record of `key`, whose hash this is; null if that is not known. Prefetches the first `lines` lines of what it
  // looks at.
  rdma::GlobalAddress Find(uint64_t hash, const Key& key, size_t lines) {
    rdma::GlobalAddress found;
    ForMatches(hash, [&](uint32_t number) {
      const rdma::GlobalAddress record = AddressOf(number);
      const std::byte* const at = memory_ + record.offset();
      for (size_t line = 1; line < lines; ++line) Prefetch(at + line * kLineBytes);
      if (!Holds(at, key)) return true;
      found = record;
      return false;
    });
    if (IsSampled(hash)) [[unlikely]]
      NoteSampled(!found.is_null());
    return found;
  }
  // The index leads from a key with this hash to `record`, as the caller has just seen. `participant`: the caller's.
  void Remember(uint64_t hash, rdma::GlobalAddress record, rdma::EpochManager::Participant& participant);

  // Memory of the cache.
  uint64_t bytes() const;

 private:
  static constexpr int kTags = 12;
  static constexpr int kTagsInWord = 8;

  struct alignas(kLineBytes) Set {
    std::array<std::atomic<uint64_t>, 2> tags;  // byte i of word w: tag of record 8 * w + i
    std::array<std::atomic<uint32_t>, kTags> records;
  };
  static_assert(sizeof(Set) == kLineBytes);

  // The sets of the table, and how full they are.
  class Sets {
   public:
    // `bytes`: a power of two, at least that of a set; taken from the budget.
    Sets(uint64_t bytes, std::shared_ptr<LocationBudget> budget)
        : memory_(bytes), last_(bytes / sizeof(Set) - 1), bytes_(bytes), budget_(std::move(budget)) {}
    ~Sets() { budget_->GiveBack(bytes_); }
    Sets(const Sets&) = delete;
    Sets& operator=(const Sets&) = delete;

    // The lowest bits of a hash are the tag.
    Set& Of(uint64_t hash) const { return reinterpret_cast<Set*>(memory_.data())[hash >> 8 & last_]; }
    uint64_t bytes() const { return bytes_; }
    uint64_t places() const { return (last_ + 1) * kTags; }

    uint64_t filled() const { return filled_.load(std::memory_order_relaxed); }
    void NoteFilled() { filled_.fetch_add(1, std::memory_order_relaxed); }
    // Notes that an entry, which was right or not, had to make room. Returns true if there are too few places.
    bool NoteReplaced(bool was_right);
    void NoteNoGrowth() { lost_.store(0, std::memory_order_relaxed); }

   private:
    const BulkMemory memory_;
    const uint64_t last_;
    const uint64_t bytes_;
    const std::shared_ptr<LocationBudget> budget_;
    std::atomic<uint64_t> filled_{0};
    std::atomic<int64_t> lost_{0};
  };

  // True if the record of `key` lies there, present and not locked.
  bool Holds(const std::byte* record, const Key& key) const {
    const uint64_t state = LoadWord(record);
    const RecordMeta meta = LoadMeta(record);
    if (!IsPresent(state) || meta.table != table_ || !RecordHoldsKey(record, meta, key)) return false;
    return LoadWord(record) == state;
  }
  // Memory that was given back to the system reads as zeros; the versions of records begin at 1.
  static bool IsPresent(uint64_t state) { return !IsLocked(state) && !IsAbsent(state) && state != 0; }
  static uint64_t TagOf(uint64_t hash) {
    const uint64_t tag = hash & 0xff;
    return tag != 0 ? tag : 1;
  }
  // The highest bit of each byte of `word` that is `byte`; also of bytes above such a one that differ in their lowest
  // bit only.
  static uint64_t BytesEqual(uint64_t word, uint64_t byte) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    const uint64_t differ = word ^ byte * kOnes;
    return (differ - kOnes) & ~differ & kOnes << 7;
  }
  static constexpr uint64_t kUsedOfSecond = 0x80808080;  // of the second word of tags

  static constexpr uint64_t kSampledOf = 32;
  static bool IsSampled(uint64_t hash) { return hash >> 59 == 0; }  // one of kSampledOf
  void NoteSampled(bool held);
  std::atomic<Sets*>& PartOf(uint64_t hash) { return parts_[IsSampled(hash) ? 1 : 0]; }
  const std::atomic<Sets*>& PartOf(uint64_t hash) const { return parts_[IsSampled(hash) ? 1 : 0]; }

  // Calls take(record) for those that the set of `hash` has with its tag, until it returns false.
  template <class Take>
  void ForMatches(uint64_t hash, const Take& take) const;

  rdma::GlobalAddress AddressOf(uint32_t number) const { return {node_, uint64_t{number} * kLineBytes}; }
  // True if the entry would lead a lookup of its key to its record.
  bool IsRight(const Sets& sets, const Set& set, uint64_t tag, uint32_t number) const;
  uint64_t FirstBytesOf(const std::atomic<Sets*>& part) const;
  void Grow(std::atomic<Sets*>* part, Sets* old, rdma::EpochManager::Participant& participant);

  const uint16_t table_;
  const KeyKind kind_;
  const rdma::NodeId node_;
  std::byte* const memory_;
  const KeyedHash hash_;
  const std::shared_ptr<LocationBudget> budget_;
  std::array<std::atomic<Sets*>, 2> parts_{};  // all other keys; the sample
  std::atomic<bool> for_all_{false};
  Mutex grow_mutex_;
  // Lookups of sampled keys since for_all_ was last set, and how many of them found the record. followed_ is negative
  // after the sample has grown: so many lookups do not count, because they fill it again.
  alignas(kLineBytes) std::atomic<int64_t> followed_{0};
  std::atomic<int64_t> held_{0};
};

template <class Take>
void OwnLocations::ForMatches(uint64_t hash, const Take& take) const {
  const Sets* const sets = PartOf(hash).load(std::memory_order_acquire);
  if (sets == nullptr) return;
  const Set& set = sets->Of(hash);
  const uint64_t tag = TagOf(hash);
  uint64_t equal = BytesEqual(set.tags[0].load(std::memory_order_relaxed), tag);
  for (int word = 0;; ++word) {
    for (; equal != 0; equal &= equal - 1) {
      const int i = word * kTagsInWord + std::countr_zero(equal) / 8;
      if (!take(set.records[static_cast<size_t>(i)].load(std::memory_order_relaxed))) return;
    }
    if (word == 1) return;
    equal = BytesEqual(set.tags[1].load(std::memory_order_relaxed), tag) & kUsedOfSecond;
  }
}

}  // namespace gannet::index
