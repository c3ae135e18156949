#include "txn/table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"

namespace gannet::txn {

Placement Placement::OnFirstNode() {
  return {.owner = [](const index::Key&, int) -> rdma::NodeId { return 0; },
          .range_owner = [](const index::Key&, const index::Key&, int) { return 0; }};
}

Placement Placement::ByHash() {
  return {.owner = [](const index::Key& key, int num_nodes) -> rdma::NodeId {
            const uint64_t hash = key.kind() == index::KeyKind::kInteger
                                      ? Mix64(key.integer())
                                      : XXH3_64bits(key.bytes().data(), key.bytes().size());
            return static_cast<rdma::NodeId>(hash % static_cast<uint64_t>(num_nodes));
          },
          .range_owner = [](const index::Key&, const index::Key&, int) { return kSeveralNodes; }};
}

}  // namespace gannet::txn
