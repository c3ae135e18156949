#include "cli/data_directory.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"

namespace gannet::cli {
std::shared_ptr<log::FileSystem> DiskFiles() {
  return std::make_shared<log::PosixFileSystem>();
}

std::shared_ptr<log::FileSystem> FilesOf(txn::LogMedium medium) {
  if (medium == txn::LogMedium::kPmem) return std::make_shared<log::PmemFileSystem>();
  return DiskFiles();
}

Status CheckTableName(const std::string& flag, const std::string& table, const txn::NodeData& node) {
  std::vector<std::string> names;
  for (const log::TableDescription& has : node.manifest.tables) {
    if (has.name == table) return absl::OkStatus();
    names.push_back(has.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", table, ": must be one of the tables of ", node.path, ": ", absl::StrJoin(names, ", ")));
}

StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return true;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name == "MANIFEST.tmp" || name == "lost+found") continue;
    if (!name.starts_with("node-")) return false;
    StatusOr<bool> empty = IsAbsentOrEmpty(files, absl::StrCat(directory, "/", name));
    if (!empty.ok() || !*empty) return empty;
  }
  return true;
}

}  // namespace gannet::cli
