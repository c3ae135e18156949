#include "txn/durable/manifest_file.h"

#include <mutex>
#include <utility>

#include "base/check.h"

namespace gannet::txn {

StatusOr<log::Manifest> ManifestFile::Now() {
  if (!known_.has_value()) {
    StatusOr<log::Manifest> read = log::ReadManifest(*files_, directory_);
    if (!read.ok()) return read.status();
    known_ = *std::move(read);
  }
  return *known_;
}

void ManifestFile::Apply(const Catalog& catalog, log::Manifest* manifest) const {
  LeaveOutDropped(*local_, manifest);
  manifest->tables = catalog.tables;
  manifest->next_table = catalog.next_table;
  manifest->catalog_generation = catalog.generation;
}

Status ManifestFile::ChangeNow(absl::FunctionRef<Status(log::Manifest*)> edit) {
  StatusOr<log::Manifest> manifest = Now();
  if (!manifest.ok()) return manifest.status();
  if (owed_.has_value()) Apply(*owed_, &*manifest);
  GANNET_RETURN_IF_ERROR(edit(&*manifest));
  if (*manifest != *known_) {
    // The log and other nodes name tables by their numbers, so none is given twice.
    GANNET_CHECK(
        manifest->next_table >= known_->next_table && manifest->catalog_generation >= known_->catalog_generation,
        "%s: the next table is %d after %d, the generation of tables %d after %d", directory_, manifest->next_table,
        known_->next_table, manifest->catalog_generation, known_->catalog_generation);
    known_.reset();
    GANNET_RETURN_IF_ERROR(log::WriteManifest(*files_, directory_, *manifest));
    known_ = *std::move(manifest);
  }
  owed_.reset();
  return absl::OkStatus();
}

StatusOr<log::Manifest> ManifestFile::Read() {
  const std::lock_guard lock(mutex_);
  return Now();
}

Status ManifestFile::Change(absl::FunctionRef<Status(log::Manifest*)> edit) {
  const std::lock_guard lock(mutex_);
  return ChangeNow(edit);
}

Status ManifestFile::Note(const Catalog& catalog) {
  return Change([&](log::Manifest* manifest) {
    Apply(catalog, manifest);
    return absl::OkStatus();
  });
}

Status ManifestFile::NoteNowOrLater(const Catalog& catalog) {
  const std::lock_guard lock(mutex_);
  owed_ = catalog;
  return ChangeNow([](log::Manifest*) { return absl::OkStatus(); });
}

Status ManifestFile::RemoveStrays(const log::Manifest* without) {
  const std::lock_guard lock(mutex_);
  const StatusOr<log::Manifest> manifest = without == nullptr ? Now() : StatusOr<log::Manifest>(*without);
  return manifest.ok() ? log::RemoveStrayCheckpoints(*files_, directory_, *manifest) : manifest.status();
}

}  // namespace gannet::txn
