// The redo log of one node: every worker writes the changes of its commits into a buffer of its own; one thread per
// node collects them, writes them as one batch, and tells the workers up to which epoch everything is durable.
//
//   worker                                              log thread
//   Reserve(bytes)      room, or wait                    every `group_commit`:
//   [locks its write set]                                  epoch e -> e + 1
//   Enter()             slot: I commit in epoch e          wait until no slot shows <= e       (drained)
//   [validates]                                            take all bytes of all buffers
//   Append              redo, into the buffer              write batch {closed e}, durably     (flushed)
//   [installs, unlocks]                                    durable epoch = e; wake who waits
//   Leave()             slot: idle
//   wait for durable(e), acknowledge
//
// Why a durable prefix of epochs is consistent. The epoch is read after the write set is locked and before the read set
// is validated. If T2 reads or overwrites what T1 wrote, T1 read its epoch before it unlocked, so T2's is not less. So
// the transactions of epochs up to e are closed under "read from" and "overwrote": running just them, in order, gives
// exactly the recovered state. A transaction that only reads must not be acknowledged earlier than what it read: it
// waits for the durability of the epoch in which it validated, if anything is not durable yet.
//
// Several nodes (PeerEpochs). A node may close epoch e only when no worker of any node still commits in it, because
// such a worker may yet send changes to this node's log (AppendForPeer), and an epoch counts as durable when all nodes
// have flushed it. So a transaction is in the recovered epochs of all its nodes or of none.
//
// When the disk fails (a write or sync returned an error) the segment is given up: what is not durable is still in
// memory and is written to a new segment. Until that succeeds nothing is acknowledged, Reserve fails with the reason,
// and it is tried again every `retry_every`. A full disk is noticed while there is still room for all that is in the
// buffers: Reserve then fails with ResourceExhausted, what is under way becomes durable, and work goes on when there is
// room again. A disk that is full when the log is created does the same: the run begins with a small segment, or, if
// there is no room for one either, later. Reads never need the log.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "log/file/file_system.h"
#include "log/format.h"
#include "log/log_shared.h"
#include "log/log_writer.h"
#include "log/peer_epochs.h"

namespace gannet::log {

struct LogOptions {
  absl::Duration group_commit = absl::Microseconds(300);  // from one flush to the next, if there is something to flush
  uint64_t segment_bytes = uint64_t{64} << 20;
  // Per writer, rounded up to a power of two. It should hold what a writer appends in two or three group commits and
  // not be much larger: all of it goes through the caches of a core. A segment is made larger if it could not hold
  // twice what can be in all buffers.
  size_t buffer_bytes = size_t{256} << 10;
  // A transaction that needs more than half of `buffer_bytes` gets memory of its own until it is written, and must not
  // need more than this. All such transactions together take at most this at once; the others wait. The batch that they
  // are written in takes as much again. Not larger than buffer_bytes: there are none.
  size_t large_buffer_bytes = size_t{256} << 20;
  // Create makes so much of the log ready for use, or as much as the disk has room for. Without that, space is filled
  // with zeros just ahead of the writes: it is written twice.
  uint64_t preallocate_bytes = 0;
  absl::Duration retry_every = absl::Milliseconds(100);
  uint16_t node = 0;
  uint16_t num_nodes = 1;
};

// Where a log ended (log_reader.h finds out), and so where a new run begins. All zeros: there is no log yet.
struct LogEnd {
  uint64_t segment = 0;  // number of the last segment
  uint64_t offset = 0;   // of the first byte after its last valid batch
  uint64_t next_batch = 1;
  uint64_t run = 0;              // of the last segment
  uint64_t recovered_epoch = 0;  // everything up to it is there, on all nodes
  uint64_t last_epoch = 0;       // greatest epoch seen anywhere, recovered or void
  bool has_header = true;        // the last segment; false: a crash interrupted its making
};

struct LogStatistics {
  uint64_t transactions = 0;
  uint64_t changes = 0;
  uint64_t payload_bytes = 0;  // of the changes, without keys and headers
  uint64_t record_bytes = 0;   // of the transactions, with them
  uint64_t disk_bytes = 0;     // of the batches, with headers and padding
  uint64_t batches = 0;
  uint64_t segments = 0;  // begun in this run
  uint64_t failures = 0;  // segments given up because of an error
};

// Thread-safe.
class Log {
 public:
  // Begins a new run in `directory`, after `end`. `files` must outlive the log. Does not look at what is there, but for
  // files of segments to come, and LOG-END. Needs no space: on a full disk it succeeds, and health() tells.
  static StatusOr<std::unique_ptr<Log>> Create(FileSystem* files, const std::string& directory, const LogEnd& end,
                                               const LogOptions& options);
  // Flushes what the writers appended, if the disk lets it.
  virtual ~Log() = default;

  // Starts the log thread. `peers` may be null (one node) and must outlive the log.
  virtual Status Start(PeerEpochs* peers) = 0;
  // Flushes everything, waits for it, stops the thread, and notes where the log ends (end_note.h). What went wrong with
  // the last flush, if anything; a worker that stays in its slot, or a peer that closes nothing, is waited for a few
  // seconds. Several nodes: let all of them reach the point after which nobody appends, and wait for the last epoch
  // (WaitDurable), before any of them stops.
  virtual Status Stop() = 0;

  // One per worker thread. The log must outlive it.
  virtual StatusOr<std::unique_ptr<LogWriter>> OpenWriter() = 0;

  // For commits of other nodes' workers, from any thread of this node: appends the encoded changes `transaction` (a
  // whole transaction as TransactionEncoder makes it) under epoch `epoch`, and makes this node's current epoch not
  // less. The caller's own slot, on its node, is what keeps the epoch from being closed meanwhile. ResourceExhausted:
  // too much of this kind since the last batch; otherwise what health() says.
  virtual Status AppendForPeer(uint64_t epoch, std::span<const std::byte> transaction) = 0;

  // Makes this node's current epoch at least `epoch`.
  virtual void RaiseEpoch(uint64_t epoch) = 0;

  uint64_t current_epoch() const { return shared_.current.load(std::memory_order_acquire); }
  // Everything of epochs up to this is durable, on all nodes. Monotonic.
  uint64_t durable_epoch() const { return shared_.durable.load(std::memory_order_acquire); }
  // The newest epoch in which something was appended here. If it is durable, whoever only read need not wait.
  uint64_t last_dirty_epoch() const { return shared_.last_dirty.load(std::memory_order_acquire); }

  // Waits (blocking the thread) until `epoch` is durable. DeadlineExceeded after `timeout`, with the disk's error if
  // there is one. For programs without coroutines, checkpoints, tests. Coroutines: LogWriter::Await.
  virtual Status WaitDurable(uint64_t epoch, absl::Duration timeout) = 0;
  // Ok, or why nothing can be written now.
  virtual Status health() const = 0;

  // Begins a segment and returns its number: what is in the segments below it is of epochs below `current_epoch()` (as
  // of after this call), so beside a checkpoint of all these epochs they are not needed. Such a checkpoint reads the
  // records after WaitDurable(current_epoch() - 1): then all commits of these epochs have installed what they wrote.
  // Works also while a full disk refuses commits, if there is room for a small segment. `give_back`: what was made
  // ready for segments after this one is removed, so that its space is free.
  virtual StatusOr<uint64_t> BeginSegment(bool give_back = false) = 0;
  // Takes segments below `segment` away; the files of some of them become later segments.
  virtual Status RemoveSegmentsBelow(uint64_t segment) = 0;

  virtual LogStatistics statistics() const = 0;

 protected:
  LogShared shared_;
};

}  // namespace gannet::log
