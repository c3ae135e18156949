// The contract of every index: key -> GlobalAddress of a record.
//
// An index of one table on one node has two faces:
//
//   LocalIndex    at the owner. Plain calls by the owner's CPU: no verb, no suspension, thread-safe. It also answers
//                 the RPCs that its clients fall back to.
//   RemoteIndex   at a client, one per (channel, owner). Coroutines on the channel: one-sided READs with the kind's own
//                 cache, RPC where necessary. Not thread-safe.
//
// Neither knows about transactions or reads the contents of records. They give witnesses to transactions.
//
// Witness. (address of an 8-byte version word, value seen.) A word covers a set of keys, present and absent ones. It
// changes whenever a key enters or leaves that set of the index, and before it stops covering a key that a transaction
// may hold it for. It never returns to a value that it had, also when its memory is reused. Each Find that misses
// returns the witness that covers the key; each Scan returns those that cover the whole range it looked at, gaps
// included. A value that is returned is one that the word has only while the set is not being changed: bit 63, the lock
// bit, is clear. It is never WordChange::kCreated. Validating = loading the word again and asking IsSameSet, since
// housekeeping changes no set (witness_word.h). Only the owner's CPU changes a word; or, if the kind's traits say
// client_writes (registry.h), the worker of any node that holds the word's lock.
//
// Change. Insert and Remove list what they did to version words, so that the transaction that did it can carry its own
// witnesses over:
//
//   - If the transaction holds {word, before} of at least one listed word, it holds {word, after} of every listed word
//     from then on.
//   - Otherwise its witnesses stay as they are.
//
// An index lists each word that its operation changed or created, once. Nothing but the operation changed the word
// between `before` and `after`. Or it lists nothing: a transaction that holds a changed word then fails its own
// validation, and is run again. To leave out only some is wrong, unless no key passes between them and the others.
//
// Why that is right. Let the witnesses of transaction T cover a set Q of keys.
//
//   - No change by others is hidden. T goes from `before` to `after` only where it held `before`. A word that T held
//     with another value keeps that value, so that T fails its validation.
//   - Q stays covered. Keys come to be covered by another word only out of words that change, so if T held none of the
//     listed words, its witnesses still cover Q. If it held one, it now holds all words that may have taken keys from
//     that one. They need not be new. A full leaf may hand keys to its sibling, which a scan did not reach; in an
//     R-tree an insert can make a leaf's rectangle grow into a window that a search looked at without meeting the leaf.
//   - T need not have seen such a word before. Up to the operation its part of Q was covered by words that T held. A
//     change by others in that part would have changed one of those.
//
// The list does not tell which word took keys from which, so T may get a witness that it does not need. That can cost
// a conflict, but no correctness.
//
// Memory. Leaves, buckets and all that clients READ live in registered memory and follow rdma/versioned.h. Removed
// nodes are reused after the grace period (rdma/epoch.h); callers of LocalIndex must be inside
// Participant::Enter/Leave.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "base/coro/async.h"
#include "base/status.h"
#include "index/key.h"
#include "index/rectangle.h"
#include "index/types.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "rdma/slab.h"

namespace gannet::index {

namespace shared_leaf {
class ClaimHolder;
}  // namespace shared_leaf

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

  // There is neither a record nor a witness: nothing leads to the key, present or absent, because a client has damaged
  // the index (IndexTraits::client_writes).
  bool is_lost() const { return record.is_null() && witness.word.is_null(); }
};

// What an operation did to one version word.
struct WordChange {
  static constexpr uint64_t kCreated = UINT64_MAX;

  rdma::GlobalAddress word;
  uint64_t before = kCreated;  // this value: the operation created the word, so no witness has seen it
  uint64_t after = 0;

  bool created() const { return before == kCreated; }
};

// The words that an operation changed or created (see above). Up to two take no memory of their own: one changed word
// is the usual case, and the split of a leaf adds one that is created. Moved, not copied.
class Change {
 public:
  Change() = default;
  Change(rdma::GlobalAddress word, uint64_t before, uint64_t after) : few_{{{word, before, after}, {}}}, size_(1) {}

  void AddChanged(rdma::GlobalAddress word, uint64_t before, uint64_t after) { Add({word, before, after}); }
  void AddCreated(const Witness& created) { Add({created.word, WordChange::kCreated, created.seen}); }

  bool empty() const { return size_ == 0; }
  std::span<const WordChange> words() const { return {many_ == nullptr ? few_.data() : many_->data(), size_}; }

