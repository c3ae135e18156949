// A client of the hash index on another node.
//
// Find uses the location cache (no READ at all), or one READ of the key's bucket, which names the record by a 16-bit
// tag. The caller READs the record next and verifies it (FindResult in index/index.h). More READs are needed only where
// buckets overflow or split, or two keys of a chain share a tag (then the candidates' headers are READ together). After
// a bounded number of READs of a locked or changing chain the client asks the owner by RPC, so a lookup always ends.
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

// Connects to the hash index `id` at `owner`. `channel` must outlive the client. Does no I/O: the first operation asks
// the owner where the buckets are, and fails with NotFound if there is no such index.
StatusOr<std::unique_ptr<RemoteIndex>> ConnectHash(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                   const HashClientOptions& options);

}  // namespace gannet::index
