// Dolphin (MSST'24): an adaptive radix tree of hints over B+ leaves that clients change word by word (leaf.h).
//
// Clients cache inner nodes and READ whole leaves. Inserts, updates and removals of several clients are in one leaf at
// once, under the shared side of its lock; splits and merges take the exclusive side (ternary_lock.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/dolphin/leaf.h"
#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"
#include "index/shared_leaf/client_options.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index {

struct DolphinOptions {
  size_t max_key_bytes = kShortKeyBytes;  // of byte keys; at most kShortKeyBytes
  // Key lines of a leaf of integer keys: 1 to dolphin::kMostKeyLines. With 3 a leaf has 512 bytes and 21 slots; with 7
  // it has 1 KB and 49 slots, as in the paper.
  size_t key_lines = dolphin::kDefaultKeyLines;
  // How long the owner waits for a leaf that others hold, as in BlinkOptions.
  absl::Duration patience = absl::Seconds(10);
  IndexRights rights = IndexRights::kClients;
};

// The options as text, for TableOptions::index_options: "key_lines=3". The others are not among them.
std::string ToText(const DolphinOptions& options);
// Options that the text does not name have their defaults. InvalidArgument names a wrong one.
StatusOr<DolphinOptions> DolphinOptionsOf(std::string_view text);

// The owner's side, added to `service`. InvalidArgument: wrong options; or the fabric has more than 64 nodes, for which
// the lock has no bits.
StatusOr<std::unique_ptr<LocalIndex>> CreateDolphin(IndexService* service, IndexId id, KeyKind key_kind,
                                                    const DolphinOptions& options = {});

// Serves the clients of all indexes of this kind of `service` on its node. Must be called before Node::Serve.
void RegisterDolphinMethods(IndexService* service);

namespace dolphin {

// index (2) -> schema of the keys (schema_wire.h), key lines of a leaf (1), offsets of the root and of the first leaf
// (8 each).
inline constexpr rdma::MethodId kDescribe = kDolphinMethods;

class SharedInner;

}  // namespace dolphin

// A cache of inner nodes, of at most `max_bytes`, for any number of clients of one index, in any threads of a process.
// 0: of 64 MiB.
std::shared_ptr<dolphin::SharedInner> MakeDolphinCache(size_t max_bytes = 0);

using DolphinClientOptions = shared_leaf::ClientOptions<dolphin::SharedInner>;  // their cache is from MakeDolphinCache

StatusOr<std::unique_ptr<RemoteIndex>> ConnectDolphin(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                      const DolphinClientOptions& options);

}  // namespace gannet::index
