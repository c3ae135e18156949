// The hash index at the owner: point access by one cache line for the bucket and one for the record.
//
// Buckets are one line with six slots (bucket.h), 60% full at `expected_keys`; a full bucket gets a chain of overflow
// buckets. The table grows by splitting one bucket at a time (geometry.h) while more than one bucket in eight has an
// overflow bucket, so no operation waits for a rehash.
//
// The witness of a key is its head bucket's version word. It changes with every insert into that bucket's chain and
// every removal from it, also of other keys, and when the bucket splits. A split is not part of any Change, so a split
// can cost a transaction that holds that witness one more attempt; it costs at most one, because the table does not
// shrink.
//
// Keys are hashed with a secret seed that is drawn when the table is made (base/keyed_hash.h), so an attacker cannot
// choose keys that share a bucket. Nothing that outlives the table depends on the seed: recovery makes the table again.
//
// A chain may have any length: an insert fails only for lack of memory. While the table grows, chains stay short. It
// stops growing at 65,536 times its first size. If the node's heap has no room for the next doubling, the table tries
// again whenever it has an eighth more overflow buckets. Until then lookups walk longer chains (statistics().height);
// raise expected_keys (expected_rows of the table) or the node's memory.
//
// Locks: a writer holds one bucket's lock during its change. Finds take no lock: a find that hits never waits, and one
// that misses retries while the bucket is locked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/keyed_hash.h"
#include "base/thread.h"
#include "index/hash/bucket.h"
#include "index/hash/geometry.h"
#include "index/hash/locked_chain.h"
#include "index/index.h"
#include "index/record_header.h"
#include "index/service.h"

namespace gannet::index {

struct HashOptions {
  KeyKind key_kind = KeyKind::kInteger;
  size_t max_key_bytes = kIntegerKeyBytes;   // of byte keys; at most kMaxKeyBytes
  uint64_t expected_keys = 1024;             // on this node; more keys are fine, but cost splits
  std::optional<KeyedHash::Seed> seed = {};  // for tests that choose keys by their hash; empty: drawn
};

// Thread-safe. Its buckets stay with the node's allocator when it is destroyed.
class HashIndex : public LocalIndex {
 public:
  // Registers itself with `service` under `id`. InvalidArgument names the option that is wrong.
  static StatusOr<std::unique_ptr<HashIndex>> Create(IndexService* service, IndexId id, const HashOptions& options);

  FindResult Find(const Key& key) override;
  void PrefetchFor(const Key& key) override { Prefetch(GuessHome(HashOf(key)).head); }
  rdma::GlobalAddress GuessRecord(const Key& key) override;
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  // InvalidArgument if the key is longer than max_key_bytes.
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override;
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  // Unimplemented: there is no order.
  Status Scan(const ScanRange& range, ScanResult* result) override;
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override;
  ScanPosition PositionBehind(const Key&, bool) const override { return {}; }
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override;
  // `fill` is ignored: `expected_keys` decides how full buckets are.
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) override;
  void ReleaseMemory() override;
  Statistics statistics() override;
  Status CheckStructure() override;

  const HashOptions& options() const { return options_; }
  hash::KeyHash HashOf(const Key& key) const { return hash::HashOf(hash_, key); }
  // The seed is for clients. It must not be given to anyone whose keys are not trusted.
  const KeyedHash::Seed& seed() const { return hash_.seed(); }
  // The places of the buckets, for clients. These need not be told of later splits (geometry.h).
  hash::Geometry geometry() const;

 private:
  struct Home {
    std::byte* head;
    hash::BucketName name;
  };
  struct Probe;

  HashIndex(IndexService* service, const HashOptions& options);
  uint64_t SegmentBytes(int segment) const;
  Status AllocateSegment(int segment);

