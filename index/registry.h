// The registry of index kinds: the one place that knows which kinds there are. Everything above index/ asks it by
// number or by name, and decides by a kind's traits, never by the kind itself.
//
// A new kind has a folder index/<kind>/ that defines its IndexKindEntry, and one line in GANNET_INDEX_KINDS.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index {

class IndexService;

// Options of one node's part of a table's index.
struct IndexOptions {
  KeyKind key_kind = KeyKind::kInteger;
  size_t max_key_bytes = kIntegerKeyBytes;     // of byte keys; at most IndexTraits::max_key_bytes
  uint64_t expected_keys = 1024;               // more keys are allowed
  IndexRights rights = IndexRights::kClients;  // of kinds with client_writes; others are always kOwnerOnly
  // Options that only the kind knows, as its header defines them (XStoreOptions), or nothing. For values that both
  // have, the fields above count. A kind ignores options of another kind.
  std::any own = {};
};

// Options of a client of a table's index. A kind ignores those that do not apply to it.
struct IndexClientOptions {
  KeyKind key_kind = KeyKind::kInteger;  // this and the next two: as in the owner's IndexOptions
  size_t max_key_bytes = kIntegerKeyBytes;
  IndexRights rights = IndexRights::kClients;
  size_t location_cache_bytes = 1 << 20;  // for kinds that remember addresses of records; 0: none
  // Set for kinds that hold values. There are no records, so what a lookup finds is final, and never `from_cache`.
  bool values_in_entries = false;
  bool by_call = false;  // every lookup and scan is a call to the owner, where the kind offers that
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
  // The channel's node, for kinds whose clients change the index: their verbs name the connection to the owner
  // (fabric.h, 5). Null: connections are never lost without a death.
  rdma::Node* node = nullptr;
  // A cache that make_cache of this kind has made, for the clients of this index of this owner. Null: the client has a
  // cache of its own.
  std::shared_ptr<SharedCache> shared_cache = {};
  // For kinds whose clients claim leaves (shared_leaf/claim/claim.h). It must outlive the client. Null: they claim
  // none.
  shared_leaf::ClaimHolder* claims = nullptr;
  // Options that only the kind knows (XCacheOptions), or nothing. They replace `by_call`, `call_timeout` and
  // `shared_cache`.
  std::any own = {};
};

// Options that only a kind knows, for IndexOptions::own.
struct OwnOptions {
  std::any options;
  std::string text;  // names all of them, so that the defaults of a later program do not matter
};

// All functions but the last three are set. They may be called from several threads at once.
struct IndexKindEntry {
  std::string name;  // in manifests, flags and reports
  IndexTraits traits;
  // The owner's side of index `id`, added to `service`, which must outlive it. InvalidArgument names a wrong option.
  StatusOr<std::unique_ptr<LocalIndex>> (*create)(IndexService* service, IndexId id, const IndexOptions& options);
  // A client's side of index `id` at `owner`. `channel` must outlive it. Does no I/O.
  StatusOr<std::unique_ptr<RemoteIndex>> (*connect)(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const IndexClientOptions& options);
  // Registers the handlers of the kind's calls on service->node(): once per node, before it serves. They answer for all
  // indexes of the kind that are or will be added to `service`, which must outlive the node's server threads.
  void (*register_methods)(IndexService* service);
  // Approximate memory of the index per key after a bulk load with this `fill` (LocalIndex::BulkLoad).
  double (*bytes_per_key)(double fill);
  // Reads the kind's own options from text ("name=value,name=value"). Those that are not named have their defaults.
  // InvalidArgument names a wrong one. Null: the kind has no options of its own.
  StatusOr<OwnOptions> (*read_options)(std::string_view text) = nullptr;
  // Makes a cache for all clients of one index in a process (IndexClientOptions::shared_cache), of at most `max_bytes`;
  // 0: of the kind's default. Null: clients of this kind share none.
  std::shared_ptr<SharedCache> (*make_cache)(size_t max_bytes) = nullptr;
  // Makes the memory of all caches of this kind in a process, of at most `max_bytes`; 0: of the kind's default. Null:
  // each cache has its own.
  std::shared_ptr<CachePool> (*make_pool)(size_t max_bytes) = nullptr;
};

// Adds a kind that is not in GANNET_INDEX_KINDS, e.g. one of a test. Returns its number. InvalidArgument if the entry
// is not complete, AlreadyExists if its name is taken. Not thread-safe: before any other use of the registry.
StatusOr<IndexKind> RegisterIndexKind(IndexKindEntry entry);

// Null if there is no such kind. An entry lives as long as the program. Thread-safe, as is everything below.
const IndexKindEntry* FindIndexKind(IndexKind kind);
const IndexKindEntry* FindIndexKind(std::string_view name);

// The entry of a kind that exists. A number that was cast to a kind goes to FindIndexKind first.
const IndexKindEntry& EntryOf(IndexKind kind);
// The rights of a table with an index of this kind: `asked`, or if none are asked for, the most that the kind allows.
// InvalidArgument: clients cannot change an index of this kind, or `asked` is none of the rights.
StatusOr<IndexRights> RightsFor(const IndexKindEntry& kind, std::optional<IndexRights> asked);
// The properties of an index of this kind with these rights. All code that depends on client_writes of a table asks
// for these, not for those of the kind.
IndexTraits TraitsOf(const IndexKindEntry& kind, IndexRights rights);
// "owner" and "clients": for flags, reports and manifests.
std::string_view NameOf(IndexRights rights);
// The reverse. InvalidArgument names both.
StatusOr<IndexRights> IndexRightsOf(std::string_view name);

// The number of the kind with this name. InvalidArgument lists the existing names.
StatusOr<IndexKind> IndexKindOf(std::string_view name);

// Calls read_options. InvalidArgument also if the kind has no options of its own, and `text` is not empty.
StatusOr<OwnOptions> ReadOwnOptions(const IndexKindEntry& entry, std::string_view text);

// The names of the kinds that have this property, for messages: "blink, rolex or dex".
std::string KindsWith(bool IndexTraits::*property);

// The names in the order of the kinds' numbers, from 0.
std::vector<std::string_view> IndexKindNames();

// Calls register_methods of every kind.
void RegisterAllIndexMethods(IndexService* service);

}  // namespace gannet::index
