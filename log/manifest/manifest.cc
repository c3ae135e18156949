#include "log/manifest/manifest.h"

#include <numeric>
#include <span>

#include "absl/strings/str_cat.h"
#include "log/format/utf8.h"
#include "log/manifest/manifest_json.h"
#include "log/manifest/whole_file.h"

namespace gannet::log {

namespace {

std::string ManifestPath(const std::string& directory) {
  return directory + "/MANIFEST";
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

}  // namespace gannet::log
