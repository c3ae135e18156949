// The disk as log/ sees it: a few files in one directory, written at aligned offsets, and the moments at which their
// content is promised to survive.
//
//   PosixFileSystem (posix_file_system.h)     io_uring with O_DIRECT; says what it fell back to where it cannot
//   PmemFileSystem (pmem_file_system.h)       libpmem: mapped files, persistent by cache-line flushes on DAX
//   FaultyFileSystem (faulty_file_system.h)   in memory, breaks in every way that a disk does; for tests and simulation
//
// What survives a crash: the content of a file as of its last successful Sync (or WriteDurably), and the names of a
// directory as of its last successful SyncDirectory. Of what came later, any subset of the sectors may have survived.
//
// Errors. ResourceExhausted: the disk is full (the file is as long as before). DataLoss: the device failed (EIO): after
// a failed Sync nobody knows what of the unsynced content is on disk, and a second Sync that succeeds proves nothing;
// give the file up and write the data to another. InvalidArgument: the path leads to something of another kind (a
// directory where a file should be, a FIFO, ...). NotFound, AlreadyExists, PermissionDenied as usual. Messages name the
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace gannet::log {

// Offsets, lengths and addresses of writes are multiples of this, on every file system.
inline constexpr size_t kDiskBlockBytes = 4096;

// One thread at a time.
class File {
 public:
  virtual ~File() = default;

  // offset, data.size() and data.data() are multiples of kDiskBlockBytes. Beyond the end it makes the file longer.
  // After an error any part of the data may be there.
  virtual Status Write(uint64_t offset, std::span<const std::byte> data) = 0;
  // Everything written so far.
  virtual Status Sync() = 0;
  // Write, then Sync, as one submission where the file system can.
  virtual Status WriteDurably(uint64_t offset, std::span<const std::byte> data) = 0;
  // Fills `out` from `offset`, unaligned; returns how much there was (less only at the end of the file).
  virtual StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out) = 0;
  // Makes the file `bytes` long, zeros where nothing was written, with the space on disk taken, so that later writes
  // within it do not run out of space. `bytes` is a multiple of kDiskBlockBytes and not less than Size().
  virtual Status Allocate(uint64_t bytes) = 0;
  // Waits until writes into what was allocated cost no more than later ones will. May do nothing.
  virtual void FinishAllocation() {}
  virtual StatusOr<uint64_t> Size() = 0;
  // As it was opened, or as Renamed said.
  virtual const std::string& path() const = 0;
  // The file has been renamed: messages call it by this path from now on.
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
  // Names (no paths) of the files and directories in it, sorted, without the lock's file.
  virtual StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // A file, or an empty directory.
  virtual Status Remove(const std::string& path) = 0;
  // Within one directory. Replaces the file `to` if it exists; atomic.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  virtual StatusOr<uint64_t> FreeBytes(const std::string& directory) = 0;
  // Holds the directory for this process until the lock is destroyed. FailedPrecondition, naming the holder's process,
  // if another has it.
  virtual StatusOr<std::shared_ptr<void>> Lock(const std::string& directory) = 0;

  // The one CPU on which the disk of this directory reports what it has done; nothing if there is none, or nobody
  // knows. See completion_cpu.h.
  virtual std::optional<int> CompletionCpu(const std::string& /*directory*/) { return std::nullopt; }
  // What is used: "io_uring, O_DIRECT", or what had to be left out and why. For reports.
  virtual std::string Description() const = 0;
};

// Conveniences over the above, for small files that are replaced as a whole (manifest): written to `path`.tmp, synced,
// renamed, directory synced. The content gets a trailing checksum line of its own format (see whole_file.cc).
Status ReplaceWholeFile(FileSystem& files, const std::string& path, std::span<const std::byte> content);
// DataLoss, naming the file, if the checksum does not match.
StatusOr<std::string> ReadWholeFile(FileSystem& files, const std::string& path);

}  // namespace gannet::log
