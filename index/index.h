// The contract of every index: key -> GlobalAddress of a record.
//
// An index of one table on one node has two faces:
//
//   LocalIndex    at the owner. Plain calls by the owner's CPU: no verb, no suspension, thread-safe. It also answers
//                 the RPCs that its clients fall back to.
//   RemoteIndex   at a client, one per (channel, owner). Coroutines on the channel: one-sided READs with whatever cache
//                 the kind keeps, RPC where it must. Not thread-safe.
//
// Neither knows about transactions or looks into records; what they give to a transaction is witnesses.
//
// Witness. (address of an 8-byte version word, value seen.) The word changes whenever the set of keys it covers
// changes, and its lock bit (bit 63) is set while that set is being changed. Each Find that misses returns the witness
// that covers the key; each Scan returns the witnesses that cover the whole range it looked at, gaps included. A value
// that is returned never has the lock bit. Validating = loading the word again and comparing for equality.
//
// Changes. Insert and Remove say what they did to version words, so that the transaction that did it can carry its own
// witnesses over: wherever it holds {word, before} it now holds {word, after}; where `split_to` is set, the keys that
// `word` covered are now covered by `word` and `split_to` together, and it adds that witness.
//
// Memory. Leaves, buckets and all that clients READ live in registered memory and follow rdma/versioned.h. Removed
// nodes are reused after the grace period (rdma/epoch.h); callers of LocalIndex must be inside
// Participant::Enter/Leave.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/coro/async.h"
#include "base/status.h"
#include "index/key.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "rdma/slab.h"

namespace gannet::index {

struct Witness {
  rdma::GlobalAddress word;
  uint64_t seen = 0;
};

// `record` null: the key is absent, and `witness` covers it. Otherwise the record is the key's, but a remote hash
// lookup knows it only by a tag: if the record turns out to hold another key (record_header.h), then
//   - if from_cache: Forget(key) and Find again;
//   - else the key is absent, and `witness` covers it.
struct FindResult {
  rdma::GlobalAddress record;
  Witness witness{};        // set whenever `record` is null or unverified; its word is null otherwise
  bool from_cache = false;  // the address is remembered, not read now (location cache)
};

struct Change {
  Witness before;  // null word: nothing changed
  uint64_t after = 0;
  Witness split_to;  // null word: no split
};

struct Entry {
  OwnedKey key;
  rdma::GlobalAddress record;
};

// Of a bulk load: the key's bytes are the caller's.
struct LoadEntry {
  Key key;
  rdma::GlobalAddress record;
};

struct ScanRange {
  Key from;  // both ends are included
  Key to;
  bool reverse = false;     // from `to` downwards
  size_t limit = SIZE_MAX;  // stop after so many entries
};

// Where a scan goes on that stopped before the end of its range. What the words mean is the index's business, but that
// they compare, first word first, as the keys do: each step of a forward scan leads to a greater position, each of a
// reverse one to a lesser.
struct ScanPosition {
  std::array<uint64_t, 9> words{};
  friend auto operator<=>(const ScanPosition&, const ScanPosition&) = default;
};

// Buffers of a scan, owned and reused by the caller. Entries come in scan order.
struct ScanResult {
  std::vector<Entry> entries;
  std::vector<Witness> witnesses;
  void Clear() {
    entries.clear();
    witnesses.clear();
  }
};

struct Statistics {
  uint64_t keys = 0;
  uint64_t registered_bytes = 0;  // memory that clients can READ (leaves, buckets)
  uint64_t private_bytes = 0;     // the owner's own (inner nodes, models)
  uint64_t nodes = 0;             // leaves or buckets
  int height = 0;                 // levels of the tree; longest chain of a hash table
};

struct ClientStatistics {
  uint64_t cache_bytes = 0;
  uint64_t lookups = 0;
  uint64_t one_sided = 0;    // lookups answered by READs alone
  uint64_t fallbacks = 0;    // lookups that took an RPC because the cache was stale or missing
  uint64_t leaves_read = 0;  // leaves or buckets READ

