// The files of a disk in memory as values, so that a test can remove some, copy them to another disk, and check that
// nothing has changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/simulated/faulty_file_system.h"

namespace gannet::txn {

// The files by path, parents before children; nullopt: a directory.
using DiskImage = std::map<std::string, std::optional<std::string>>;

// Everything at and below `directory`; empty if it is not there.
inline DiskImage ImageOf(log::FileSystem& files, const std::string& directory = "/data") {
  DiskImage image;
  const auto names = files.List(directory);
  if (!names.ok()) return image;
  image[directory] = std::nullopt;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(directory, "/", name);
    auto file = files.Open(path, log::OpenMode::kRead);
    if (!file.ok()) {
      image.merge(ImageOf(files, path));
      continue;
    }
    std::string content(*(*file)->Size(), '\0');
    EXPECT_EQ(*(*file)->Read(0, std::as_writable_bytes(std::span(content))), content.size());
    image[path] = std::move(content);
  }
  return image;
}

// A disk that holds exactly this image, durably.
inline std::shared_ptr<log::FaultyFileSystem> DiskOf(const DiskImage& image, uint64_t seed = 1) {
  auto disk = std::make_shared<log::FaultyFileSystem>(seed);
  for (const auto& [path, content] : image) {
    if (!content.has_value()) {
      EXPECT_TRUE(disk->MakeDirectory(path).ok()) << path;
      continue;
    }
    auto file = disk->Open(path, log::OpenMode::kCreate);
    EXPECT_TRUE(file.ok()) << file.status();
    log::AlignedBuffer buffer(content->size());
    std::copy_n(reinterpret_cast<const std::byte*>(content->data()), content->size(), buffer.data());
    EXPECT_TRUE((*file)->WriteDurably(0, buffer.span()).ok()) << path;
  }
  for (const auto& [path, content] : image) {
    EXPECT_TRUE(content.has_value() || disk->SyncDirectory(path).ok()) << path;
  }
  EXPECT_TRUE(disk->SyncDirectory("/").ok());
  return disk;
}

// The image without `path` and everything below it.
inline DiskImage Without(DiskImage image, const std::string& path) {
  std::erase_if(image, [&](const auto& entry) { return entry.first == path || entry.first.starts_with(path + "/"); });
  return image;
}

// The image with everything at and below `path` replaced by that of `other`.
inline DiskImage WithPartOf(DiskImage image, const std::string& path, const DiskImage& other,
                            const std::string& path_there) {
  image = Without(std::move(image), path);
  for (const auto& [there, content] : other) {
    if (there == path_there || there.starts_with(path_there + "/")) {
      image[path + there.substr(path_there.size())] = content;
    }
  }
  return image;
}

}  // namespace gannet::txn
