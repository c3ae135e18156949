// Operations on names, for file systems on the operating system's files. PosixFileSystem and PmemFileSystem share it
// and differ only in how they write a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "log/file/file_system.h"

namespace gannet::log::internal {

class PosixDirectories : public FileSystem {
 public:
  Status MakeDirectory(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  Status Remove(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  StatusOr<uint64_t> FreeBytes(const std::string& directory) override;
  // Takes a flock on DIR/LOCK, whose text is the holder's process id. It ends with the holder's object or process, also
  // if children of the holder live on.
  StatusOr<std::shared_ptr<void>> Lock(const std::string& directory) override;

 protected:
  // Opens a file for reading through the page cache, and tells the kernel that it is read from front to back.
  static StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path);
};

// Ok if `fd`, opened with O_NONBLOCK, is a regular file, and not a directory, a FIFO, a socket or a device. (Without
// O_NONBLOCK, opening a FIFO would wait for its other end.) The descriptor is blocking afterwards.
Status MustBeFile(int fd, const std::string& path);
// Reads until `out` is full or the file ends.
StatusOr<size_t> ReadFully(int fd, const std::string& path, uint64_t offset, std::span<std::byte> out);
// Allocates the space on disk and makes the file `bytes` long. If that fails, the file stays `old_bytes` long.
Status AllocateSpace(int fd, const std::string& path, uint64_t old_bytes, uint64_t bytes);
// Number of bytes that a write need not repeat, after the kernel has written only the first `written` ones: whole
// blocks, so that the rest is aligned, too. If that is no whole block, a limit can lie within the block. Then it is all
// bytes: only a write that begins at the limit returns the reason.
size_t GoOnAfter(size_t written);
void CheckAligned(const std::string& path, uint64_t offset, std::span<const std::byte> data);

// Owns a file descriptor and closes it. A forked child closes it at its beginning.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd >= 0) CloseInForkedChildren(fd);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)), home_(other.home_) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // False in a forked child, where it is closed, and another file may have its number.
  bool is_here() const { return home_.is_here(); }

 private:
  int fd_ = -1;
  HomeProcess home_;
};

}  // namespace gannet::log::internal
