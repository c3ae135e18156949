// The disk as log/ uses it: a few files in one directory, written at aligned offsets, and the operations that make
// their content durable.
//
//   PosixFileSystem (posix_file_system.h)     io_uring with O_DIRECT; Description() names fallbacks
//   PmemFileSystem (pmem_file_system.h)       libpmem: mapped files, persistent by cache-line flushes on DAX
//   FaultyFileSystem (faulty_file_system.h)   in memory, fails in every way that a disk does; for tests and simulation
//
// What survives a crash: the content of a file as of its last successful Sync (or WriteDurably), and the names of a
// directory as of its last successful SyncDirectory. Of later writes, any subset of the sectors may have survived.
//
// Errors. ResourceExhausted: the disk is full, or a quota or a limit of the process does not let the file grow (it is
// as long as before). DataLoss: the device failed (EIO). After a failed Sync it is unknown which unsynced content is on
// disk, and a second Sync that succeeds proves nothing; give the file up and write the data to another.
// InvalidArgument: the path names another kind of object (a directory instead of a file, a FIFO, ...). NotFound,
// AlreadyExists, PermissionDenied as usual. Messages name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace gannet::log {

// On every file system, offsets, lengths and addresses of writes are multiples of this.
inline constexpr size_t kDiskBlockBytes = 4096;

// One thread at a time.
class File {
 public:
  virtual ~File() = default;

  // offset, data.size() and data.data() are multiples of kDiskBlockBytes. A write beyond the end makes the file longer.
  // After an error any part of the data may be written.
  virtual Status Write(uint64_t offset, std::span<const std::byte> data) = 0;
  // Makes everything written so far durable.
  virtual Status Sync() = 0;
  // Does what Write and then Sync do.
  virtual Status WriteDurably(uint64_t offset, std::span<const std::byte> data) = 0;
  // Fills `out` from `offset`, which need not be aligned. Returns the number of bytes read (fewer only at the end of
  // the file).
  virtual StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) = 0;
  // Tells that these bytes are read soon, so that the disk works while the caller does. May do nothing.
  virtual void WillRead(uint64_t /*offset*/, uint64_t /*bytes*/) {}
  // Makes the file `bytes` long, with zeros where nothing was written, and allocates its space on disk, so that later
  // writes within it do not run out of space. `bytes` is a multiple of kDiskBlockBytes and at least Size().
  virtual Status Allocate(uint64_t bytes) = 0;
  // Waits until writes into the allocated space have reached their final cost. May do nothing.
  virtual void FinishAllocation() {}
  virtual StatusOr<uint64_t> Size() = 0;
  // The path with which it was opened, or that of the last Renamed.
  virtual const std::string& path() const = 0;
  // Tells that the file has been renamed: messages use this path from now on.
  virtual void Renamed(const std::string& path) = 0;
};

enum class OpenMode : uint8_t {
  kRead,    // must exist
  kCreate,  // must not exist; read and write
  kReuse,   // must exist, and keeps its content and length; read and write
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  // Ok if it exists already. Parents must exist.
  virtual Status MakeDirectory(const std::string& path) = 0;
  // Names (not paths) of its files and directories, sorted, without the lock's file.
  virtual StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // Removes a file or an empty directory.
  virtual Status Remove(const std::string& path) = 0;
  // Renames within one directory. Replaces the file `to` if it exists; atomic.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  virtual StatusOr<uint64_t> FreeBytes(const std::string& directory) = 0;
  // Locks the directory for this process until the lock is destroyed. FailedPrecondition, naming the holder's process:
  // another process has it.
  virtual StatusOr<std::shared_ptr<void>> Lock(const std::string& directory) = 0;

  // The mechanisms in use: "io_uring, O_DIRECT", or what could not be used and why. For reports.
  virtual std::string Description() const = 0;
};

}  // namespace gannet::log
