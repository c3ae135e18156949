// ROLEX (FAST'23): an ordered index for memory nodes with little CPU. Data lies in leaves that clients read and change
// by verbs (index/shared_leaf/leaf/leaf.h); learned models lead from a key to its leaf, and are cached by clients as a
// whole. The owner's CPU only trains models, in the background and without moving data.
//
// What is different from the paper.
//   - A synonym leaf is the right sibling of the leaf that was split, with fences and a lock of its own. So locks are
//     per leaf, and not in the leaf table's entries; models, leaf tables and synonym tables are hints, which the fences
//     in the leaves confirm. A full synonym table refuses nothing: right links lead to all leaves, and its oldest
//     synonyms make room for new ones.
//   - The FAA on a synonym table goes out with the split, as in the paper (3.4). The synonym itself follows by another
//     posting, because the FAA's result says where it goes. By then the lock is released.
//   - A leaf table's entry has the leaf's low fence, so that a client READs one leaf, or one line, instead of all that
//     are within the model's error (model.h).
//   - Keys may be byte strings of up to 64 bytes (leaf_table.h). The paper's have 8 bytes.
//   - Upper models are the clients' own: each cache builds them over the first keys of the models that it has
//     (upper_model.h). The owner's directory has two levels of tables, which change with the models.
//   - Empty leaves are absorbed by their left neighbours, trained ones too.
//   - Blocks for new leaves are lent by the owner in batches, instead of an FAA for each (block_lending.h).
//   - Retraining does not lock the old model.
//   - A model has as many linear pieces as the keys of about a hundred leaves need. So synonym tables, which have a
//     fixed size, are not larger than the leaves where the keys are hard to learn.
//   - Each owner has an index of its own. The paper spreads the leaves of one model over memory nodes (3.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/client_options.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index {

inline constexpr uint32_t kMaxRolexEpsilon = 4096;

struct RolexOptions {
  size_t max_key_bytes = kShortKeyBytes;  // of byte keys; at most kShortKeyBytes
  // Error bound of the linear pieces, in sixteenths of a leaf: from 1 to kMaxRolexEpsilon.
  uint32_t epsilon = 16;
  // How long the owner tries to read what a client keeps locked, or has damaged. After that a lookup finds nothing, and
  // a scan or a change is an error. The repair after a dead client is much faster.
  absl::Duration patience = absl::Seconds(10);
  IndexRights rights = IndexRights::kClients;
};

// The options as text, for TableOptions::index_options: "epsilon=16". The others are not among them.
std::string ToText(const RolexOptions& options);
// Options that the text does not name have their defaults. InvalidArgument names a wrong one.
StatusOr<RolexOptions> RolexOptionsOf(std::string_view text);

// The owner's side, added to `service`.
StatusOr<std::unique_ptr<LocalIndex>> CreateRolex(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const RolexOptions& options = {});

// Serves the clients of all ROLEX indexes of `service` on its node. Must be called before Node::Serve.
void RegisterRolexMethods(IndexService* service);

namespace rolex {
class SharedModels;
}  // namespace rolex

// A cache of models, for any number of clients of one index of one owner, in any threads of a process. The models and
// their leaf tables take at most `max_bytes` (0: no limit); the directory, a hundredth of that, comes in addition.
std::shared_ptr<rolex::SharedModels> MakeRolexCache(size_t max_bytes = 0);

// Their cache is from MakeRolexCache. With values_in_entries a single line does not tell whether its entries are in the
// index: so lookups READ line 0 of the leaf with it (leaf.h).
using RolexClientOptions = shared_leaf::ClientOptions<rolex::SharedModels>;

StatusOr<std::unique_ptr<RemoteIndex>> ConnectRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const RolexClientOptions& options);

}  // namespace gannet::index