  hash::TableSize size() const { return hash::TableSize::FromWord(size_.load(std::memory_order_acquire)); }
  std::byte* Head(const hash::BucketName& name) const {
    return segments_[name.segment()] + name.IndexInSegment(initial_) * kLineBytes;
  }
  // The head of the key's chain by this thread's knowledge; it may have split before the thread looks at it.
  Home GuessHome(hash::KeyHash hash) const {
    const hash::BucketName name = hash::BucketFor(hash, initial_, size());
    return {Head(name), name};
  }
  rdma::GlobalAddress AddressOf(const std::byte* pointer) const {
    return {node_id_, static_cast<uint64_t>(pointer - memory_)};
  }
  bool HoldsKey(const std::byte* record, const Key& key) const {
    return options_.key_kind == KeyKind::kInteger ? LoadWord(record + rdma::PlaceOf(kKeyDataOffset)) == key.integer()
                                                  : RecordHoldsKey(record, key);
  }
  // The record in the slot of the lowest match. The slot is loaded again, so it may hold another key's record by now,
  // or be empty: then the result is `memory_`.
  const std::byte* RecordIn(const std::byte* bucket, uint32_t matches) const {
    return memory_ + hash::RecordOffsetOf(hash::LoadSlot(bucket, std::countr_zero(matches)));
  }
  // The record of a match that holds the key, or null.
  const std::byte* PickRecord(const std::byte* bucket, uint32_t matches, const Key& key) const;
  void CheckKind(const Key& key) const;

  FindResult FindFrom(hash::KeyHash hash, const Key& key, Home home) const;
  void Begin(Probe* probe, const Key& key) const;
  void ScanHead(Probe* probe) const;
  void ScanSecond(Probe* probe) const;
  void Finish(const Probe& probe, const Key& key, FindResult* result) const;

  // Locks the key's chain into *chain.
  void LockHome(hash::KeyHash hash, std::optional<hash::LockedChain>* chain) const;
  // The slot of the chain that maps `key` to anything, or -1.
  int SlotOfKey(const hash::LockedChain& chain, hash::KeyHash hash, const Key& key) const;
  // The slot that maps `key` to `record`, or -1.
  int SlotOfRecord(const hash::LockedChain& chain, hash::KeyHash hash, const Key& key,
                   rdma::GlobalAddress record) const;
  // Adds an overflow bucket to a full chain.
  Status AddOverflow(Context& context, hash::LockedChain* chain);
  void RetireOverflow(Context& context, std::byte* bucket);
  Change ChangeOf(const hash::LockedChain& chain) const;

  // Growth (growth.cc).
  bool crowded() const {
    return overflow_buckets_.load(std::memory_order_relaxed) * kBucketsPerOverflow > size().count();
  }
  // Adds what it does to *change, that of the insert that finds the table crowded.
  void GrowIfCrowded(Context& context, Change* change);
  // Returns false if the table cannot grow now.
  bool SplitNext(Context& context, Change* change);
  bool Split(Context& context, std::byte* from, std::byte* to, int depth, Change* change);
  // *filled: the word of the new bucket.
  bool FillNewBucket(Context& context, std::byte* head, std::span<const uint64_t> slots, int depth, Witness* filled);

  // Walks (structure.cc).
  struct Snapshot;
  bool TrySnapshot(const std::byte* head, Snapshot* snapshot) const;
  template <class Visit>
  void VisitChains(Visit visit) const;
  Status CheckChain(const hash::BucketName& name, const Snapshot& snapshot);

  static constexpr uint64_t kBucketsPerOverflow = 8;

  IndexService* service_;
  HashOptions options_;
  std::byte* memory_;
  rdma::NodeId node_id_;
  uint64_t initial_ = 0;
  std::atomic<uint64_t> size_{0};
  // Written before a size, or a bucket's depth, that leads to it is published.
  std::array<std::byte*, hash::kMaxSegments> segments_{};
  KeyedHash hash_;

  // This lies on another line than the members that every find reads.
  alignas(kLineBytes) std::atomic<uint64_t> overflow_buckets_{0};
  Mutex growth_mutex_;
  uint64_t grow_again_at_ = 0;  // try again at this number of overflow buckets; guarded by growth_mutex_
};

}  // namespace gannet::index
