#include "log/file/simulated/timed_disk.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/thread.h"

namespace gannet::log {
namespace {

constexpr std::array<DiskProfile, 2> kProfiles = {{
    {.name = "nvme",
     .durable_nanos = 20'000,
     .bytes_per_second = 1'900'000'000,
     .source = "an estimate, after the data sheet of Intel's SSD DC P3700: writes in sequence take 20 us, 1.9 GB/s"},
    {.name = "sata-ssd",
     .durable_nanos = 65'000,
     .bytes_per_second = 460'000'000,
     .source = "an estimate, after the data sheet of Intel's SSD DC S3700: writes in sequence take 65 us, 460 MB/s"},
}};

class TimedFile final : public File {
 public:
  TimedFile(std::unique_ptr<File> file, const DiskProfile* profile) : file_(std::move(file)), profile_(*profile) {}

  Status Write(uint64_t offset, std::span<const std::byte> data) override {
    SleepForNanos(NanosOf(data.size()));
    return file_->Write(offset, data);
  }
  Status Sync() override {
    SleepForNanos(profile_.durable_nanos);
    return file_->Sync();
  }
  Status WriteDurably(uint64_t offset, std::span<const std::byte> data) override {
    SleepForNanos(NanosOf(data.size()) + profile_.durable_nanos);
    return file_->WriteDurably(offset, data);
  }
  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override { return file_->Read(offset, out); }
  Status Allocate(uint64_t bytes) override { return file_->Allocate(bytes); }
  void FinishAllocation() override { file_->FinishAllocation(); }
  StatusOr<uint64_t> Size() override { return file_->Size(); }
  const std::string& path() const override { return file_->path(); }
  void Renamed(const std::string& path) override { file_->Renamed(path); }

 private:
  uint64_t NanosOf(size_t bytes) const {
    return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(profile_.bytes_per_second));
  }

  const std::unique_ptr<File> file_;
  const DiskProfile profile_;
};

}  // namespace

std::span<const DiskProfile> DiskProfiles() {
  return kProfiles;
}

const DiskProfile* FindDiskProfile(std::string_view name) {
  const auto at = std::ranges::find(kProfiles, name, &DiskProfile::name);
  return at == kProfiles.end() ? nullptr : &*at;
}

StatusOr<std::unique_ptr<File>> TimedDisk::Open(const std::string& path, OpenMode mode) {
  StatusOr<std::unique_ptr<File>> file = files_->Open(path, mode);
  if (!file.ok()) return file;
  return std::make_unique<TimedFile>(*std::move(file), &profile_);
}

Status TimedDisk::SyncDirectory(const std::string& path) {
  SleepForNanos(profile_.durable_nanos);
  return files_->SyncDirectory(path);
}

std::string TimedDisk::Description() const {
  return absl::StrCat(files_->Description(), ", with the times of ",
                      absl::string_view(profile_.name.data(), profile_.name.size()));
}

}  // namespace gannet::log