 private:
  void Add(const WordChange& word) {
    if (size_ == few_.size() && many_ == nullptr) {
      many_ = std::make_unique<std::vector<WordChange>>(few_.begin(), few_.end());
    }
    if (many_ != nullptr) {
      many_->push_back(word);
    } else {
      few_[size_] = word;
    }
    ++size_;
  }

  std::array<WordChange, 2> few_{};
  std::unique_ptr<std::vector<WordChange>> many_;  // all words, if they are more than two
  size_t size_ = 0;
};

struct Entry {
  OwnedKey key;
  rdma::GlobalAddress record;
};

// An entry of a bulk load. The key's bytes belong to the caller.
struct LoadEntry {
  Key key;
  rdma::GlobalAddress record;
};

// The words of a position in an index: kFewPositionWords, or more in an index of longer keys. Words that are missing at
// the end are zeros. Few words take no memory of their own.
inline constexpr size_t kFewPositionWords = 9;  // a key of kShortKeyBytes, and one more
inline constexpr size_t kMostPositionWords = kMaxKeyBytes / sizeof(uint64_t) + 1;
using PositionWords = absl::InlinedVector<uint64_t, kFewPositionWords>;

// The words of kinds that need no more.
using FewWords = std::span<const uint64_t, kFewPositionWords>;
using FewWordsOut = std::span<uint64_t, kFewPositionWords>;
inline FewWords FewOf(const PositionWords& words) {
  return FewWords(words.data(), kFewPositionWords);
}
inline FewWordsOut FewOf(PositionWords* words) {
  return FewWordsOut(words->data(), kFewPositionWords);
}

// The place where a scan continues that stopped before the end of its range. The index defines the words, but they must
// compare, first word first, like the keys: each step of a forward scan leads to a greater position, each step of a
// reverse scan to a smaller one.
struct ScanPosition {
  PositionWords words = PositionWords(kFewPositionWords);

  friend bool operator==(const ScanPosition& a, const ScanPosition& b) { return (a <=> b) == 0; }  // NOLINT
  friend std::strong_ordering operator<=>(const ScanPosition& a, const ScanPosition& b) {
    const size_t both = std::min(a.words.size(), b.words.size());
    for (size_t i = 0; i < both; ++i) {
      if (a.words[i] != b.words[i]) return a.words[i] <=> b.words[i];
    }
    const auto rest_of = [both](const PositionWords& words) {
      return std::any_of(words.begin() + both, words.end(), [](uint64_t word) { return word != 0; });
    };
    return rest_of(a.words) <=> rest_of(b.words);
  }
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

// Searches of spatial indexes. Their results are a ScanResult, whose entries have the keys of rectangle.h.

// Finds the rectangles that meet `window`, which is a valid one (CheckRectangle).
struct WindowQuery {
  Rectangle window;
  // The result is the window's content at one moment of the call. Otherwise it may mix moments, and its witnesses tell:
  // if all have the values seen at one later moment, it is the content at that moment.
  bool at_one_moment = false;
};

// A cache that clients of one index share, in any threads. Made by IndexKindEntry::make_cache. Thread-safe.
class SharedCache {
 public:
  virtual ~SharedCache() = default;
  // Memory of the cache.
  virtual uint64_t bytes() const = 0;
};

// Memory that the caches of all indexes of one kind have in common in a process. Made by IndexKindEntry::make_pool.
// Thread-safe.
class CachePool {
 public:
  virtual ~CachePool() = default;
  // A cache for all clients of one index.
  virtual std::shared_ptr<SharedCache> NewCache() = 0;
  // Validates the witness of a leaf that this process has claimed, of any index of the kind, without a verb
  // (shared_leaf/claim/claim.h). True: at a moment of this call the word had the set of keys that was seen. False: only
  // a look at the word can tell.
  virtual bool Confirms(const Witness& /*witness*/, const shared_leaf::ClaimHolder& /*claims*/) const { return false; }
};

// What a client's operation would take by READs: an estimate. The records themselves are not included.
struct ReadEstimate {
  double postings = 0;  // batches of verbs, one after the other
  double reads = 0;
  double atomics = 0;  // of kinds whose clients take locks (IndexTraits::client_writes)
  double calls = 0;    // to the owner, for what the client would have to know first
  double bytes = 0;    // that the READs bring
  double keys = 0;     // entries that the operation finds
  // The parts of `postings` and `calls` that bring into the client's cache what later operations will find there.
  double lasting_postings = 0;
  double lasting_calls = 0;

