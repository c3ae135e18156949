// Fills allocated space with zeros ahead of the writes, in a thread of its own.
//
// Space that was only allocated is marked as never written. A durable write into it makes the file system remove that
// mark in its journal and wait for the journal's thread. If all processors are busy, such a write takes milliseconds
// instead of a tenth of one (bench/log_disk_bench). A write over zeros changes no metadata. The price is that every
// byte of the space is written twice.
//
// A failure does no harm: the space is allocated and reads as zeros, and later writes report their own errors.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "log/file/posix_directory.h"

namespace gannet::log::internal {

class ZeroAhead {
 public:
  static constexpr size_t kPieceBytes = size_t{256} << 10;

  // Fills [begin, end), multiples of kDiskBlockBytes, through `fd`, which is open with O_DIRECT.
  ZeroAhead(Descriptor fd, uint64_t begin, uint64_t end);
  // Stops the thread. Waits at most for one piece or one sync.
  ~ZeroAhead();

  // Called before a write to [begin, end): from now on neither this range nor the space before it is filled. If the
  // piece that is being written overlaps, waits for it.
  void Leave(uint64_t begin, uint64_t end);
  // Offset from which on nothing was begun: after this object is destroyed, another one may continue there.
  uint64_t next() const;
  // True once everything is filled and synced, or filling has failed.
  bool done() const;
  void Wait();

 private:
  void Run();
  bool WriteZeros(uint64_t begin, uint64_t end);

  const Descriptor fd_;
  const uint64_t end_;
  mutable std::mutex mutex_;
  std::condition_variable piece_written_;
  uint64_t next_;               // not begun
  uint64_t writing_begin_ = 0;  // piece being written; empty: none
  uint64_t writing_end_ = 0;
  bool stop_ = false;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gannet::log::internal
