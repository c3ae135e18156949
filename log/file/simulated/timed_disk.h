// TimedDisk: another file system, whose writes take the time of a disk. For simulations, where the time is virtual.
//
// A write takes its share of the disk's bandwidth; what makes it durable takes the disk's latency in addition. One
// operation at a time: the log of a node has one thread that writes. Reading and everything else takes no time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/file/file_system.h"

namespace gannet::log {

struct DiskProfile {
  std::string_view name;
  uint64_t durable_nanos = 0;  // from a write until it is durable, without the bytes' time
  uint64_t bytes_per_second = 0;
  std::string_view source;
};
std::span<const DiskProfile> DiskProfiles();
// Null if there is no such profile.
const DiskProfile* FindDiskProfile(std::string_view name);

// Thread-safe, as `files` is.
class TimedDisk final : public FileSystem {
 public:
  TimedDisk(std::unique_ptr<FileSystem> files, const DiskProfile& profile)
      : files_(std::move(files)), profile_(profile) {}

  StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Status MakeDirectory(const std::string& path) override { return files_->MakeDirectory(path); }
  StatusOr<std::vector<std::string>> List(const std::string& directory) override { return files_->List(directory); }
  Status Remove(const std::string& path) override { return files_->Remove(path); }
  Status Rename(const std::string& from, const std::string& to) override { return files_->Rename(from, to); }
  Status SyncDirectory(const std::string& path) override;
  StatusOr<uint64_t> FreeBytes(const std::string& directory) override { return files_->FreeBytes(directory); }
  StatusOr<std::shared_ptr<void>> Lock(const std::string& directory) override { return files_->Lock(directory); }
  std::string Description() const override;

 private:
  const std::unique_ptr<FileSystem> files_;
  const DiskProfile profile_;
};

}  // namespace gannet::log
