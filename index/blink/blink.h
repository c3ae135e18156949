// The B-link tree that clients change by verbs: the mode of Sherman (SIGMOD'22) that the papers of DEX, ROLEX and
// Dolphin compare with. Clients cache inner nodes, READ whole leaves, lock by CAS and WRITE what they change.
//
// Every node is a shared leaf (index/shared_leaf/leaf/leaf.h), inner nodes too: their entries are | low key of a child
// | its address |. The nodes of a level form a chain by right links. The root stays at one address: when it is nearly
// full, its entries move to two new nodes below it.
//
// A separator is an entry of an inner node. It may be missing, unless it is the first of its node: then readers come to
// its child by the right link of the child's left sibling. A change that comes this way inserts the separator. So a
// split need not lock the parent, and the tree works also if a client dies before it has inserted the separator. (The
// inserts of a transaction lock the parent, too, where they can, because they change both by one posting:
// separator_notices.h.)
//
// A separator that is there leads to its child. The child lives, and has the separator as its low fence:
//   - An insert of a separator READs the parent, then looks at the child, then locks the parent by a CAS that expects
//     what was READ. If the child is locked, or dead, or another node by now, nothing is inserted.
//   - A merge of a node with its left sibling READs the parent, locks the two, takes out the separator, also by a CAS
//     that expects what was READ, and then changes the two.
//
// So a merge that kills the child after that look takes a separator out of the parent after that look, too. If it does
// so before the insert's CAS, this CAS fails; if it does so later, it takes out what was inserted. Otherwise a
// separator could stay after the death of its child. If the parent was then split right there, the keys from there on
// would have no first child to begin at. docs/models/separator.pml is a model of this.
//
// A cached copy of an inner node may be stale: its separator leads to a dead node, or to one that does not cover the
// key. Then readers take the entry to its left. They do the same in the tree itself, where only a client that breaks
// the rules leaves such a separator; a change that meets one removes it.
//
// Byte keys (index/shared_leaf/leaf/tagged_leaf.h). An entry is the tag of its key and the address of a record, which
// holds the key; one of an inner node is the address of a child alone, whose low fence is the separator. So a client
// READs the records of a leaf's entries for a scan or a split, and the children of an inner node when it takes that
// into its cache: one more posting each. A lookup takes no more than with integer keys. The owner keeps copies of inner
// nodes with their separators (separator_table.h).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/client_options.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index {

struct BlinkOptions {
  size_t max_key_bytes = kShortKeyBytes;  // of byte keys; at most kShortKeyBytes
  // How long the owner tries to read what a client keeps locked, or has damaged. After that a lookup finds nothing, and
  // a scan or a change is an error. The repair after a dead client is much faster.
  absl::Duration patience = absl::Seconds(10);
  IndexRights rights = IndexRights::kClients;
  // The call by which clients ask for the root: that of their kind.
  rdma::MethodId describe_method = kBlinkMethods;
};

// The owner's side, added to `service`.
StatusOr<std::unique_ptr<LocalIndex>> CreateBlink(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const BlinkOptions& options = {});

// Serves the clients of all B-link indexes of `service` on its node. Must be called before Node::Serve.
void RegisterBlinkMethods(IndexService* service);

namespace blink {
class SharedNodes;
}  // namespace blink

// A cache of inner nodes, of at most `max_bytes`, for any number of clients of one tree, in any threads of a process.
// 0: of 64 MiB.
std::shared_ptr<blink::SharedNodes> MakeBlinkCache(size_t max_bytes = 0);

using BlinkClientOptions = shared_leaf::ClientOptions<blink::SharedNodes>;  // their cache is from MakeBlinkCache

StatusOr<std::unique_ptr<RemoteIndex>> ConnectBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const BlinkClientOptions& options);

}  // namespace gannet::index
