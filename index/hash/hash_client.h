// The hash index as a client on another node sees it.
//
// Find: the location cache (no READ at all), else one READ of the key's bucket, which names the record by a 16-bit tag:
// the caller, who READs the record next, verifies it (FindResult in index/index.h). More READs only where buckets
// overflow or split, or two keys of a chain share a tag (then the candidates' headers are READ together). After a
// bounded number of READs that met a locked or changing chain the owner is asked by RPC, so a lookup always ends.
//
// Insert and Remove are RPCs.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "index/index.h"
#include "rdma/fabric.h"

namespace gannet::index {

struct HashClientOptions {
  size_t location_cache_bytes = 1 << 20;  // 0: none
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
};

// A client of the hash index `id` at `owner`. `channel` must outlive it. Does no I/O: the first use asks the owner
// where the buckets are, and fails with NotFound if it has no such index.
StatusOr<std::unique_ptr<RemoteIndex>> ConnectHash(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                   const HashClientOptions& options);

}  // namespace gannet::index
