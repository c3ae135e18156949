// LogOptions: how a node's log is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "base/status.h"
#include "log/format/identity.h"

namespace gannet::log {

struct LogOptions {
  // The time from one flush to the next if no thread is blocked; otherwise the longest wait for more threads
  // (group_commit.h).
  absl::Duration group_commit = absl::Microseconds(300);
  uint64_t segment_bytes = uint64_t{64} << 20;  // of the largest segments; the first are small (segment_writer.h)
  // The buffer of each writer, rounded up to a power of two. It should hold what a writer appends in two or three group
  // commits and not be much larger, because all of it passes through the caches of a core. A segment holds at least
  // twice the content of all buffers; it is made larger if necessary.
  size_t buffer_bytes = size_t{256} << 10;
  // Limit for a transaction that needs more than half of `buffer_bytes`. It gets memory of its own until it is written.
  // All such transactions together take at most this at once; the others wait. The batch that they are written in takes
  // the same amount again. If this is not larger than buffer_bytes, there are no such transactions.
  size_t large_buffer_bytes = size_t{256} << 20;
  // Number of bytes of the log that Create makes ready for use, or fewer if the disk has no room. Without
  // preallocation, space is filled with zeros just ahead of the writes, so it is written twice.
  uint64_t preallocate_bytes = 0;
  // At the end, what was not used of it stays for the next run. False: it is removed.
  bool keep_preallocated = true;
  absl::Duration retry_every = absl::Milliseconds(100);
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  Identity database{};  // of the manifest; not known: the log's files say no database
  Identity run{};       // of the run that begins, drawn at random, the same on all nodes; not known: none
  // Called when health() has changed, by the log's thread, which waits for it. May be empty.
  std::function<void(const Status& health)> on_health = {};
};

}  // namespace gannet::log