  ClientStatistics& operator+=(const ClientStatistics& other) {
    cache_bytes += other.cache_bytes;
    lookups += other.lookups;
    one_sided += other.one_sided;
    fallbacks += other.fallbacks;
    leaves_read += other.leaves_read;
    return *this;
  }
};

// Where a walk is; by default at the beginning. What the words mean is the index's business.
struct WalkPosition {
  std::array<uint64_t, 9> next{};
};

// What a thread brings to a call that allocates or retires memory. Not thread-safe; one per worker or server thread.
struct Context {
  rdma::SlabCache* slab = nullptr;
  rdma::EpochManager::Participant* epoch = nullptr;
};

class LocalIndex {
 public:
  virtual ~LocalIndex() = default;

  virtual FindResult Find(const Key& key) = 0;

  // Starts the first cache miss of a Find of `key` that comes soon, where that pays: for lookups in several indexes at
  // once.
  virtual void PrefetchFor(const Key&) {}

  // The second step after PrefetchFor: a record of this index that is probably the key's, its first cache miss started;
  // or null, where that does not pay. If it holds the key (record_header.h), it is what Find would have returned now.
  virtual rdma::GlobalAddress GuessRecord(const Key&) { return {}; }

  // Finds all keys, with the misses of their lookups overlapped by interleaved prefetches.
  virtual void FindMany(std::span<const Key> keys, std::span<FindResult> results) = 0;

  // AlreadyExists if the key is present; `*existing` (if not null) is then its record. ResourceExhausted if memory or a
  // fixed bound is used up (nothing changed).
  virtual StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                  rdma::GlobalAddress* existing) = 0;

  // Removes the key if it is mapped to `record`; NotFound otherwise. Does not touch the record.
  virtual StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) = 0;

  // Maps the key from record `from` to record `to` (a record that outgrew its block moves). NotFound if it is not
  // mapped to `from`. Needs no memory, so it cannot fail for lack of it. The set of keys, and so every witness, stays
  // as it is.
  virtual Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) = 0;

  // Appends to *result. Unimplemented for kinds that are not ordered.
  virtual Status Scan(const ScanRange& range, ScanResult* result) = 0;

  // One step of a scan: appends at most range.limit entries, and at most `most_witnesses` (> 0) witnesses. It begins at
  // *position, or where the range does if there is none, and leaves there where the scan goes on; nothing at its end.
  // A position stays good whatever happens to the keys around it, and none leads out of the range. Unimplemented for
  // kinds that are not ordered.
  virtual Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                          ScanResult* result) = 0;
  // Where a scan of this index goes on behind `key`, which need not be in it: not the last key that there can be (of a
  // reverse scan: not the first). For ordered kinds.
  virtual ScanPosition PositionBehind(const Key& key, bool reverse) const = 0;

  // One step of a walk over everything in the index, beside concurrent changes: appends the records of some more keys
  // to *records and moves *position on. False when there is nothing after that. A key that is present during the whole
  // walk is met at least once, others perhaps; ordered kinds meet keys in ascending order and each once. The caller is
  // inside the epoch during a step (and until it is done with the records), not from one step to the next.
  virtual bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) = 0;

  // Fills an empty index from entries in strictly ascending key order. `fill` in (0, 1]: how full leaves become.
  virtual Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) = 0;

  // A walk that counts; may be slow. Concurrent changes may be counted or not.
  virtual Statistics statistics() = 0;

  // Checks the structure from end to end (each key once, in order, reachable); for tests, without concurrent writers.
  virtual Status CheckStructure() = 0;
};

class RemoteIndex {
 public:
  virtual ~RemoteIndex() = default;

  virtual coro::Async<StatusOr<FindResult>> Find(const Key& key) = 0;
  // All keys, sharing doorbells. results.size() == keys.size(); both must live until the await returns.
  virtual coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) = 0;
  virtual coro::Task<Status> Scan(ScanRange range, ScanResult* result) = 0;
  virtual coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) = 0;
  virtual coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) = 0;

  // The caller found that `record` no longer holds `key` (removed or reused): whatever is cached about it is dropped.
  virtual void Forget(const Key& key) = 0;

  virtual ClientStatistics statistics() const = 0;
};

// Names a table's index on every node: the RPCs of all indexes of a node share methods and carry this id.
using IndexId = uint16_t;

// Methods of the index layer (rdma/fabric.h: 64-255). Each kind has its own.
inline constexpr rdma::MethodId kHashMethods = 64;    // 64..79
inline constexpr rdma::MethodId kXStoreMethods = 80;  // 80..95

}  // namespace gannet::index
