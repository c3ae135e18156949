// Options of a client of an index of shared leaves.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "index/index.h"
#include "index/registry.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

class ClaimHolder;

// Cache: what the clients of a kind of index share (shared_leaves.h).
template <class Cache>
struct ClientOptions {
  KeyKind key_kind = KeyKind::kInteger;   // this and the next: as the owner's
  size_t max_key_bytes = kShortKeyBytes;  // of byte keys
  // A cache that the kind has made. Null: the client has one of its own, of at most cache_bytes; 0: of the kind's
  // default.
  std::shared_ptr<Cache> shared = {};
  size_t cache_bytes = 0;
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
  absl::Duration patience = rdma::Channel::kDefaultCallTimeout;  // with a leaf that stays locked; then Unavailable
  rdma::Node* node = nullptr;                                    // of the channel; see LeafChannel
  // Entries of integer keys have values, not addresses, so no record tells whether an entry is in the index.
  bool values_in_entries = false;
  IndexRights rights = IndexRights::kClients;  // as the owner's
  // Of kinds whose clients claim leaves; it must outlive the client. Null: they claim none.
  ClaimHolder* claims = nullptr;

  // `options.shared_cache`, if any, is a Cache.
  static ClientOptions Of(const IndexClientOptions& options) {
    return {.key_kind = options.key_kind,
            .max_key_bytes = options.max_key_bytes,
            .shared = std::static_pointer_cast<Cache>(options.shared_cache),
            .call_timeout = options.call_timeout,
            .patience = options.call_timeout,
            .node = options.node,
            .values_in_entries = options.values_in_entries,
            .rights = options.rights,
            .claims = options.claims};
  }
};

}  // namespace gannet::index::shared_leaf
