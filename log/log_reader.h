// Reads a log: for recovery, for `gannet verify`, for `gannet log dump`. Never writes.
//
// Recovery relies on what it read: once a new run says where the old one ended, that must not change any more. So the
// last segment is synced when its end has been found (a program that died may have left it in the page cache only).
//
// What is found is one of:
//   - a valid log, perhaps with a torn tail: the last batch is incomplete, which is what a crash leaves (`torn_tail`);
//   - damage: something invalid that a crash cannot explain: data follows behind it, a segment is missing, a header is
//     not what its place demands. DataLoss with file, offset and advice.
// The rules in full: docs/log_format.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "log/transaction_format.h"

namespace gannet::log {

struct BatchPlace {
  uint64_t segment = 0;
  uint64_t offset = 0;  // of the batch header
};

struct Damage {
  std::string file;
  uint64_t offset = 0;
  std::string what;  // and what can be done
};

// The oldest segment that a log still has.
struct LogBegin {
  uint64_t segment = 0;
  uint64_t closed_epoch = 0;  // everything before it is of epochs up to this
};
// NotFound if the directory has no log.
StatusOr<LogBegin> FindLogBegin(FileSystem& files, const std::string& directory);
// Whether a node whose newest checkpoint begins with `begin_epoch` (0: it has none) finds all decisions that it needs
// in another node's log that begins so.
inline bool ReachesBack(const LogBegin& begin, uint64_t begin_epoch) {
  return begin.closed_epoch < std::max<uint64_t>(begin_epoch, 1);
}
// "<path> is missing", for messages: the newest of the segments that a log lacks which begins so, but should not.
std::string SegmentMissingBefore(const std::string& directory, const LogBegin& begin);

// What one look over the headers of all batches found (it reads everything, and checks every checksum).
struct LogSummary {
  // recovered_epoch is of this node's log alone: the caller takes the least of all nodes'. Removed segments are counted
  // in (the headers of those that followed say what they closed), but for void epochs in last_epoch.
  LogEnd end;
  uint64_t first_segment = 0;
  uint64_t segments = 0;
  uint64_t batches = 0;
  uint64_t transactions = 0;
  uint64_t changes = 0;
  uint64_t bytes_read = 0;
  uint64_t last_batch_wall_nanos = 0;
  // What the last run began with: an epoch that the logs of all nodes had closed then.
  uint64_t run_recovered_epoch = 0;
  bool torn_tail = false;
  std::string torn_tail_place;
  std::vector<Damage> damages;  // empty unless salvage, which goes on after them
};

struct ReadOptions {
  int threads = 1;
  bool salvage = false;  // go on after damage, leaving out what is damaged, and list it
  // Leave out the segments below: a checkpoint holds what they say. 0: there is none, the log is all there is.
  uint64_t from_segment = 0;
  // For who goes on from what was read: it is durable then. Writes into the last segment.
  bool make_durable = false;
};

// A transaction that was read. Views are valid during the call.
struct TransactionView {
  BatchPlace batch;
  uint64_t closed_epoch = 0;
  uint64_t epoch = 0;
  TransactionPart part = TransactionPart::kWhole;  // the visitor matches parts and decisions: they lie in several logs
  uint64_t id = 0;
  std::span<const ChangeView> changes;
};

// Called from `threads` threads at once (`thread` counts from 0), segments in any order. Void transactions
// (SegmentHeader) are left out; transactions of epochs that this log did not close are not: the visitor knows the
// cluster's epoch only after all logs were looked at, and so it gets them with their epoch. Returning an error ends the
// reading with it.
using TransactionVisitor = std::function<Status(int thread, const TransactionView&)>;

// `visit` may be null. NotFound if the directory has no log.
StatusOr<LogSummary> ReadLog(FileSystem& files, const std::string& directory, const ReadOptions& options,
                             const TransactionVisitor& visit);

}  // namespace gannet::log
