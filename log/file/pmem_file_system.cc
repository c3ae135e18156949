#include "log/file/pmem_file_system.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/file/posix_error.h"

namespace gannet::log {

using internal::Descriptor;
using internal::PosixError;
using internal::SyncError;

class PmemFile final : public File {
 public:
  PmemFile(std::string path, Descriptor fd, std::shared_ptr<std::atomic<unsigned>> found)
      : path_(std::move(path)), fd_(std::move(fd)), found_(std::move(found)) {}
  ~PmemFile() override { Unmap(); }

  Status Write(uint64_t offset, std::span<const std::byte> data) override {
    internal::CheckAligned(path_, offset, data);
    if (data.empty()) return absl::OkStatus();
    const uint64_t end = offset + data.size();
    if (end > mapped_bytes_) GANNET_RETURN_IF_ERROR(Allocate(end));
    if (persistent_) {
      pmem_memcpy_nodrain(memory_ + offset, data.data(), data.size());
    } else {
      std::memcpy(memory_ + offset, data.data(), data.size());
    }
    unsynced_begin_ = std::min(unsynced_begin_, offset);
    unsynced_end_ = std::max(unsynced_end_, end);
    return absl::OkStatus();
  }

  Status Sync() override {
    if (size_unsynced_ && fsync(fd_.get()) != 0) return SyncError(errno, absl::StrCat("syncing ", path_));
    size_unsynced_ = false;
    if (persistent_) {
      pmem_drain();
    } else if (unsynced_begin_ < unsynced_end_ &&
               pmem_msync(memory_ + unsynced_begin_, unsynced_end_ - unsynced_begin_) != 0) {
      return SyncError(errno, absl::StrCat("syncing the mapping of ", path_));
    }
    unsynced_begin_ = kNone;
    unsynced_end_ = 0;
    return absl::OkStatus();
  }

  Status WriteDurably(uint64_t offset, std::span<const std::byte> data) override {
    GANNET_RETURN_IF_ERROR(Write(offset, data));
    return Sync();
  }

  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override {
    if (offset >= mapped_bytes_) return 0;
    const size_t bytes = std::min<uint64_t>(out.size(), mapped_bytes_ - offset);
    if (bytes > 0) std::memcpy(out.data(), memory_ + offset, bytes);
    return bytes;
  }

  Status Allocate(uint64_t bytes) override {
    GANNET_RETURN_IF_ERROR(internal::AllocateSpace(fd_.get(), path_, mapped_bytes_, bytes));
    if (bytes == mapped_bytes_) return absl::OkStatus();
    // Data that was copied into the old mapping survives the unmapping, but must be synced through the old mapping.
    GANNET_RETURN_IF_ERROR(Sync());
    size_unsynced_ = true;
    return Map();
  }

  Status MapWhatIsThere() {
    struct stat status {};
    if (fstat(fd_.get(), &status) != 0) return PosixError(errno, absl::StrCat("looking at ", path_));
    return status.st_size == 0 ? absl::OkStatus() : Map();
  }

  StatusOr<uint64_t> Size() override { return mapped_bytes_; }
  const std::string& path() const override { return path_; }
  void Renamed(const std::string& path) override { path_ = path; }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};

  Status Map() {
    Unmap();
    size_t bytes = 0;
    int persistent = 0;
    void* const memory = pmem_map_file(path_.c_str(), 0, 0, 0, &bytes, &persistent);
    if (memory == nullptr) return PosixError(errno, absl::StrCat("mapping ", path_));
    memory_ = static_cast<std::byte*>(memory);
    mapped_bytes_ = bytes;
    persistent_ = persistent != 0;
    found_->fetch_or(persistent_ ? PmemFileSystem::kPersistentMemory : PmemFileSystem::kOrdinaryFile,
                     std::memory_order_relaxed);
    return absl::OkStatus();
  }

  void Unmap() {
    // munmap of an existing mapping does not fail. If it did, the memory would stay mapped, which is harmless.
    if (memory_ != nullptr) pmem_unmap(memory_, mapped_bytes_);
    memory_ = nullptr;
    mapped_bytes_ = 0;
  }

  std::string path_;
  const Descriptor fd_;
  const std::shared_ptr<std::atomic<unsigned>> found_;
  std::byte* memory_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  bool persistent_ = false;
  bool size_unsynced_ = false;
  uint64_t unsynced_begin_ = kNone;  // range written since the last sync
  uint64_t unsynced_end_ = 0;
};

StatusOr<std::unique_ptr<File>> PmemFileSystem::Open(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::kRead) return OpenForReading(path);
  const int create = mode == OpenMode::kCreate ? O_CREAT | O_EXCL : 0;
  Descriptor fd(open(path.c_str(), O_RDWR | create | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd.valid()) return PosixError(errno, absl::StrCat(create != 0 ? "creating " : "opening ", path));
  GANNET_RETURN_IF_ERROR(internal::MustBeFile(fd.get(), path));
  auto file = std::make_unique<PmemFile>(path, std::move(fd), found_);
  if (mode == OpenMode::kReuse) GANNET_RETURN_IF_ERROR(file->MapWhatIsThere());
  return file;
}

std::string PmemFileSystem::Description() const {
  switch (found_->load(std::memory_order_relaxed)) {
    case kNothingYet:
      return "libpmem";
    case kPersistentMemory:
      return "libpmem, persistent memory (cache-line flushes)";
    case kOrdinaryFile:
      return "libpmem, ordinary files (msync: the directory is not on DAX)";
    default:
      return "libpmem, persistent memory and ordinary files";
  }
}

}  // namespace gannet::log
