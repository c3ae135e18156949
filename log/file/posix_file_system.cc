#include "log/file/posix_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/file/disk_ring.h"
#include "log/file/posix_error.h"
#include "log/file/zero_ahead.h"

namespace gannet::log {

using internal::Descriptor;
using internal::DiskRing;
using internal::PosixError;
using internal::SyncError;

struct PosixFileSystem::Fallbacks {
  std::mutex mutex;
  std::string ring;    // why io_uring is not used; empty: it is used
  std::string direct;  // why O_DIRECT is not used; empty: it is used

  void Note(std::string* place, std::string why) {
    const std::lock_guard lock(mutex);
    if (place->empty()) *place = std::move(why);
  }
  void NoteRing(int error) { Note(&ring, absl::StrCat("the kernel refuses io_uring: ", std::strerror(error))); }
  void NoteDirect(const std::string& path) { Note(&direct, absl::StrCat("O_DIRECT is refused for ", path)); }
};

class PosixFile final : public File {
 public:
  using Fallbacks = PosixFileSystem::Fallbacks;

  PosixFile(std::string path, uint64_t size, Descriptor cached, Descriptor direct, std::unique_ptr<DiskRing> ring,
            std::shared_ptr<Fallbacks> fallbacks, bool zero_ahead)
      : path_(std::move(path)),
        size_(size),
        cached_(std::move(cached)),
        direct_(std::move(direct)),
        ring_(std::move(ring)),
        fallbacks_(std::move(fallbacks)),
        zero_ahead_(zero_ahead) {}

  Status Write(uint64_t offset, std::span<const std::byte> data) override { return WriteAndSync(offset, data, false); }
  Status WriteDurably(uint64_t offset, std::span<const std::byte> data) override {
    return WriteAndSync(offset, data, true);
  }