  ReadEstimate& operator+=(const ReadEstimate& other) {
    postings += other.postings;
    reads += other.reads;
    atomics += other.atomics;
    calls += other.calls;
    bytes += other.bytes;
    keys += other.keys;
    lasting_postings += other.lasting_postings;
    lasting_calls += other.lasting_calls;
    return *this;
  }
};

// The position of a walk; by default the beginning. The index defines the words.
struct WalkPosition {
  PositionWords next = PositionWords(kFewPositionWords);
};

// The resources of a thread for calls that allocate or retire memory. Not thread-safe; one per worker or server thread.
struct Context {
  rdma::SlabCache* slab = nullptr;
  rdma::EpochManager::Participant* epoch = nullptr;
};

// Leaves that are filled so have room for inserts, and few are split soon.
inline constexpr double kLoadFill = 0.9;

class LocalIndex {
 public:
  virtual ~LocalIndex() = default;

  virtual FindResult Find(const Key& key) = 0;

  // Starts the first cache miss of a Find of `key` that will come soon, if that pays: for lookups in several indexes at
  // once.
  virtual void PrefetchFor(const Key&) {}

  // The second step after PrefetchFor: returns a record of this index that is probably the key's, with its first cache
  // miss started; null if that does not pay. If the record holds the key (record_header.h), Find would have returned it
  // now.
  virtual rdma::GlobalAddress GuessRecord(const Key&) { return {}; }

  // Finds all keys, with the misses of their lookups overlapped by interleaved prefetches.
  virtual void FindMany(std::span<const Key> keys, std::span<FindResult> results) = 0;

  // AlreadyExists if the key is present; `*existing` (if not null) is then its record. ResourceExhausted if memory or a
  // fixed bound is used up (nothing changed).
  virtual StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                  rdma::GlobalAddress* existing) = 0;

  // Removes the key if it is mapped to `record`; NotFound otherwise. Does not touch the record.
  virtual StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) = 0;

  // Maps the key from record `from` to record `to`, neither null (a record that outgrew its block moves). NotFound if
  // it is not mapped to `from`. Needs no memory, so it cannot fail for lack of it. The set of keys stays as it is. So
  // do all witnesses, except in kinds that clients can change (IndexTraits::client_writes): there the word that covers
  // the key changes, also if the table's rights let only the owner change it.
  virtual Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) = 0;

  // Appends to *result. Unimplemented for kinds that are not ordered.
  virtual Status Scan(const ScanRange& range, ScanResult* result) = 0;

  // A scan that tells the records alone: their keys are in them (record_header.h). Calls take(records, witness) leaf by
  // leaf, in scan order, with the records of the range, at most range.limit in all, and the witness that covers this
  // part of it. The scan ends early if that returns false. The caller is inside the epoch. A key in a record can have
  // been overwritten by a client that breaks the rules, so the order of keys is to be checked. Of kinds with
  // IndexTraits::scans_records; Unimplemented for others.
  using TakeRecords = absl::FunctionRef<bool(std::span<const rdma::GlobalAddress> records, const Witness& witness)>;
  virtual Status ScanRecords(const ScanRange&, TakeRecords) {
    return absl::UnimplementedError("this kind of index scans no records");
  }

  // One step of a scan: appends at most range.limit entries, and at most `most_witnesses` (> 0) witnesses. It begins at
  // *position or, if there is none, at the beginning of the range. It sets *position to where the scan continues;
  // nullopt at its end. A position stays valid when keys around it come or go, and never leads out of the
  // range. Unimplemented for kinds that are not ordered.
  virtual Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                          ScanResult* result) = 0;
  // The position of a scan of this index after `key`, which need not be in it. `key` must not be the last possible key
  // (for a reverse scan: the first). For ordered kinds, and for spatial ones, whose searches are never reverse.
  virtual ScanPosition PositionBehind(const Key& key, bool reverse) const = 0;

  // Appends the entries in the window, in no order, each key once, and the witnesses that cover the window: all keys
  // whose rectangles meet it, present or absent. InvalidArgument names what is wrong with the window. Unimplemented for
  // kinds that are not spatial, as are the next two.
  virtual Status Search(const WindowQuery&, ScanResult*) { return NotSpatial(); }
  // One step of a search, for results larger than a message: appends at most `limit` entries, in the order of their
  // keys, and witnesses that cover the keys that this step passed. It begins at *position or, if there is none, at the
  // smallest key. It sets *position to where the search continues; nullopt at its end. A position stays valid when keys
  // come or go. ResourceExhausted if more than `most_witnesses` would be needed for a single entry.
  virtual Status SearchStep(const WindowQuery&, size_t /*limit*/, size_t /*most_witnesses*/,
                            std::optional<ScanPosition>*, ScanResult*) {
    return NotSpatial();
  }
  // Appends the nearest entries at one moment of the call, by distance, and the witnesses that cover all rectangles
  // that are as near.
  virtual Status Nearest(const NearestQuery&, ScanResult*) { return NotSpatial(); }

  // One step of a walk over everything in the index, while others may change it: appends the records of some more keys
  // to *records and advances *position. False if nothing follows. A walk finds each key that is present during the
  // whole walk at least once, and possibly others; ordered kinds find keys in ascending order and each once. The caller
  // is inside the epoch during a step (and until it is done with the records), not between steps. If clients have
  // damaged the index, so that no way leads on, it appends a null address and ends.
  virtual bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) = 0;

  // Fills an empty index from entries in strictly ascending key order. `fill` in (0, 1]: how full leaves become, such
  // as kLoadFill.
  virtual Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) = 0;

  // In kinds whose nodes clients change (IndexTraits::client_writes), this makes whole what `node` had locked, unlocks
  // it, and takes back the memory that was lent to it. `node` is dead, or is no longer connected: none of its verbs
  // takes effect any more (fabric.h, 5). Others may use the index meanwhile.
  virtual void RepairAfter(rdma::NodeId /*node*/) {}
  // In kinds whose leaves other nodes may claim (shared_leaf/claim/claim.h), this ends the claims of `node`, which uses
  // them no more: its connection has ended, and kClaimTerm has passed since (claim_boards.h). If that fails, it can be
  // called again.
  virtual Status EndClaimsOf(rdma::NodeId /*node*/) { return absl::OkStatus(); }

  // Called before the destructor of an index whose node goes on without it: after both, all its memory is the slab's
  // again. Nobody uses the index any more, on any node. (When a node ends, so does its memory, and a walk over it would
  // only take time.)
  virtual void ReleaseMemory() {}

  // A walk that counts; may be slow. Concurrent changes may be counted or not.
  virtual Statistics statistics() = 0;

  // Checks the structure from end to end (each key once, in order, reachable); for tests, without concurrent writers.
  virtual Status CheckStructure() = 0;

 private:
  static Status NotSpatial() { return absl::UnimplementedError("this kind of index finds no rectangles"); }
};

