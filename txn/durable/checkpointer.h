// Takes checkpoints of one node while it works (log/checkpoint/checkpoint.h has the files and their guarantees).
//
//   begin    a new log segment; then wait until every commit appended before it has been installed (its epoch is
//            closed)
//   walk     every table's index, record by record, each copied at one moment
//   end      wait until the log is durable up to the epoch in which the walk ended
//   publish  into the manifest; then remove the checkpoint before the previous one, and the log below the previous one
//
// Order of waits. A transaction waits for room in the log; a change of tables waits for transactions; the walk of a
// table waits for a change of it. So a checkpoint that has the log keep room for it (log::Log::BeginSegment) gives that
// up before it waits for a change of tables. It may then find the disk full.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/checkpoint/checkpoint.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"
#include "log/log.h"
#include "log/manifest/manifest.h"
#include "txn/durable/manifest_file.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

struct LocalNode;
class EpochWords;
class Table;
class UnsavedLoads;

// The times of checkpoints that no program asked for; see DatabaseOptions.
struct CheckpointTimes {
  absl::Duration every;     // 0: at no interval
  double log_multiple = 0;  // 0: not because of the size of the log
  uint64_t log_least_bytes = 0;
  bool any() const { return every > absl::ZeroDuration() || log_multiple > 0; }
};

// Adds all records of a table of this node to a checkpoint, while transactions run. `go_on` is asked from time to time;
// its error ends the walk.
Status WriteTable(const LocalNode& local, const Table& table, log::CheckpointWriter* writer,
                  absl::FunctionRef<Status()> go_on);

class Checkpointer {
 public:
  // All must outlive this. `run`: of the log. `damaged`: a checkpoint of the manifest that recovery found
  // damaged and did not need, 0 if none. It is removed when the next one is complete; the one before it stays.
  Checkpointer(const LocalNode* local, log::FileSystem* files, log::Log* log, EpochWords* words, UnsavedLoads* loads,
               ManifestFile* manifest, const std::string& directory, const log::Identity& run, uint64_t damaged);
  ~Checkpointer();

  // Takes checkpoints at these times, in its own thread.
  void Start(const CheckpointTimes& times);
  void Stop();

  // Takes one now. Thread-safe; one at a time. Cancelled soon after *stop (may be null) has become true, if the files
  // were not written by then: nothing has changed.
  Status Take(const std::atomic<bool>* stop);
  // Waits until all that was committed before this call is durable, and calls `copy`. No checkpoint is taken until that
  // returns, so no file that it copies is removed. Thread-safe. Cancelled as Take, before `copy`.
  Status CopyAtRest(const std::atomic<bool>* stop, absl::FunctionRef<Status()> copy);
  CheckpointStatistics statistics() const;

 private:
  void Run(const CheckpointTimes& times);
  // Tells of an automatic checkpoint (DatabaseOptions::on_event).
  void TellOf(const Status& taken) const;
  // True if the log is too large. If not, the log wakes the thread when it may be.
  bool LogOutgrown(const CheckpointTimes& times);
  uint64_t BytesOfRows() const;
  // Bytes of the segments that earlier runs left after the newest checkpoint.
  uint64_t BytesOfOldLog(const log::Manifest& manifest) const;
  Status TakeLocked();
  // Calls TakeLocked; on a full disk repeatedly, as often as room could be made for it.
  Status TakeWithRoom();
  // Drops the older of two checkpoints, if the newest is good, and the log that only it needs. False: there is nothing
  // to drop.
  StatusOr<bool> DropOlder();
  // Does everything from begin to end; completes the description.
  Status WriteFiles(const log::Identity& database, log::CheckpointDescription* description);
  Status WriteTables(log::CheckpointWriter* writer);
  // Cancelled: the checkpoint that is being taken is not wanted any more.
  Status GoOn();
  // Closes the current epoch, and waits until it is durable.
  StatusOr<uint64_t> CloseEpoch();
  Status Publish(const log::CheckpointDescription& description);
  // Notes the checkpoints in the directory, and announces to the other nodes what this node keeps.
  void NoteKept(const log::Manifest& manifest);
  Status RemoveUnneededSegments();

  const LocalNode* local_;
  log::FileSystem* files_;
  log::Log* log_;
  EpochWords* words_;
  UnsavedLoads* loads_;
  ManifestFile* manifest_;
  std::string directory_;
  const log::Identity run_;
  const uint64_t damaged_;

  Mutex take_mutex_;
  const std::atomic<bool>* take_stop_ = nullptr;  // of the checkpoint that is being taken
  uint64_t began_at_bytes_ = 0;                   // disk_bytes of the log when the checkpoint that is being taken began
  bool give_back_ = false;  // the space that the log has prepared for later segments is given to the checkpoint
  // Checkpoints of this run and those at its begin, oldest first: (begin epoch, first segment).
  std::vector<std::pair<uint64_t, uint64_t>> cuts_;
  uint64_t oldest_kept_ = 0;  // begin epoch of the older checkpoint of the manifest
  mutable Mutex mutex_;       // guards the members below
  CondVar wake_;
  bool stop_ = false;
  bool woken_ = false;           // by the log
  uint64_t old_log_bytes_ = 0;   // after the newest checkpoint, of earlier runs
  uint64_t log_from_bytes_ = 0;  // disk_bytes of the log when the newest checkpoint of this run began
  CheckpointStatistics statistics_;
  Thread thread_;
};

}  // namespace gannet::txn
