#include "log/file/posix_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/file/posix_error.h"

namespace gannet::log::internal {
namespace {

constexpr char kLockName[] = "LOCK";

std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().lexically_normal();
}

bool IsDirectory(const std::string& path) {
  struct stat state {};
  return stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode);
}

bool Exists(const std::string& path) {
  struct stat state {};
  return stat(path.c_str(), &state) == 0;
}

const char* KindOf(mode_t mode) {
  return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

// The holder of the lock, as its file names it, and advice.
std::string HolderAndAdvice(int fd) {
  char text[32] = {};
  const ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
  const std::string pid(text, bytes > 0 ? strcspn(text, "\n") : 0);
  if (pid == absl::StrCat(getpid())) {
    return "this process; close the other database (Database::Close), or use another directory";
  }
  return absl::StrCat(pid.empty() ? "another process" : absl::StrCat("process ", pid),
                      "; end it, or use another directory");
}

// A lock of a directory. The destructor unlocks it, because the file may have copies that closing it does not end: a
// child between vfork and exec has one.
struct HeldLock {
  explicit HeldLock(Descriptor of) : fd(std::move(of)) {}
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() {
    if (fd.is_here()) flock(fd.get(), LOCK_UN);
  }
  const Descriptor fd;
};

class ReadOnlyFile final : public File {
 public:
  ReadOnlyFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Write(uint64_t, std::span<const std::byte>) override { return ReadOnly(); }
  Status Sync() override { return absl::OkStatus(); }
  Status WriteDurably(uint64_t, std::span<const std::byte>) override { return ReadOnly(); }
  StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) override {
    return ReadFully(fd_.get(), path_, offset, out);
  }
  Status Allocate(uint64_t) override { return ReadOnly(); }
  StatusOr<uint64_t> Size() override {
    struct stat state {};
    if (fstat(fd_.get(), &state) != 0) return PosixError(errno, absl::StrCat("asking for the size of ", path_));
    return static_cast<uint64_t>(state.st_size);
  }
  const std::string& path() const override { return path_; }
  void Renamed(const std::string& path) override { path_ = path; }

 private:
  Status ReadOnly() const {
    return absl::PermissionDeniedError(absl::StrCat(path_, ": is open for reading; only a new file can be written"));
  }

  std::string path_;
  const Descriptor fd_;
};

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(home_, other.home_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ < 0 || !home_.is_here()) return;
  ForgetInForkedChildren(fd_);
  close(fd_);  // the content has been synced or is not promised, so an error is ignored
}

void CheckAligned(const std::string& path, uint64_t offset, std::span<const std::byte> data) {
  GANNET_CHECK(offset % kDiskBlockBytes == 0 && data.size() % kDiskBlockBytes == 0 &&
                   reinterpret_cast<uintptr_t>(data.data()) % kDiskBlockBytes == 0,
               "%s: offset=%d bytes=%d address=%p", path, offset, data.size(), data.data());
}

size_t GoOnAfter(size_t written) {
  return written < kDiskBlockBytes ? written : written / kDiskBlockBytes * kDiskBlockBytes;
}

Status MustBeFile(int fd, const std::string& path) {
  struct stat state {};
  if (fstat(fd, &state) != 0) return PosixError(errno, absl::StrCat("looking at ", path));
  if (!S_ISREG(state.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is ", KindOf(state.st_mode), ", not a file"));
  }
  // With this flag io_uring fails an operation that would have to wait.
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return PosixError(errno, absl::StrCat("preparing ", path));
  }
  return absl::OkStatus();
}

StatusOr<size_t> ReadFully(int fd, const std::string& path, uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t bytes = pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return PosixError(errno, absl::StrCat("reading ", path, " at ", offset + done));
    if (bytes == 0) break;
    done += static_cast<size_t>(bytes);
  }
  return done;
}

