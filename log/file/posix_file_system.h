// The operating system's files. A file that is written has its own io_uring and is open with O_DIRECT: writes bypass
// the page cache, the pieces of a large write go in parallel, and fdatasync makes them durable. Reads go through the
// page cache, which reads ahead.
//
// WriteDurably uses pwrite, because commits wait for it. The kernel ends a direct write of io_uring in one of its own
// threads ("dio"). That thread is of the ordinary class: on a busy machine it waits for a core, while the thread that
// waits for it, of whatever class, sleeps. With 20 busy threads on 2 cores (Linux 6.18) 4 KiB took up to 1.9 s; by
// pwrite, which ends in the thread that called it, up to 0.08 s. The pieces of a large pwrite go in parallel, too.
//
// If the kernel or a container forbids io_uring, pwrite replaces it. If a file system refuses O_DIRECT (old tmpfs, some
// network file systems), writes go through the page cache. Description() says so. The contract holds in every case.
#pragma once

#include <memory>
#include <string>

#include "log/file/file_system.h"
#include "log/file/posix_directory.h"

namespace gannet::log {

struct PosixOptions {
  bool io_uring = true;    // false: pwrite
  bool direct = true;      // false: through the page cache
  bool zero_ahead = true;  // allocated space is filled with zeros (zero_ahead.h); only with O_DIRECT
};

class PosixFileSystem final : public internal::PosixDirectories {
 public:
  explicit PosixFileSystem(PosixOptions options = {});
  ~PosixFileSystem() override;

  StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  std::string Description() const override;

 private:
  friend class PosixFile;
  struct Fallbacks;  // the mechanisms that could not be used, and why

  const PosixOptions options_;
  const std::shared_ptr<Fallbacks> fallbacks_;  // shared with files, which may outlive this
};

}  // namespace gannet::log