  Status Sync() override {
    if (fdatasync(cached_.get()) != 0) return SyncError(errno, absl::StrCat("syncing ", path_));
    return absl::OkStatus();
  }

  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override {
    return internal::ReadFully(cached_.get(), path_, offset, out);
  }
  void WillRead(uint64_t offset, uint64_t bytes) override {
    (void)posix_fadvise(cached_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }

  Status Allocate(uint64_t bytes) override {
    GANNET_RETURN_IF_ERROR(internal::AllocateSpace(cached_.get(), path_, size_, bytes));
    if (bytes > size_ && zero_ahead_ && direct_.valid()) FillWithZeros(size_, bytes);
    size_ = bytes;
    return absl::OkStatus();
  }

  void FinishAllocation() override {
    if (zeros_ != nullptr) zeros_->Wait();
    zeros_.reset();
  }

  StatusOr<uint64_t> Size() override { return size_; }
  const std::string& path() const override { return path_; }
  void Renamed(const std::string& path) override { path_ = path; }

 private:
  struct Outcome {
    int error = 0;             // errno, 0 if all is well
    bool sync_failed = false;  // the error is from the sync
  };

  void FillWithZeros(uint64_t begin, uint64_t end);
  Status WriteAndSync(uint64_t offset, std::span<const std::byte> data, bool sync);
  Outcome TryWrite(uint64_t offset, std::span<const std::byte> data, bool sync);
  static int WritePlainly(int fd, uint64_t offset, std::span<const std::byte> data);

  std::string path_;
  uint64_t size_;
  Descriptor cached_;  // for everything but direct writes
  Descriptor direct_;  // invalid: writes go through the page cache
  std::unique_ptr<DiskRing> ring_;
  const std::shared_ptr<Fallbacks> fallbacks_;
  const bool zero_ahead_;
  std::unique_ptr<internal::ZeroAhead> zeros_;  // fills the space that was allocated last, or null
};

void PosixFile::FillWithZeros(uint64_t begin, uint64_t end) {
  if (zeros_ != nullptr) begin = std::min(begin, zeros_->next());
  zeros_.reset();
  // A separate open, because an error of a failed sync is reported only once per open file. Through /proc, because the
  // file may have been renamed. Without the descriptor writes are slower, but correct.
  Descriptor fd(open(absl::StrCat("/proc/self/fd/", direct_.get()).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  if (fd.valid()) zeros_ = std::make_unique<internal::ZeroAhead>(std::move(fd), begin, end);
}

Status PosixFile::WriteAndSync(uint64_t offset, std::span<const std::byte> data, bool sync) {
  internal::CheckAligned(path_, offset, data);
  if (zeros_ != nullptr) {
    zeros_->Leave(offset, offset + data.size());
    if (zeros_->done()) zeros_.reset();
  }
  Outcome outcome = TryWrite(offset, data, sync);
  if (outcome.error == EINVAL && !outcome.sync_failed && direct_.valid()) {
    // Either the file system accepted the flag but does not support it, or the kernel cut the write off at a limit
    // within a block. The page cache takes any length: there the first succeeds, and the second returns the limit.
    Descriptor direct = std::exchange(direct_, Descriptor());
    outcome = TryWrite(offset, data, sync);
    if (outcome.error == 0 || outcome.sync_failed) {
      fallbacks_->NoteDirect(path_);
    } else {
      direct_ = std::move(direct);
    }
  }
  if (outcome.error == 0) {
    size_ = std::max<uint64_t>(size_, offset + data.size());
    return absl::OkStatus();
  }
  const std::string what = absl::StrCat("writing ", data.size(), " bytes to ", path_, " at ", offset);
  if (outcome.sync_failed) return SyncError(outcome.error, what);
  Status status = PosixError(outcome.error, what);
  if (offset + data.size() > size_ && ftruncate(cached_.get(), static_cast<off_t>(size_)) != 0) {
    return Status(status.code(),
                  absl::StrCat(status.message(), "; and cutting off the written part failed: ", std::strerror(errno)));
  }
  return status;
}

PosixFile::Outcome PosixFile::TryWrite(uint64_t offset, std::span<const std::byte> data, bool sync) {
  const int fd = direct_.valid() ? direct_.get() : cached_.get();
  const bool by_ring = ring_ != nullptr && !sync;  // posix_file_system.h
  int error = by_ring ? ring_->Write(fd, offset, data) : WritePlainly(fd, offset, data);
  if (by_ring && !ring_->works()) {
    fallbacks_->NoteRing(error);
    ring_.reset();
    error = WritePlainly(fd, offset, data);
  }
  if (error != 0) return {.error = error};
  if (sync && fdatasync(fd) != 0) return {.error = errno, .sync_failed = true};
  return {};
}

int PosixFile::WritePlainly(int fd, uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t bytes = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    if (bytes == 0) return EIO;
    const size_t written = internal::GoOnAfter(static_cast<size_t>(bytes));
    offset += written;
    data = data.subspan(written);
  }
  return 0;
}

PosixFileSystem::PosixFileSystem(PosixOptions options) : options_(options), fallbacks_(std::make_shared<Fallbacks>()) {
  if (!options_.direct) fallbacks_->direct = "by choice";
  if (!options_.io_uring) {
    fallbacks_->ring = "by choice";
    return;
  }
  int error = 0;
  if (DiskRing::Create(&error) == nullptr) fallbacks_->NoteRing(error);
}

PosixFileSystem::~PosixFileSystem() = default;

StatusOr<std::unique_ptr<File>> PosixFileSystem::Open(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::kRead) return OpenForReading(path);
  // The file is created without O_DIRECT: where the flag is refused, open would fail and leave the file behind.
  const int create = mode == OpenMode::kCreate ? O_CREAT | O_EXCL : 0;
  Descriptor cached(open(path.c_str(), O_RDWR | create | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!cached.valid()) return PosixError(errno, absl::StrCat(create != 0 ? "creating " : "opening ", path));
  GANNET_RETURN_IF_ERROR(internal::MustBeFile(cached.get(), path));
  struct stat status {};
  if (fstat(cached.get(), &status) != 0) return PosixError(errno, absl::StrCat("looking at ", path));
  Descriptor direct;
  if (options_.direct) {
    direct = Descriptor(open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
    if (!direct.valid()) fallbacks_->NoteDirect(path);
  }
  std::unique_ptr<DiskRing> ring;
  if (options_.io_uring) {
    int error = 0;
    ring = DiskRing::Create(&error);
    if (ring == nullptr) fallbacks_->NoteRing(error);
  }
  return std::make_unique<PosixFile>(path, static_cast<uint64_t>(status.st_size), std::move(cached), std::move(direct),
                                     std::move(ring), fallbacks_, options_.zero_ahead);
}

std::string PosixFileSystem::Description() const {
  const std::lock_guard lock(fallbacks_->mutex);
  const std::string ring = fallbacks_->ring.empty() ? "io_uring" : absl::StrCat("pwrite (", fallbacks_->ring, ")");
  const std::string direct =
      fallbacks_->direct.empty() ? "O_DIRECT" : absl::StrCat("page cache (", fallbacks_->direct, ")");
  return absl::StrCat(ring, ", ", direct);
}

}  // namespace gannet::log