Status AllocateSpace(int fd, const std::string& path, uint64_t old_bytes, uint64_t bytes) {
  GANNET_CHECK(bytes % kDiskBlockBytes == 0 && bytes >= old_bytes, "%s: bytes=%d size=%d", path, bytes, old_bytes);
  if (bytes == old_bytes) return absl::OkStatus();
  int error = EINTR;
  while (error == EINTR) {
    error = posix_fallocate(fd, static_cast<off_t>(old_bytes), static_cast<off_t>(bytes - old_bytes));
  }
  if (error == 0) return absl::OkStatus();
  Status status = PosixError(error, absl::StrCat("taking ", bytes - old_bytes, " bytes for ", path));
  if (ftruncate(fd, static_cast<off_t>(old_bytes)) == 0) return status;
  return Status(status.code(), absl::StrCat(absl::string_view(status.message()),
                                            "; and releasing the new space failed: ", std::strerror(errno)));
}

StatusOr<std::unique_ptr<File>> PosixDirectories::OpenForReading(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return PosixError(errno, absl::StrCat("opening ", path));
  GANNET_RETURN_IF_ERROR(MustBeFile(fd.get(), path));
  // This is only advice, so its result is ignored.
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::make_unique<ReadOnlyFile>(path, std::move(fd));
}

Status PosixDirectories::MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || (errno == EEXIST && IsDirectory(path))) return absl::OkStatus();
  return PosixError(errno, absl::StrCat("making directory ", path));
}

StatusOr<std::vector<std::string>> PosixDirectories::List(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error && Exists(directory) && !IsDirectory(directory)) {
    return absl::InvalidArgumentError(absl::StrCat(directory, ": is a file, not a directory"));
  }
  if (error) return PosixError(error.value(), absl::StrCat("listing ", directory));
  std::erase(names, kLockName);
  std::sort(names.begin(), names.end());
  return names;
}

Status PosixDirectories::Remove(const std::string& path) {
  if (std::remove(path.c_str()) == 0) return absl::OkStatus();
  return PosixError(errno, absl::StrCat("removing ", path));
}

Status PosixDirectories::Rename(const std::string& from, const std::string& to) {
  if (ParentOf(from) != ParentOf(to)) {
    return absl::InvalidArgumentError(absl::StrCat("renaming ", from, " to ", to, ": must stay in one directory"));
  }
  if (from != to && IsDirectory(to)) {
    return absl::AlreadyExistsError(absl::StrCat("renaming ", from, " to ", to, ": only files are replaced"));
  }
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return PosixError(errno, absl::StrCat("renaming ", from, " to ", to));
}

Status PosixDirectories::SyncDirectory(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return PosixError(errno, absl::StrCat("opening directory ", path));
  if (fsync(fd.get()) != 0) return SyncError(errno, absl::StrCat("syncing directory ", path));
  return absl::OkStatus();
}

StatusOr<uint64_t> PosixDirectories::FreeBytes(const std::string& directory) {
  struct statvfs state {};
  if (statvfs(directory.c_str(), &state) != 0) {
    return PosixError(errno, absl::StrCat("asking for the free space of ", directory));
  }
  return uint64_t{state.f_bavail} * state.f_frsize;
}

StatusOr<std::shared_ptr<void>> PosixDirectories::Lock(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kLockName);
  Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd.valid()) return PosixError(errno, absl::StrCat("opening ", path));
  GANNET_RETURN_IF_ERROR(MustBeFile(fd.get(), path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return PosixError(errno, absl::StrCat("locking ", path));
    return absl::FailedPreconditionError(absl::StrCat(directory, ": is in use by ", HolderAndAdvice(fd.get())));
  }
  // Overwrites the old text, so that no space is needed if there is one. The text is for people: a full disk is no
  // error.
  const std::string text = absl::StrCat(getpid(), "\n");
  const bool written = pwrite(fd.get(), text.data(), text.size(), 0) >= 0 || errno == ENOSPC || errno == EDQUOT;
  if (!written || ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0) {
    return PosixError(errno, absl::StrCat("writing the process id to ", path));
  }
  return std::make_shared<HeldLock>(std::move(fd));
}

}  // namespace gannet::log::internal
