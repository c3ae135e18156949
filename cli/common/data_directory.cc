#include "cli/common/data_directory.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

// The kernel lists the locks of files: "1: FLOCK  ADVISORY  WRITE 4711 00:2f:1234 0 EOF".
std::optional<int> HolderOf(const std::string& directory) {
  struct stat lock = {};
  if (stat((directory + "/LOCK").c_str(), &lock) != 0) return std::nullopt;
  const std::string file = absl::StrFormat("%02x:%02x:%d", major(lock.st_dev), minor(lock.st_dev), lock.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int process = 0;
    if (words.size() > 5 && words[1] == "FLOCK" && words[5] == file && absl::SimpleAtoi(words[4], &process))
      return process;
  }
  return std::nullopt;
}

}  // namespace gannet::cli
