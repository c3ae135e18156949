// The operating system's files. A file that is written has an io_uring of its own and is open with O_DIRECT: writes go
// past the page cache, the parts of a large one in parallel, and fdatasync makes them durable. Reads go through the
// page cache, which reads ahead.
//
// Where the kernel or a container forbids io_uring, pwrite takes its place; where a file system refuses
// O_DIRECT (old tmpfs, some network file systems), writes go through the page cache. Description() says so. What the
// contract promises holds in every case.
#pragma once

#include <memory>
#include <optional>
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
  std::optional<int> CompletionCpu(const std::string& directory) override;
  std::string Description() const override;

 private:
  friend class PosixFile;
  struct Fallbacks;  // what had to be left out, and why

  const PosixOptions options_;
  const std::shared_ptr<Fallbacks> fallbacks_;  // files know it, too, and may live longer
};

}  // namespace gannet::log
