// Programs see this of indexes: kinds, ranges of keys, queries and statistics. index.h has the contract of an index,
// and registry.h finds the kinds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/key.h"
#include "index/rectangle.h"
#include "rdma/global_address.h"

namespace gannet::index {

// X(enumerator, function that returns the kind's entry). Manifests store the names of kinds: never change a name.
#define GANNET_INDEX_KINDS(X)                                                    \
  X(kHash, HashKind)       /* point access */                                    \
  X(kXStore, XStoreKind)   /* point access, ordered scans */                     \
  X(kCatfish, CatfishKind) /* rectangles: searches of windows */                 \
  X(kBlink, BlinkKind)     /* point access, ordered scans, changed by clients */ \
  X(kRolex, RolexKind)     /* the same, led by learned models */                 \
  X(kDex, DexKind)         /* the same as blink, with leaves in the cache */     \
  X(kDolphin, DolphinKind) /* the same, with leaves that several change at once */

#define GANNET_INDEX_ENUMERATOR(enumerator, entry) enumerator,
enum class IndexKind : uint8_t { GANNET_INDEX_KINDS(GANNET_INDEX_ENUMERATOR) };
#undef GANNET_INDEX_ENUMERATOR

// Who may change the nodes of an index. Of kinds that clients can change (IndexTraits::client_writes) each table
// chooses; all other kinds are kOwnerOnly.
enum class IndexRights : uint8_t {
  // All that clients READ lies in the part of the owner's heap where they can do nothing else (rdma/heap_parts.h). A
  // client changes the index by calls.
  kOwnerOnly,
  // Nodes lie in the writable part. Clients lock and change them by verbs, and borrow memory for new ones.
  kClients,
};

// The properties of a kind on which its callers depend. Small: copied by value to where it is used often.
struct IndexTraits {
  // Offers Scan, ScanStep and PositionBehind.
  bool ordered = false;
  // Walk finds keys in ascending order, as BulkLoad needs them. Recovery fills such an index by one BulkLoad,
  // others by inserts from several threads.
  bool keeps_order = false;
  // PrefetchFor and GuessRecord pay: the owner looks up several keys by them, not by FindMany.
  bool guesses_records = false;
  // LocalIndex is an XStore: the owner trains a model, and clients keep parts of it (XCacheOptions).
  bool learned = false;
  // Keys are rectangles (rectangle.h). Offers Search, SearchStep and Nearest.
  bool spatial = false;
  // Clients change nodes of the index by verbs, under the locks in the nodes' version words (lock_word.h). If false,
  // only the owner's CPU changes them, and they lie where clients cannot write. Of a kind: clients can; of a table:
  // they may, because it has IndexRights::kClients (TraitsOf).
  bool client_writes = false;
  // Clients may claim leaves (shared_leaf/claim/claim.h), if the owner is given ranges (claim_ranges.h).
  bool has_claims = false;
  // Offers ScanRecords. Only the owner's CPU changes the index, so the addresses of the records are right.
  bool scans_records = false;
  // Longest byte keys that an index of this kind takes; at most kMaxKeyBytes.
  size_t max_key_bytes = kShortKeyBytes;
  // If byte keys may have more bytes than this, the index reads them from the records, which clients can write. So a
  // client that breaks the rules can damage the index, although only the owner's CPU changes it.
  size_t most_own_key_bytes = SIZE_MAX;
  // With integer keys, entries hold the whole key and bring back any 8 bytes in the place of a record's address whose
  // lower 63 bits are not 0: so entries can have values of that size, and no records. Then bulk loads, lookups, scans
  // and changes work as always; Walk has no keys to tell.
  bool holds_values = false;
};

// The keys that a scan of an ordered index asks for.
struct ScanRange {
  Key from;  // both ends are included
  Key to;
  bool reverse = false;     // from `to` downwards
  size_t limit = SIZE_MAX;  // stop after this many entries
};

// Finds the `count` rectangles that are nearest to a point; all, if there are fewer. Of equally distant ones, any.
struct NearestQuery {
  double x = 0;
  double y = 0;
  size_t count = 1;
};

// A part of the keys of an index, from `first` up to the first key of the next range, and the node that is to claim it
// (shared_leaf/claim/claim.h).
struct ClaimRange {
  OwnedKey first;
  rdma::NodeId node = 0;
};

// Counts of the index on one node.
struct Statistics {
  uint64_t keys = 0;
  uint64_t registered_bytes = 0;  // memory that clients can READ (leaves, buckets)
  uint64_t private_bytes = 0;     // memory that only the owner uses (inner nodes, models)
  uint64_t nodes = 0;             // leaves or buckets
  int height = 0;                 // levels of the tree; longest chain of a hash table
};

// Counts of one client of an index.
struct ClientStatistics {
  uint64_t cache_bytes = 0;  // of this client's own caches, without a SharedCache
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

}  // namespace gannet::index
