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

}  // namespace gannet::cli
