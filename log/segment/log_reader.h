// Reads a log: for recovery, `gannet verify` and `gannet log dump`. Writes only with ReadOptions::make_durable.
//
// Recovery relies on what it read: once a new run records where the old run ended, that end must not change any more.
// So recovery sets make_durable: the reader then makes the last segment durable when it has found the segment's end,
// because a program that died may have left bytes in the page cache only.
//
// The result is one of:
//   - a valid log, possibly with a torn tail: the last batch is incomplete, as a crash may leave it (`torn_tail`);
//   - damage, which a crash cannot explain: data follows an invalid batch, a segment is missing, or a header does not
//     fit its place. The error is DataLoss with file, offset and advice.
// docs/log_format.md has all rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/damage.h"
#include "log/file/file_system.h"
#include "log/format/transaction_format.h"
#include "log/segment/log_end.h"

namespace gannet::log {

struct Manifest;

struct BatchPlace {
  uint64_t segment = 0;
  uint64_t offset = 0;  // of the batch header
};

// Begin of the oldest segment that a log still has.
struct LogBegin {
  uint64_t segment = 0;
  uint64_t closed_epoch = 0;  // everything before it is of epochs up to this
};
// NotFound if the directory has no log.
StatusOr<LogBegin> FindLogBegin(FileSystem& files, const std::string& directory);
// True if another node's log with this `begin` has all decisions that a node needs whose newest checkpoint begins with
// `begin_epoch` (0: it has no checkpoint).
inline bool ReachesBack(const LogBegin& begin, uint64_t begin_epoch) {
  return begin.closed_epoch < std::max<uint64_t>(begin_epoch, 1);
}
// "<path> is missing", for messages: names the newest missing segment of a log that begins too late, at `begin`.
std::string SegmentMissingBefore(const std::string& directory, const LogBegin& begin);

// A run of which a log has segments.
struct LogRun {
  uint64_t number = 0;
  Identity identity{};           // not known before version 5 of the log
  uint64_t recovered_epoch = 0;  // when it began, the same on all nodes
  // It closed a later epoch, which the nodes then recovered, or which they may recover, if it is the last run. Then
  // every node had begun it.
  bool closed = false;
};

// Summary of a log. The reader reads all of the log and checks every checksum.
struct LogSummary {
  // recovered_epoch is that of this node's log alone; the caller takes the minimum over all nodes. It includes removed
  // segments (the header of the next segment says what they closed). last_epoch does not include void epochs of removed
  // segments.
  LogEnd end;
  uint64_t first_segment = 0;
  uint64_t segments = 0;
  uint64_t batches = 0;
  uint64_t transactions = 0;
  uint64_t changes = 0;
  uint64_t bytes_read = 0;
  uint64_t last_batch_wall_nanos = 0;
  std::vector<LogRun> runs;  // ascending
  bool torn_tail = false;
  std::string torn_tail_place;
  std::vector<Damage> damages;  // empty without salvage; salvage continues after damage
};

struct ReadOptions {
  int threads = 1;
  bool salvage = false;  // continue after damage, leave out damaged parts, and list them
  // Leave out the segments below this one, because a checkpoint holds their content. 0: there is no checkpoint.
  uint64_t from_segment = 0;
  // Manifest of the directory, from a caller that holds the directory, so that nothing changes it. Null: ReadLog reads
  // it.
  const Manifest* manifest = nullptr;
  // Set by a caller that continues the log. ReadLog syncs the last segment and writes its last batch again, so that all
  // that was read is durable when ReadLog returns.
  bool make_durable = false;
  // Called after the visits of a batch's transactions, by the thread that made them. May be empty.
  std::function<Status(int thread)> batch_end = {};
};

// A transaction that was read. The views are valid until ReadOptions::batch_end returns; without one, during the call.
struct TransactionView {
  BatchPlace batch;
  uint64_t closed_epoch = 0;  // by its batch
  uint64_t closed_later = 0;  // at least closed_epoch: the log is already known to have closed this epoch in the end
  uint64_t epoch = 0;
  TransactionPart part = TransactionPart::kWhole;  // the visitor matches parts with decisions of other logs
  uint64_t id = 0;
  std::span<const ChangeView> changes;
};

// Called from `threads` threads at once (`thread` counts from 0), with segments in any order. The visitor gets no void
// transactions (SegmentHeader). It does get transactions of epochs that this log did not close, because the cluster's
// epoch is known only after all logs have been read. If it returns an error, the reading ends with that error.
using TransactionVisitor = std::function<Status(int thread, const TransactionView&)>;

// `visit` may be null. NotFound if the directory has no log.
StatusOr<LogSummary> ReadLog(FileSystem& files, const std::string& directory, const ReadOptions& options,
                             const TransactionVisitor& visit);

}  // namespace gannet::log
