#include "cli/data_directory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "txn/durable/recovery.h"

namespace gannet::cli {
namespace {

bool SameTables(const log::Manifest& a, const log::Manifest& b) {
  if (a.tables.size() != b.tables.size()) return false;
  for (size_t i = 0; i < a.tables.size(); ++i) {
    if (a.tables[i].id != b.tables[i].id || a.tables[i].name != b.tables[i].name) return false;
  }
  return true;
}

// Of node 0: of the directory itself, or of its first sub-directory.
StatusOr<log::Manifest> ReadFirstManifest(log::FileSystem& files, const std::string& directory) {
  StatusOr<log::Manifest> alone = log::ReadManifest(files, directory);
  if (!absl::IsNotFound(alone.status())) return alone;
  StatusOr<log::Manifest> first = log::ReadManifest(files, txn::NodeDirectory(directory, 0, 2));
  if (absl::IsNotFound(first.status())) {
    return absl::NotFoundError(
        absl::StrFormat("%s has no database: there is neither a MANIFEST nor a node-0/MANIFEST", directory));
  }
  return first;
}

}  // namespace

std::shared_ptr<log::FileSystem> DiskFiles() {
  return std::make_shared<log::PosixFileSystem>();
}

std::shared_ptr<log::FileSystem> FilesOf(txn::LogMedium medium) {
  if (medium == txn::LogMedium::kPmem) return std::make_shared<log::PmemFileSystem>();
  return DiskFiles();
}

StatusOr<std::vector<NodeData>> ReadDataDirectory(log::FileSystem& files, const std::string& directory) {
  const StatusOr<log::Manifest> first = ReadFirstManifest(files, directory);
  if (!first.ok()) return first.status();
  std::vector<NodeData> nodes;
  for (int node = 0; node < first->num_nodes; ++node) {
    const std::string path = txn::NodeDirectory(directory, node, first->num_nodes);
    StatusOr<log::Manifest> manifest = log::ReadManifest(files, path);
    if (absl::IsNotFound(manifest.status())) {
      return absl::DataLossError(
          absl::StrFormat("%s/MANIFEST is missing: the database has %d nodes", path, first->num_nodes));
    }
    if (!manifest.ok()) return manifest.status();
    if (manifest->node != node || manifest->num_nodes != first->num_nodes || !SameTables(*manifest, *first)) {
      return absl::DataLossError(
          absl::StrFormat("%s/MANIFEST is of node %d of %d, or of other tables than the first node's; this directory "
                          "was put together from several databases",
                          path, manifest->node, manifest->num_nodes));
    }
    nodes.push_back({path, *std::move(manifest)});
  }
  return nodes;
}

StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return true;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name == "MANIFEST.tmp") continue;
    if (!name.starts_with("node-")) return false;
    StatusOr<bool> empty = IsAbsentOrEmpty(files, absl::StrCat(directory, "/", name));
    if (!empty.ok() || !*empty) return empty;
  }
  return true;
}

}  // namespace gannet::cli