// A key that an InsertBatch is to insert, and what became of it.
struct Insertion {
  enum class Outcome : uint8_t {
    kRefused,  // not inserted: it takes more than a lock and a change, or split, of one leaf; the owner may be asked
    kDone,
    kExists,   // the key has `existing`
    kUnknown,  // the connection ended meanwhile: the owner undoes it, or has done so
  };

  Key key;
  rdma::GlobalAddress record;
  // If this is not empty, AppendChanges WRITEs it to `record`, where nothing has led so far, before it adds the key. It
  // must stay until TakeChanges.
  std::span<const std::byte> image{};
  Outcome outcome = Outcome::kRefused;
  rdma::GlobalAddress existing{};
  // If several keys came into one leaf together, only the first of them lists the change of the leaf's word.
  Change change{};
};

// Inserts keys of one transaction into one index of another node, in steps, so that its verbs go with other verbs of
// the commit, and with those of other indexes. It appends operations, and the caller posts them:
//
//   Begin                     | READs of the leaves that the client's caches expect |
//   AppendReads               | READs of the leaves right of these, where they have been split |  until it appends none
//   Find                      when these have succeeded; it READs more if they were not the right leaves
//   AppendLocks, TakeLocks    | CAS of each leaf |         from here on the thread does nothing else
//   AppendChanges, TakeChanges| WRITEs of records and leaves |  until here (rdma::Channel::Alone)
//   Find, ...                 again, while keys are pending: their leaves had changed between READ and CAS
//   Publish                   when no leaf is locked any more
//
// Because the thread does nothing else while locks are held, and a lock is only tried, locks of different leaves may be
// taken in any order. An error is about insertions that are kRefused or kUnknown after it; the caller goes on to
// TakeChanges, which release the locks that were taken. Reused; not thread-safe.
class InsertBatch {
 public:
  virtual ~InsertBatch() = default;

