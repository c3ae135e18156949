// Read-only files in a map: for reading logs that a test has made, truncated and damaged byte by byte.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/file/file_system.h"

namespace gannet::log {

using Image = std::vector<std::byte>;

class ImageFile final : public File {
 public:
  ImageFile(std::string path, const Image* image) : path_(std::move(path)), image_(image) {}

  Status Write(uint64_t, std::span<const std::byte>) override { return ReadOnly(); }
  Status Sync() override { return absl::OkStatus(); }
  Status WriteDurably(uint64_t, std::span<const std::byte>) override { return ReadOnly(); }
  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override {
    if (offset >= image_->size()) return size_t{0};
    const size_t bytes = std::min<uint64_t>(out.size(), image_->size() - offset);
    std::memcpy(out.data(), image_->data() + offset, bytes);
    return bytes;
  }
  Status Allocate(uint64_t) override { return ReadOnly(); }
  StatusOr<uint64_t> Size() override { return image_->size(); }
  const std::string& path() const override { return path_; }
  void Renamed(const std::string& path) override { path_ = path; }

 private:
  Status ReadOnly() const { return absl::PermissionDeniedError(path_); }

  std::string path_;
  const Image* const image_;
};

// `files`: by full path. The directory is the part before the last slash.
class ImageFileSystem final : public FileSystem {
 public:
  std::map<std::string, Image> files;

  StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode) override {
    const auto found = files.find(path);
    if (found == files.end()) return absl::NotFoundError(path);
    return std::make_unique<ImageFile>(path, &found->second);
  }
  StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::vector<std::string> names;
    for (const auto& [path, image] : files) {
      if (path.starts_with(directory + "/")) names.push_back(path.substr(directory.size() + 1));
    }
    return names;
  }
  Status MakeDirectory(const std::string& path) override { return absl::PermissionDeniedError(path); }
  Status Remove(const std::string& path) override { return absl::PermissionDeniedError(path); }
  Status Rename(const std::string& from, const std::string&) override { return absl::PermissionDeniedError(from); }
  Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }
  StatusOr<uint64_t> FreeBytes(const std::string&) override { return uint64_t{0}; }
  StatusOr<std::shared_ptr<void>> Lock(const std::string& path) override { return absl::PermissionDeniedError(path); }
  std::string Description() const override { return "images in memory"; }
};

}  // namespace gannet::log
