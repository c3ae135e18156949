// Files of persistent memory, through libpmem: a file that is written is mapped, a write is a copy, and a sync is
//
//   on DAX (the mapping is persistent memory): one fence, as the copy wrote the cache lines back; no system call
//   elsewhere: msync of what was written since the last sync
//
// libpmem finds out which of the two applies to a file; Description() tells. PMEM_IS_PMEM_FORCE=1 in the environment
// claims DAX for any file, for measurements on ordinary memory: data then does not survive a power cut.
//
// A write beyond the end of a file maps it again each time, so call Allocate first. If the memory itself fails under a
// mapping, the kernel ends the process (SIGBUS). Acknowledged data was persistent, and the next run reads it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "log/file/file_system.h"
#include "log/file/posix_directory.h"

namespace gannet::log {

class PmemFileSystem final : public internal::PosixDirectories {
 public:
  StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  std::string Description() const override;

 private:
  friend class PmemFile;
  enum Found : unsigned { kNothingYet = 0, kPersistentMemory = 1, kOrdinaryFile = 2 };

  // The kinds of memory found for written files, which may outlive this.
  const std::shared_ptr<std::atomic<unsigned>> found_ = std::make_shared<std::atomic<unsigned>>(kNothingYet);
};

}  // namespace gannet::log
