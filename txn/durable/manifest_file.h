// ManifestFile: the manifest of this node while its directory is in use. All changes of it are made here.
//
// Only the process that holds the directory writes its manifest, so this is made of what was read when the directory
// was taken, and does not read the file. After a write that failed it does, because the file may be the old or the new
// one. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/file/file_system.h"
#include "log/manifest/manifest.h"
#include "txn/durable/catalog.h"

namespace gannet::txn {

struct LocalNode;

class ManifestFile {
 public:
  // `directory`: of this node, which the caller holds. `manifest`: what was read there since. All must outlive this.
  ManifestFile(const LocalNode* local, log::FileSystem* files, std::string directory, log::Manifest manifest)
      : local_(local), files_(files), directory_(std::move(directory)), known_(std::move(manifest)) {}

  StatusOr<log::Manifest> Read();
  // Writes what `edit` makes of the manifest, unless that is nothing, or returns its error.
  Status Change(absl::FunctionRef<Status(log::Manifest*)> edit);
  // Gives it the tables of the catalog. The files that checkpoints have of a table that the catalog lacks stay until
  // the table is dropped for good: the change may be taken back.
  Status Note(const Catalog& catalog);
  // Does what Note does; after an error the next change notes the catalog.
  Status NoteNowOrLater(const Catalog& catalog);
  // Removes the files of checkpoints that `without`, else the manifest, does not have. (None of them is being written:
  // there is one Checkpointer.)
  Status RemoveStrays(const log::Manifest* without = nullptr);

 private:
  // The caller of these holds the mutex.
  StatusOr<log::Manifest> Now();
  Status ChangeNow(absl::FunctionRef<Status(log::Manifest*)> edit);
  void Apply(const Catalog& catalog, log::Manifest* manifest) const;

  const LocalNode* const local_;
  log::FileSystem* const files_;
  const std::string directory_;
  Mutex mutex_;  // guards the members below, and the file
  std::optional<log::Manifest> known_;
  std::optional<Catalog> owed_;  // what NoteNowOrLater could not note
};

}  // namespace gannet::txn
