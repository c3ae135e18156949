// Files in which every sector shows when it was written, for tests of FaultyFileSystem.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/file_system.h"

namespace gannet::log {

inline constexpr size_t kSector = 512;
inline constexpr uint64_t kSeeds = 200;

// A buffer in which every sector consists of `tag`.
inline AlignedBuffer Tagged(size_t blocks, unsigned char tag) {
  AlignedBuffer buffer(blocks * kDiskBlockBytes);
  std::fill(buffer.span().begin(), buffer.span().end(), static_cast<std::byte>(tag));
  return buffer;
}

inline std::unique_ptr<File> Create(FileSystem& files, const std::string& path) {
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kCreate);
  EXPECT_TRUE(file.ok()) << file.status();
  return std::move(*file);
}

// The tag of every sector; 'X' for a sector with mixed content.
inline std::string Sectors(File& file) {
  std::vector<std::byte> all(*file.Size());
  const StatusOr<size_t> bytes = file.Read(0, all);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::string tags;
  for (size_t at = 0; at < all.size(); at += kSector) {
    const bool whole =
        std::all_of(all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(at + kSector),
                    [&](std::byte each) { return each == all[at]; });
    tags += !whole ? 'X' : all[at] == std::byte{0} ? '0' : static_cast<char>(all[at]);
  }
  return tags;
}

inline std::string Sectors(FileSystem& files, const std::string& path) {
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kRead);
  if (!file.ok()) return std::string(absl::StatusCodeToString(file.status().code()));
  return Sectors(**file);
}

}  // namespace gannet::log
