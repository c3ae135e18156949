// Fills allocated space with zeros, in a thread of its own, ahead of the writes.
//
// Space that was only allocated is marked as never written; a durable write into it makes the file system take that
// mark away in its journal, and wait for the journal's thread. On a machine whose processors are all busy that is what
// a durable write then costs: milliseconds instead of a tenth of one (bench/log_disk_bench). A write over zeros changes
// no metadata. The price is that every byte of the space is written twice.
//
// That it fails harms nobody: the space is allocated, reads as zeros, and a write that follows finds its own errors.
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
  // Stops; waits for one piece at most, or for a sync.
  ~ZeroAhead();

  // Before somebody else writes [begin, end): from now on nothing of it, or before it, is filled. Waits for the piece
  // that is just being written if that overlaps.
  void Leave(uint64_t begin, uint64_t end);
  // Everything is filled and synced, or it failed.
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
  uint64_t writing_begin_ = 0;  // just being written; empty: nothing is
  uint64_t writing_end_ = 0;
  bool stop_ = false;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gannet::log::internal
