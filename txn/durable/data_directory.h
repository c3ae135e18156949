// The directory of a database, before anything in it is read for its content: whether it holds a database, whose it is,
// whether every node's part is there; and the creation of a new one.
//
//   DIR                       of one node: MANIFEST, LOG-END, log-*, checkpoint-*, new-segment-*
//   DIR/node-0, DIR/node-1 .. of several: the same in each
//
// **What held data is never silently new.** A database is created only where asked for, and only where no part, of this
// node or any other, has a file that says that there is or was one. A missing part is refused by name, by every node,
// and nothing is changed: a directory that is not mounted, or a file that somebody removed, can still be brought back.
//
// **Creation.** The first node to come creates the parts of all nodes, one durable step after the other, under a lock
// of the whole directory: the directories, then in each a MANIFEST that has the new database's identity and `started` =
// false. A node starts only when all manifests are there. So at every moment, for whatever a crash left:
//
//   - a log, a checkpoint, or a manifest with `started` anywhere: all manifests had been durable before. One that is
//     missing now was lost: DataLoss.
//   - nothing of that: no node has started, so nothing was ever durable. What is there is nothing, or what is left of a
//     creation that was interrupted, and the creation goes on with the identity that it finds.
//
// `started` is set when the node's log has its first segment, and before the node lets any epoch of the cluster become
// durable (an epoch needs all nodes' logs). So a manifest without it beside another node's data is not a loss either.
//
// **Identity.** All manifests of a database have the same identity, and each has its node's number. A part of another
// database, or of another node, is refused by name. Databases that version 1 of the manifest describes have no
// identity; each node's manifest gets it at its first start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/checkpoint.h"
#include "log/file/file_system.h"

namespace gannet::txn {

// DIR itself for one node, else DIR/node-<n>.
std::string NodeDirectory(const std::string& directory, int node, int num_nodes);

// One node's part.
struct NodeData {
  std::string path;
  log::Manifest manifest;
};

// The manifests of all nodes of the database, in order. NotFound: there is no database; the message says whether a
// creation was interrupted. DataLoss: one is missing or damaged, or belongs to another database or node. Changes
// nothing.
StatusOr<std::vector<NodeData>> ReadDataDirectory(log::FileSystem& files, const std::string& directory);

// Whether a creation was interrupted there: there is no database, and what there is may be created over.
StatusOr<bool> IsUnfinished(log::FileSystem& files, const std::string& directory);

// A node's hold on its part of an existing database.
struct HeldDirectory {
  std::string path;
  std::shared_ptr<void> lock;
};

// Takes the part of `node` for this process; creates the database first if there is none and `create` says so.
// InvalidArgument: it belongs to another number of nodes. FailedPrecondition: another process has it. Else as
// ReadDataDirectory.
StatusOr<HeldDirectory> TakeDataDirectory(log::FileSystem& files, const std::string& directory, int node, int num_nodes,
                                          bool create, const std::string& application);

// Writes the manifest of a node; gives it the database's identity if it has none. The node's directory is held.
Status WriteIdentified(log::FileSystem& files, const std::string& directory, log::Manifest manifest);

}  // namespace gannet::txn
