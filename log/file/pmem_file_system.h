// Files of persistent memory, through libpmem: a file that is written is mapped, a write is a copy, and a sync is
//
//   on DAX (the mapping is persistent memory)   the cache lines were written back by the copy, one fence; no system
//   call elsewhere                                   msync of what was written since the last sync
//
// Which it is, libpmem finds out per file; Description() tells. PMEM_IS_PMEM_FORCE=1 in the environment claims the
// first for any file, to measure on ordinary memory: no power cut survives that.
//
// A file that is written beyond its end is mapped anew each time; Allocate first. When the memory itself fails under a
// mapping, the kernel ends the process (SIGBUS): what was acknowledged was persistent, and the next run reads it.
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

  // What the files that were written turned out to be; they may live longer than this.
  const std::shared_ptr<std::atomic<unsigned>> found_ = std::make_shared<std::atomic<unsigned>>(kNothingYet);
};

}  // namespace gannet::log
