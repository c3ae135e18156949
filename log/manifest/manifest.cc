#include <algorithm>
#include <numeric>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/utf8.h"
#include "log/manifest/manifest_json.h"
#include "log/manifest/whole_file.h"

namespace gannet::log {

namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoint-";
constexpr std::string_view kUnfinishedManifest = "MANIFEST.tmp";

std::string ManifestPath(const std::string& directory) {
  return directory + "/MANIFEST";
}

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

uint64_t CheckpointDescription::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const CheckpointFile& file) { return sum + file.bytes; });
}

uint64_t CheckpointDescription::records() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const CheckpointFile& file) { return sum + file.records; });
}

StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& directory) {
  const std::string path = ManifestPath(directory);
  const StatusOr<std::string> text = ReadWholeFile(files, path);
  if (!text.ok()) return text.status();
  StatusOr<Manifest> manifest = ManifestFromJson(*text);
  if (manifest.ok()) return manifest;
  return Status(manifest.status().code(), absl::StrCat(path, ": ", manifest.status().message()));
}

StatusOr<Identity> ReadIdentity(FileSystem& files, const std::string& directory) {
  const StatusOr<Manifest> manifest = ReadManifest(files, directory);
  if (absl::IsNotFound(manifest.status())) return Identity{};
  if (!manifest.ok()) return manifest.status();
  return Identity::FromText(manifest->database);
}

// Text that is not UTF-8 would not be read back unchanged.
Status CheckTexts(const Manifest& manifest) {
  bool good = IsUtf8(manifest.application);
  for (const TableDescription& table : manifest.tables)
    good = good && IsUtf8(table.name) && IsUtf8(table.index_options) && IsUtf8(table.application);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError("a note of the application or the name of a table is not UTF-8");
}

Status WriteManifest(FileSystem& files, const std::string& directory, const Manifest& manifest) {
  GANNET_RETURN_IF_ERROR(CheckTexts(manifest));
  const std::string text = ManifestToJson(manifest);
  return ReplaceWholeFile(files, ManifestPath(directory), std::as_bytes(std::span(text)));
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
    if (!name.starts_with(kCheckpointPrefix)) continue;
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
