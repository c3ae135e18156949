// The redo log of one node. Every worker writes the changes of its commits into a buffer of its own. One thread per
// node collects them, writes them as one batch, and tells the workers up to which epoch everything is durable.
//
//   worker                                              log thread
//   Reserve(bytes)      room, or wait                    when a thread waits, or every `group_commit`:
//   [locks its write set]                                  epoch e -> e + 1
//   Enter()             slot: I commit in epoch e          wait until no slot shows <= e       (drained)
//   [validates]                                            take all bytes of all buffers
//   Append              redo, into the buffer              write batch {closed e}, durably     (flushed)
//   [installs, unlocks]                                    durable epoch = e; wake the waiters
//   Leave()             slot: idle
//   wait for durable(e), acknowledge
//
// Why a durable prefix of epochs is consistent. A transaction reads the epoch after it has locked its write set and
// before it validates its read set. If T2 reads or overwrites what T1 wrote, T1 read its epoch before it unlocked, so
// T2's epoch is at least T1's. So the transactions of epochs up to e are closed under "read from" and "overwrote":
// running only them, in order, gives exactly the recovered state. A read-only transaction must not be acknowledged
// before the data that it read is durable. So it waits for the durability of the epoch in which it validated, if
// anything is not durable yet.
//
// Several nodes (PeerEpochs). A node may close epoch e only when no worker of any node still commits in it, because
// such a worker may still send changes to this node's log (AppendForPeer). An epoch is durable when all nodes have
// flushed it. So a transaction is in the recovered epochs of all its nodes or of none.
//
// When the disk fails (a write or sync returns an error), the segment is given up. Data that is not durable is still in
// memory and is written to a new segment. Until that succeeds nothing is acknowledged, Reserve fails with the reason,
// and the log tries again every `retry_every`. A full disk is noticed while there is still room for all that is in the
// buffers: Reserve then fails with ResourceExhausted, commits in progress become durable, and work continues when there
// is room again. The same happens if the disk is full when the log is created: the run begins with a small segment or,
// if there is no room for one either, later. Reads never need the log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "log/commit/log_shared.h"
#include "log/commit/log_writer.h"
#include "log/commit/peer_epochs.h"
#include "log/file/file_system.h"
#include "log/segment/log_end.h"
#include "log/segment/log_options.h"
#include "log/segment/log_statistics.h"

namespace gannet::log {

// Largest size of a part of another node's transaction (AppendForPeer). A log's buffer for parts holds at least one
// part of this size, even if LogOptions::buffer_bytes is smaller. Otherwise a part that never fits would be refused
// again and again.
inline constexpr size_t kLargestPartBytes = size_t{128} << 10;

// Thread-safe.
class Log {
 public:
  // Begins a new run in `directory`, after `end`. `files` must outlive the log. Reads nothing of the directory except
  // LOG-END and files made ready for later segments. Needs no space: on a full disk it succeeds, and health() returns
  // the error.
  static StatusOr<std::unique_ptr<Log>> Create(FileSystem* files, const std::string& directory, const LogEnd& end,
                                               const LogOptions& options);
  // Flushes what the writers have appended, if the disk allows it.
  virtual ~Log() = default;

  // Starts the log thread. `peers` may be null (one node) and must outlive the log.
  virtual Status Start(PeerEpochs* peers) = 0;
  // Flushes everything, waits for it, stops the thread, and notes where the log ends (end_note.h). Returns the error of
  // the last flush, if any. Waits at most a few seconds for a worker that stays in its slot, or a peer that closes
  // nothing or whose messages are lost. With several nodes: before any of them stops, all must have stopped appending
  // and waited for the last epoch (WaitDurable).
  virtual Status Stop() = 0;

  // One per worker thread. The log must outlive it. Returns when the log has room for what the writer may append; if
  // the disk is full, health() has said so by then. If the disk hangs, returns after a second without either.
  virtual StatusOr<std::unique_ptr<LogWriter>> OpenWriter() = 0;

  // Called for commits of other nodes' workers, by any thread of this node. Appends the encoded changes `transaction`
  // (a whole transaction as TransactionEncoder makes it) in epoch `epoch`, and raises this node's current epoch to at
  // least `epoch`. The slot of the committing worker, on its own node, keeps the epoch open in that time.
  // ResourceExhausted: too many bytes of this kind since the last batch. Other errors: those of health().
  virtual Status AppendForPeer(uint64_t epoch, std::span<const std::byte> transaction) = 0;

  // Makes this node's current epoch at least `epoch`.
  virtual void RaiseEpoch(uint64_t epoch) = 0;

  uint64_t current_epoch() const { return shared_.current.load(std::memory_order_acquire); }
  // Epoch up to which everything is durable on all nodes. Monotonic.
  uint64_t durable_epoch() const { return shared_.durable.load(std::memory_order_acquire); }
  // The newest epoch in which something was appended here. If it is durable, a read-only transaction need not wait.
  uint64_t last_dirty_epoch() const { return shared_.last_dirty.load(std::memory_order_acquire); }

  // Waits (blocking the thread) until `epoch` is durable. DeadlineExceeded after `timeout`, with the disk's error if
  // there is one. For programs without coroutines, checkpoints, tests. Coroutines: LogWriter::Await.
  virtual Status WaitDurable(uint64_t epoch, absl::Duration timeout) = 0;
  // Ok, or why nothing can be written now.
  virtual Status health() const = 0;
  // True if what is not durable cannot become so as things are: writes to the disk fail, or another node has died or
  // refuses. False also while health() is an error that does not prevent that: a message of another node was lost, or
  // the disk is full, but has room for what was appended.
  bool is_stuck() const { return shared_.stuck.load(std::memory_order_acquire); }
  // Writes again what could not be written, in place of at the next of the regular attempts, and waits for the outcome:
  // is_stuck() tells it.
  virtual void TryAgain() = 0;

  // Begins a segment and returns its number. The segments below it have only epochs below `current_epoch()` (as of
  // after this call), so a checkpoint of all these epochs makes them unnecessary. Such a checkpoint reads the records
  // after WaitDurable(current_epoch() - 1): then all commits of these epochs have installed their writes. Also works
  // while a full disk refuses commits, if there is room for a small segment. `give_back`: removes the files made ready
  // for later segments, so that their space is free for the checkpoint. Until RemoveSegmentsBelow is called, the log
  // makes no other ones unless `keep_free` bytes of the disk stay free; commits that need them are refused.
  virtual StatusOr<uint64_t> BeginSegment(bool give_back = false, uint64_t keep_free = UINT64_MAX) = 0;
  // Removes the segments below `segment`; the files of some of them become later segments. With 0 it removes none: the
  // log may use again what it gave back. The checkpoint calls it so before it waits for anything but the disk. By one
  // thread at a time. If the directory could not be synced after a removal, all later removals fail.
  virtual Status RemoveSegmentsBelow(uint64_t segment) = 0;

  virtual LogStatistics statistics() const = 0;
  // Calls `alarm` once: at once if statistics().disk_bytes has reached `disk_bytes`, else when it does, in the log
  // thread. Replaces the alarm before; when this returns, that one does not run and is not called any more. `alarm`
  // must not call the log. Null: none.
  virtual void SetAlarm(uint64_t disk_bytes, std::function<void()> alarm) = 0;

 protected:
  LogShared shared_;
};

}  // namespace gannet::log
