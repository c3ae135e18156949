// The hash index's entry in the registry.
#include "index/hash/hash_client.h"
#include "index/hash/hash_index.h"
#include "index/hash/hash_rpc.h"
#include "index/registry.h"

namespace gannet::index {

IndexKindEntry HashKind() {
  return {
      .name = "hash",
      .traits = {.guesses_records = true, .max_key_bytes = kMaxKeyBytes, .most_own_key_bytes = 0},
      .create = [](IndexService* service, IndexId id,
                   const IndexOptions& options) -> StatusOr<std::unique_ptr<LocalIndex>> {
        return HashIndex::Create(service, id,
                                 {.key_kind = options.key_kind,
                                  .max_key_bytes = options.max_key_bytes,
                                  .expected_keys = options.expected_keys});
      },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            return ConnectHash(
                channel, owner, id,
                {.location_cache_bytes = options.location_cache_bytes, .call_timeout = options.call_timeout});
          },
      .register_methods = RegisterHashMethods,
      // A key's share of its bucket.
      .bytes_per_key = [](double) { return 24.0; },
  };
}

}  // namespace gannet::index
