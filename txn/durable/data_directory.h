// The directory of a database, before its content is read: whether it holds a database, which one, and whether every
// node's part is there; and the creation of a new one.
//
//   DIR                       of a single node: MANIFEST, LOG-END, log-*, checkpoint-*, new-segment-*
//   DIR/node-0, DIR/node-1 .. of several: the same in each
//
// **A directory that held data never becomes a new database by itself.** A database is created only where the caller
// asks for it, and only if no part, of this node or any other, has a file of an existing or former database. Every node
// refuses a missing part by name, and nothing is changed: a directory that is not mounted, or a file that was removed,
// can still be brought back.
//
// **Creation.** The first node to come creates the parts of all nodes, one durable step after the other, under a lock
// of the whole directory: the directories, then in each a MANIFEST that has the new database's identity and `started` =
// false. A node starts only when all manifests are there. So after a crash at any moment, one of these holds:
//
//   - A log, a checkpoint, or a manifest with `started` is there: all manifests had been durable before. One that is
//     missing now was lost: DataLoss.
//   - None of these is there: no node has started, so no data was ever durable. There is nothing, or an interrupted
//     creation, which continues with the identity that it finds.
//
// `started` is set when the node's log has its first segment, and before the node lets any epoch of the cluster become
// durable (an epoch needs all nodes' logs). So a manifest without it beside another node's data is not a loss either.
//
// **Identity.** All manifests of a database have the same identity, and each has its node's number. A part of another
// database, or of another node, is refused by name. Manifests of version 1 have no identity; each node's manifest gets
// it at its first start. Files of the log and of checkpoints have it, too (log/format/identity.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/manifest/manifest.h"

namespace gannet::txn {

// DIR itself for a single node, else DIR/node-<n>.
std::string NodeDirectory(const std::string& directory, int node, int num_nodes);
// The directory that has the name of this file or directory; "copy/" is that of "copy".
std::string ParentOf(std::string path);

// One node's part.
struct NodeData {
  std::string path;
  log::Manifest manifest;
};

// The manifests of all nodes of the database, in order; those of an earlier generation than others have the tables of
// the newest one here (catalog.h). NotFound: there is no database; the message says whether a creation was interrupted.
// DataLoss: a manifest is missing or damaged, or belongs to another database or node. Changes nothing. `held` (may be
// null): a part that the caller holds, and whose manifest it knows; the file is not read.
StatusOr<std::vector<NodeData>> ReadDataDirectory(log::FileSystem& files, const std::string& directory,
                                                  const NodeData* held = nullptr);

// True if a creation was interrupted there: there is no database, and the remains may be replaced by one.
StatusOr<bool> IsUnfinished(log::FileSystem& files, const std::string& directory);

// True if the directory is not there, or contains only what a file system makes by itself, and the empty directories of
// a creation that was interrupted early.
StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory);

// A node's lock on its part of an existing database, and the manifests of all nodes as their files have them. That of
// the node itself was read under the lock, so no other process changes it.
struct HeldDirectory {
  std::string path;
  std::shared_ptr<void> lock{};
  std::vector<NodeData> nodes{};
};

// Takes the part of `node` for this process; first creates the database if there is none and `create` is true.
// InvalidArgument: the database has another number of nodes, or there is none, and the directory has other files.
// FailedPrecondition: another process has the part. Other errors as from ReadDataDirectory.
StatusOr<HeldDirectory> TakeDataDirectory(log::FileSystem& files, const std::string& directory, int node, int num_nodes,
                                          bool create, const std::string& application);

// Gives the manifest of a node, whose directory the caller holds, the database's identity if it has none. Two nodes may
// do so at the same time: write it before *lock is destroyed.
Status GiveIdentity(log::FileSystem& files, const std::string& directory, log::Manifest* manifest,
                    std::shared_ptr<void>* lock);

}  // namespace gannet::txn