  // `insertions`: of different keys, kRefused; they must live until the end. Verbs of changes go over `connection`.
  // `reads` may be null: then Find does without the caches.
  virtual void Begin(std::span<Insertion> insertions, uint64_t connection, std::vector<rdma::Operation>* reads) = 0;
  // Find is called after the posting of all READs that were appended. Keys whose leaves are known need none.
  virtual void AppendReads(std::vector<rdma::Operation>* reads) = 0;
  // Batches of several indexes may do this at once.
  virtual coro::Task<Status> Find() = 0;
  // Gives up the keys that are pending, which stay kRefused, and what was prepared for them. No leaf is locked.
  virtual void Abandon() = 0;
  virtual void AppendLocks(std::vector<rdma::Operation>* operations) = 0;
  // Judges the posting of all operations to which this has appended.
  virtual coro::Task<Status> TakeLocks(Status posted, std::span<const rdma::Operation> operations) = 0;
  // Sets Insertion::change, too, for the keys whose leaves are locked: the changes take place, or their outcome is
  // unknown.
  virtual void AppendChanges(std::vector<rdma::Operation>* operations) = 0;
  virtual coro::Task<Status> TakeChanges(Status posted) = 0;
  // Does what is left of making new leaves known to other clients, which is rarely anything.
  virtual coro::Task<void> Publish() = 0;
  // Number of keys of which nothing is known yet. After Find: to be locked.
  virtual size_t pending() const = 0;
  // Number of keys that Find has left as kRefused.
  virtual size_t refused() const = 0;
  // Number of keys whose leaves are locked. After TakeLocks.
  virtual size_t locked() const = 0;
};

class RemoteIndex {
 public:
  virtual ~RemoteIndex() = default;

  virtual coro::Async<StatusOr<FindResult>> Find(const Key& key) = 0;
  // Finds all keys, sharing doorbells. results.size() == keys.size(); both must live until the await returns.
  virtual coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) = 0;
  virtual coro::Task<Status> Scan(ScanRange range, ScanResult* result) = 0;
  // Search and Nearest are like those of LocalIndex. Unimplemented for kinds that are not spatial.
  virtual coro::Task<Status> Search(WindowQuery query, ScanResult* result);
  virtual coro::Task<Status> Nearest(NearestQuery query, ScanResult* result);
  virtual coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) = 0;
  virtual coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) = 0;
  // A batch, if clients change the index (IndexTraits::client_writes, IndexRights); null otherwise. This index must
  // outlive it.
  virtual std::unique_ptr<InsertBatch> NewInsertBatch() { return nullptr; }
  // Maps the key from record `from`, or from any if that is null, to record `to`, which is not null. NotFound if it is
  // not mapped to `from`, or, if that is null, is absent. Unimplemented except in kinds that clients can change
  // (IndexTraits::client_writes); if only the owner may, this is a call.
  virtual coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);

  // Estimates FindMany of `keys` (Find, if it is one), Scan of `range`, and Search, as the client's caches stand now:
  // what is cached, and for how much of it the client must ask. Performs no verb, allocates nothing and leaves the
  // caches as they are; of many keys it looks at some. By default: the owner does it.
  virtual ReadEstimate Estimate(std::span<const Key> keys) const {
    return {.calls = 1, .keys = static_cast<double>(keys.size())};
  }
  virtual ReadEstimate Estimate(const ScanRange& /*range*/) const { return {.calls = 1, .keys = 1}; }
  virtual ReadEstimate EstimateSearch(const WindowQuery& /*query*/) const { return {.calls = 1, .keys = 1}; }

  // Drops everything cached about `key`, because the caller found that its record is removed or reused.
  virtual void Forget(const Key& key) = 0;
  // The caller knows from an answer of the owner where the key's record was: a kind that caches places of records adds
  // it, so that the next lookup needs no READ of the index.
  virtual void Remember(const Key& /*key*/, rdma::GlobalAddress /*record*/) {}

  virtual ClientStatistics statistics() const = 0;
};

// Names a table's index on every node: the RPCs of all indexes of a node share methods and carry this id.
using IndexId = uint16_t;

// Methods of the index layer (rdma/fabric.h: 64-255). Each kind has a range of its own. These are taken:
//
//   64 .. 79    hash          112 .. 127   rolex
//   80 .. 95    xstore        128 .. 143   dolphin
//   96 .. 111   dex           144 .. 159   catfish      160 .. 167   shared leaves: blocks, changes, claims
//   168 .. 175  blink
inline constexpr rdma::MethodId kHashMethods = 64;
inline constexpr rdma::MethodId kXStoreMethods = 80;
inline constexpr rdma::MethodId kDexMethods = 96;
inline constexpr rdma::MethodId kRolexMethods = 112;
inline constexpr rdma::MethodId kDolphinMethods = 128;
inline constexpr rdma::MethodId kCatfishMethods = 144;
inline constexpr rdma::MethodId kBlockMethods = 160;
inline constexpr rdma::MethodId kBlinkMethods = 168;

}  // namespace gannet::index
