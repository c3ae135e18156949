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
// Several nodes (PeerEpochs). A node may close epoch e only when no worker of any node still commits in it, because such
// a worker may yet send changes to this node's log (AppendForPeer), and an epoch counts as durable when all nodes have
// flushed it. So a transaction is in the recovered epochs of all its nodes or of none.
//
// When the disk fails (a write or sync returned an error) the segment is given up: what is not durable is still in
// memory and is written to a new segment. Until that succeeds nothing is acknowledged, Reserve fails with the reason,
// and it is tried again every `retry_every`. A full disk is noticed while there is still room for all that is in the
// buffers: Reserve then fails with ResourceExhausted, what is under way becomes durable, and work goes on when there is
// room again. Reads never need the log.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "log/file/file_system.h"
#include "log/format.h"
#include "rdma/base/status.h"

namespace gannet::log {

struct LogOptions {
  absl::Duration group_commit = absl::Microseconds(500);  // from one flush to the next, if there is something to flush
  uint64_t segment_bytes = uint64_t{64} << 20;
  size_t buffer_bytes = size_t{4} << 20;  // per writer; bounds the size of one transaction
  absl::Duration retry_every = absl::Milliseconds(100);
  uint16_t node = 0;
  uint16_t num_nodes = 1;
};

// Where a log ended (log_reader.h finds out), and so where a new run begins. All zeros: there is no log yet.
struct LogEnd {
  uint64_t segment = 0;          // number of the last segment
  uint64_t offset = 0;           // of the first byte after its last valid batch
  uint64_t next_batch = 1;
  uint64_t run = 0;              // of the last segment
  uint64_t recovered_epoch = 0;  // everything up to it is there, on all nodes
  uint64_t last_epoch = 0;       // greatest epoch seen anywhere, recovered or void
};

struct NodeEpochs {
  uint64_t current = 0;  // commits that begin now are of this epoch or a later one
  uint64_t drained = 0;  // no worker of the node commits in this epoch or an earlier one any more
  uint64_t flushed = 0;  // the node's log is durable up to and with it
};

// The other nodes' epochs. Used by the log thread only.
class PeerEpochs {
 public:
  virtual ~PeerEpochs() = default;
  // The log calls this before its current epoch becomes `current`: whoever reads something that a commit of this epoch
  // wrote must find an epoch not less, wherever it looks. From any thread.
  virtual void Announce(uint64_t current) = 0;
  // Publishes this node's and returns, over all nodes: the greatest current, the least drained, the least flushed.
  // Unavailable if a node has died: nothing becomes durable any more.
  virtual StatusOr<NodeEpochs> Exchange(const NodeEpochs& own) = 0;
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

class LogWriter;

// Thread-safe.
class Log {
 public:
  // Begins a new run in `directory`, after `end`. `files` must outlive the log. Does not look at what is there.
  static StatusOr<std::unique_ptr<Log>> Create(FileSystem* files, const std::string& directory, const LogEnd& end,
                                               const LogOptions& options);
  // Flushes what the writers appended, if the disk lets it.
  virtual ~Log() = default;

  // Starts the log thread. `peers` may be null (one node) and must outlive the log.
  virtual Status Start(PeerEpochs* peers) = 0;
  // Flushes everything, waits for it, stops the thread. What went wrong with the last flush, if anything.
  virtual Status Stop() = 0;

  // One per worker thread. The log must outlive it.
  virtual StatusOr<std::unique_ptr<LogWriter>> OpenWriter() = 0;

  // For commits of other nodes' workers, from any thread of this node: appends the encoded changes `transaction` (a
  // whole transaction as TransactionEncoder makes it) under epoch `epoch`, and makes this node's current epoch not less.
  // The caller's own slot, on its node, is what keeps the epoch from being closed meanwhile.
  virtual Status AppendForPeer(uint64_t epoch, std::span<const std::byte> transaction) = 0;

  // Makes this node's current epoch at least `epoch`.
  virtual void RaiseEpoch(uint64_t epoch) = 0;

  uint64_t current_epoch() const { return current_epoch_.load(std::memory_order_acquire); }
  // Everything of epochs up to this is durable, on all nodes. Monotonic.
  uint64_t durable_epoch() const { return durable_epoch_.load(std::memory_order_acquire); }
  // The newest epoch in which something was appended here. If it is durable, whoever only read need not wait.
  uint64_t last_dirty_epoch() const { return last_dirty_epoch_.load(std::memory_order_acquire); }

  // Waits (blocking the thread) until `epoch` is durable. DeadlineExceeded after `timeout`, with the disk's error if
  // there is one. For programs without coroutines, checkpoints, tests. Coroutines: LogWriter::Durable.
  virtual Status WaitDurable(uint64_t epoch, absl::Duration timeout) = 0;
  // Ok, or why nothing can be written now.
  virtual Status health() const = 0;

  // A segment that begins after this call holds only what is appended after it. Returns its number: with what a
  // checkpoint of epoch `current_epoch()` (as of after this call) holds, segments below it are not needed.
  virtual StatusOr<uint64_t> BeginSegment() = 0;
  // Deletes segments below `segment`.
  virtual Status RemoveSegmentsBelow(uint64_t segment) = 0;

  virtual LogStatistics statistics() const = 0;

 protected:
  alignas(64) std::atomic<uint64_t> current_epoch_{1};
  alignas(64) std::atomic<uint64_t> durable_epoch_{0};
  alignas(64) std::atomic<uint64_t> last_dirty_epoch_{0};
};

// One worker's. Not thread-safe. Several commits may be between Enter and Leave (coroutines of one worker).
class LogWriter {
 public:
  virtual ~LogWriter() = default;

  // Room for one transaction of so many bytes, before anything is locked. ResourceExhausted: the buffer is full for
  // the moment (`wait` is set: try again after other coroutines and the log thread had their turn), or the disk is;
  // InvalidArgument: larger than the buffer will ever be; otherwise the disk's error.
  virtual Status Reserve(size_t bytes, bool* wait) = 0;
  // The commit's epoch, at least. A commit that finds a later one at another node uses that (and RaiseEpoch); its slot
  // still shows what Enter returned, which is to be given to Leave.
  virtual uint64_t Enter() = 0;
  // Where to encode a transaction of at most the reserved bytes.
  virtual std::byte* Room() = 0;
  // It has been encoded there, with this epoch and so many bytes.
  virtual void Append(uint64_t epoch, size_t bytes, uint32_t changes, size_t payload_bytes) = 0;
  virtual void Leave(uint64_t entered) = 0;

  // Resumes `handle` through the worker when `epoch` is durable, or when `deadline_nanos` has passed.
  virtual void Await(uint64_t epoch, uint64_t deadline_nanos, std::coroutine_handle<> handle) = 0;
  // Hands what has become durable to `resume`; returns how many. The worker's poller.
  virtual size_t Poll(const std::function<void(std::coroutine_handle<>)>& resume) = 0;
  // How many wait. A worker in which everything waits may sleep in here instead of spinning, at most `nanos`.
  virtual size_t waiting() const = 0;
  virtual void SleepUntilDurable(uint64_t nanos) = 0;
};

}  // namespace gannet::log
