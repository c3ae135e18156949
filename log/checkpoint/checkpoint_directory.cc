// The names of checkpoints, and their removal.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/checkpoint/checkpoint.h"

namespace gannet::log {
namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoint-";
constexpr std::string_view kUnfinishedManifest = "MANIFEST.tmp";

std::string CheckpointName(uint64_t id) {
  return absl::StrFormat("checkpoint-%016x", id);
}

Status RemoveTree(FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) GANNET_RETURN_IF_ERROR(files.Remove(absl::StrCat(directory, "/", name)));
  return files.Remove(directory);
}

}  // namespace

bool IsCheckpointName(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return false;
  uint64_t id = 0;
  std::from_chars(name.data() + kCheckpointPrefix.size(), name.data() + name.size(), id, 16);
  return name == CheckpointName(id);
}

std::string CheckpointDirectory(const std::string& directory, uint64_t id) {
  return directory + "/" + CheckpointName(id);
}

Status RemoveCheckpoint(FileSystem& files, const std::string& directory, uint64_t id) {
  const Status removed = RemoveTree(files, CheckpointDirectory(directory, id));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

Status RemoveStrayCheckpoints(FileSystem& files, const std::string& directory, const Manifest& manifest) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name == kUnfinishedManifest) GANNET_RETURN_IF_ERROR(files.Remove(absl::StrCat(directory, "/", name)));
    if (!IsCheckpointName(name)) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    const auto known =
        std::ranges::find_if(manifest.checkpoints, [&](const auto& one) { return CheckpointName(one.id) == name; });
    if (known == manifest.checkpoints.end()) {
      GANNET_RETURN_IF_ERROR(RemoveTree(files, path));
      continue;
    }
    const StatusOr<std::vector<std::string>> its_files = files.List(path);
    if (!its_files.ok()) return its_files.status();
    for (const std::string& file : *its_files) {
      const bool is_named = std::ranges::find(known->files, file, &CheckpointFile::name) != known->files.end();
      if (!is_named) GANNET_RETURN_IF_ERROR(files.Remove(absl::StrCat(path, "/", file)));
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::log
