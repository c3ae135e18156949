#include "txn/durable/checkpointer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/stop.h"
#include "base/thread.h"
#include "log/file/kill_point.h"
#include "log/format/segment_format.h"
#include "txn/durable/catalog.h"
#include "txn/durable/epoch_words.h"
#include "txn/durable/manifest_file.h"
#include "txn/durable/redo_key.h"
#include "txn/durable/table_rebuilder.h"
#include "txn/durable/unsaved_loads.h"
#include "txn/node/local_node.h"
#include "txn/node/record_walk.h"
#include "txn/record/record.h"
#include "txn/store/event.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::Duration kDurableWithin = absl::Seconds(30);
// If a disk fails for this long, it is not waited for. The log has then tried it ten times (LogOptions::retry_every).
constexpr uint64_t kDiskMayFailNanos = 1'000'000'000;
constexpr absl::Duration kLookAtDiskEvery = absl::Milliseconds(100);
constexpr uint64_t kCopyWaitNanos = 10'000'000'000;
// The time from a failed automatic checkpoint to the next attempt; it is doubled each time.
constexpr uint64_t kFirstRetryNanos = 1'000'000'000;
constexpr uint64_t kLastRetryNanos = 60'000'000'000;
constexpr uint64_t kNever = UINT64_MAX;

// A copy of one committed record.
struct RecordCopy {
  index::OwnedKey key;
  uint64_t version = 0;
  std::vector<std::byte> payload;
};

enum class CopyResult { kCopied, kGone, kLocked };

// An absent record is removed or not committed yet; the log has both. A locked record that is present is waited for.
CopyResult TryCopy(const std::byte* record, const Table& table, RecordCopy* copy) {
  const TableOptions& options = table.options();
  const uint64_t state = LoadWord(record);
  if (IsAbsent(state) && !rdma::IsLineBusy(state)) return CopyResult::kGone;
  if (IsLocked(state)) return CopyResult::kLocked;
  const index::RecordMeta meta = index::LoadMeta(record);
  if (meta.table != table.id() || meta.payload_bytes > table.accepted_payload_bytes() ||
      meta.key_bytes > options.max_key_bytes) {
    return LoadWord(record) == state ? CopyResult::kGone : CopyResult::kLocked;
  }
  copy->key = index::LoadKey(record, options.key_kind);
  copy->payload.resize(meta.payload_bytes);
  uint64_t seen;
  if (!rdma::TryReadLocal(record, index::PayloadDataOffset(meta.key_bytes), copy->payload, &seen) || seen != state) {
    return CopyResult::kLocked;
  }
  copy->version = VersionOf(state);
  return CopyResult::kCopied;
}

// False: the record is gone.
StatusOr<bool> CopyRecord(const std::byte* record, const Table& table, RecordCopy* copy) {
  uint64_t deadline = 0;
  while (true) {
    const CopyResult result = TryCopy(record, table, copy);
    if (result == CopyResult::kCopied) return true;
    if (result == CopyResult::kGone) return false;
    if (deadline == 0) Sometimes<"checkpoint: the walk waits for a locked record">();
    if (deadline == 0) deadline = NowNanos() + kCopyWaitNanos;
    if (NowNanos() > deadline) {
      const uint64_t state = LoadWord(record);
      return absl::UnavailableError(absl::StrCat("a record of table '", table.name(), "' stays locked by worker ",
                                                 LockOwnerChannel(state), " of node ", LockOwnerNode(state),
                                                 "; no checkpoint is possible until that lock is gone"));
    }
    YieldThread();
  }
}

void RemoveCheckpoint(uint64_t id, log::Manifest* manifest) {
  std::erase_if(manifest->checkpoints, [id](const log::CheckpointDescription& one) { return one.id == id; });
}

}  // namespace

Checkpointer::Checkpointer(const LocalNode* local, log::FileSystem* files, log::Log* log, EpochWords* words,
                           UnsavedLoads* loads, ManifestFile* manifest, const std::string& directory,
                           const log::Identity& run, uint64_t damaged)
    : local_(local),
      files_(files),
      log_(log),
      words_(words),
      loads_(loads),
      manifest_(manifest),
      directory_(directory),
      run_(run),
      damaged_(damaged) {
  StatusOr<log::Manifest> now = manifest_->Read();
  if (!now.ok()) return;
  RemoveCheckpoint(damaged_, &*now);
  NoteKept(*now);
  old_log_bytes_ = BytesOfOldLog(*now);
}

Checkpointer::~Checkpointer() {
  Stop();
}

void Checkpointer::Start(const CheckpointTimes& times) {
  thread_ = Thread("checkpoint", [this, times] { Run(times); });
}

void Checkpointer::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  log_->SetAlarm(0, nullptr);
}

// The results of the checkpoints are in statistics().
void Checkpointer::Run(const CheckpointTimes& times) {
  const uint64_t every = NanosOf(times.every);
  uint64_t next = every == 0 ? kNever : NowNanos() + every;
  uint64_t retry_at = 0;
  uint64_t pause = kFirstRetryNanos;
  while (true) {
    const bool outgrown = LogOutgrown(times);
    const uint64_t at = outgrown ? std::min(next, retry_at) : next;
    {
      std::unique_lock lock(mutex_);
      const uint64_t now = NowNanos();
      const auto nanos = static_cast<int64_t>(std::min<uint64_t>(at - std::min(at, now), kLastRetryNanos));
      wake_.wait_for(lock, absl::Nanoseconds(nanos), [this] { return stop_ || woken_; });
      if (stop_) return;
      woken_ = false;
      if (NowNanos() < at) continue;
      if (outgrown) ++statistics_.automatic;
    }
    const Status taken = Take(/*stop=*/nullptr);
    TellOf(taken);
    // After a failure, whatever the reason of that checkpoint, nothing is tried before the pause is over.
    const uint64_t now = NowNanos();
    retry_at = taken.ok() ? 0 : now + pause;
    next = every == 0 ? kNever : taken.ok() ? now + every : retry_at;
    pause = taken.ok() ? kFirstRetryNanos : std::min(2 * pause, kLastRetryNanos);
  }
}

void Checkpointer::TellOf(const Status& taken) const {
  {
    std::lock_guard lock(mutex_);
    if (stop_) return;  // by Close, and it may be the reason
  }
  if (taken.ok()) {
    Tell(local_->options, EventLevel::kInfo, directory_, ": a checkpoint was taken in ",
         absl::StrFormat("%.3f s", statistics().seconds));
  } else {
    Tell(local_->options, EventLevel::kError, directory_,
         ": an automatic checkpoint failed, and will be tried again: ", taken.ToString());
  }
}

uint64_t Checkpointer::BytesOfRows() const {
  int64_t bytes = 0;
  for (const Table* table : local_->tables) bytes += local_->record_bytes.Of(table->id());
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
}

bool Checkpointer::LogOutgrown(const CheckpointTimes& times) {
  if (times.log_multiple <= 0) return false;
  const double wanted = times.log_multiple * static_cast<double>(BytesOfRows());
  const uint64_t limit = std::max(static_cast<uint64_t>(std::min(wanted, 0x1p62)), times.log_least_bytes);
  uint64_t from;
  uint64_t old;
  {
    std::lock_guard lock(mutex_);
    from = log_from_bytes_;
    old = old_log_bytes_;
  }
  // Rows that come until then raise the limit, so it is computed again. Rows that go lower it; that is noticed a minute
  // later at the latest.
  if (old >= limit || log_->statistics().disk_bytes - from >= limit - old) return true;
  log_->SetAlarm(from + (limit - old), [this] {
    {
      std::lock_guard lock(mutex_);
      woken_ = true;
    }
    wake_.notify_all();
  });
  return false;
}

uint64_t Checkpointer::BytesOfOldLog(const log::Manifest& manifest) const {
  const StatusOr<std::vector<std::string>> names = files_->List(directory_);
  if (!names.ok()) return 0;
  const uint64_t first = manifest.checkpoints.empty() ? 0 : manifest.checkpoints.front().first_segment;
  std::vector<uint64_t> sizes;  // ascending by segment, as the names are
  for (const std::string& name : *names) {
    const std::optional<uint64_t> segment = log::SegmentOfName(name);
    if (!segment.has_value() || *segment < first) continue;
    const auto file = files_->Open(absl::StrCat(directory_, "/", name), log::OpenMode::kRead);
    sizes.push_back(file.ok() ? (*file)->Size().value_or(0) : 0);
  }
  sizes.resize(sizes.size() - std::min<size_t>(sizes.size(), log_->statistics().segments));
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
}

CheckpointStatistics Checkpointer::statistics() const {
  const uint64_t written = log_->statistics().disk_bytes;
  std::lock_guard lock(mutex_);
  CheckpointStatistics all = statistics_;
  all.log_bytes = old_log_bytes_ + written - std::min(written, log_from_bytes_);
  return all;
}

Status Checkpointer::Take(const std::atomic<bool>* stop) {
  std::lock_guard one(take_mutex_);
  take_stop_ = stop;
  const uint64_t start = NowNanos();
  Status status = TakeWithRoom();
  loads_->EndCheckpoint(/*published=*/status.ok());
  std::lock_guard lock(mutex_);
  statistics_.seconds = static_cast<double>(NowNanos() - start) * 1e-9;
  statistics_.last_status = status;
  ++(status.ok() ? statistics_.taken : statistics_.failed);
  return status;
}

Status Checkpointer::CopyAtRest(const std::atomic<bool>* stop, absl::FunctionRef<Status()> copy) {
  std::lock_guard one(take_mutex_);
  take_stop_ = stop;
  GANNET_RETURN_IF_ERROR(CloseEpoch().status());
  return copy();
}

StatusOr<uint64_t> Checkpointer::CloseEpoch() {
  const uint64_t epoch = log_->current_epoch();
  log_->RaiseEpoch(epoch + 1);
  const uint64_t begun = NowNanos();
  const uint64_t deadline = begun + NanosOf(kDurableWithin);
  uint64_t healthy_at = begun;
  while (true) {
    const Status durable = log_->WaitDurable(epoch, kLookAtDiskEvery);
    if (durable.ok()) return epoch;
    const uint64_t now = NowNanos();
    const Status health = log_->health();
    // A full disk is no reason to give up: the content of the log's buffers has room, and the checkpoint may make more.
    if (health.ok() || absl::IsResourceExhausted(health)) healthy_at = now;
    if (now - healthy_at >= kDiskMayFailNanos) return health;
    if (now >= deadline) return durable;
  }
}

Status Checkpointer::TakeWithRoom() {
  give_back_ = false;
  Status status = TakeLocked();
  if (!absl::IsResourceExhausted(status)) return status;
  give_back_ = true;
  status = TakeLocked();
  if (absl::IsResourceExhausted(status)) {
    const StatusOr<bool> dropped = DropOlder();
    if (dropped.ok() && *dropped) status = TakeLocked();
  }
  if (status.ok()) return status;
  log_->RemoveSegmentsBelow(0).IgnoreError();  // removes none: the log may use again what it gave back
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      directory_, ": no room for a checkpoint: ", status.message(),
      ". It needs about as much as the records; what could be given up for it has been. Free some space on "
      "that disk, outside this directory, or move the closed directory to a larger one"));
}

// First reads back the one that stays, because nothing else could replace it.
StatusOr<bool> Checkpointer::DropOlder() {
  GANNET_RETURN_IF_ERROR(manifest_->RemoveStrays());
  StatusOr<log::Manifest> kept = manifest_->Read();
  if (!kept.ok()) return kept.status();
  if (kept->checkpoints.size() < 2) return false;
  if (damaged_ != 0 && kept->checkpoints.front().id == damaged_) {
    RemoveCheckpoint(damaged_, &*kept);  // recovery did without
  } else {
    const log::CheckpointDescription& newest = kept->checkpoints.front();
    const auto database = log::Identity::FromText(kept->database);
    for (const log::CheckpointFile& file : newest.files) {
      GANNET_RETURN_IF_ERROR(log::ReadCheckpointFile(*files_, directory_, database, newest.id, file, nullptr, nullptr));
    }
    kept->checkpoints.resize(1);
  }
  const auto keep = [&](log::Manifest* manifest) {
    // A table may have been dropped meanwhile, and its files with it.
    std::erase_if(manifest->checkpoints, [&](const log::CheckpointDescription& one) {
      return std::ranges::find(kept->checkpoints, one.id, &log::CheckpointDescription::id) == kept->checkpoints.end();
    });
    return absl::OkStatus();
  };
  Status written = manifest_->Change(keep);
  if (absl::IsResourceExhausted(written)) {
    // There is no room for the manifest either. The files may be removed before the manifest is changed: they are not
    // used while the other checkpoint is good.
    GANNET_RETURN_IF_ERROR(manifest_->RemoveStrays(&*kept));
    written = manifest_->Change(keep);
  }
  GANNET_RETURN_IF_ERROR(written);
  GANNET_RETURN_IF_ERROR(manifest_->RemoveStrays());
  NoteKept(*kept);
  GANNET_RETURN_IF_ERROR(RemoveUnneededSegments());
  return true;
}

Status Checkpointer::TakeLocked() {
  log::CheckpointDescription description;
  GANNET_RETURN_IF_ERROR(manifest_->RemoveStrays());
  const StatusOr<log::Manifest> last = manifest_->Read();
  if (!last.ok()) return last.status();
  description.id = last->checkpoints.empty() ? 1 : last->checkpoints.front().id + 1;
  const StatusOr<uint64_t> segment = log_->BeginSegment(give_back_, BytesOfRows());
  if (!segment.ok()) return segment.status();
  description.first_segment = *segment;
  began_at_bytes_ = log_->statistics().disk_bytes;
  // Everything that was appended before the segment began has this epoch or an earlier one, and is installed once the
  // epoch is closed.
  const StatusOr<uint64_t> before = CloseEpoch();
  if (!before.ok()) return before.status();
  description.begin_epoch = *before + 1;
  log::MayDieHere(log::KillPoint::kCheckpointBegun);

  if (Status written = WriteFiles(log::Identity::FromText(last->database), &description); !written.ok()) {
    // The reason is a close or a full disk, for example. The files are useless and take room. The next checkpoint
    // starts from the begin.
    Sometimes<"checkpoint: the files of one cannot be written">();
    log::RemoveCheckpoint(*files_, directory_, description.id).IgnoreError();
    return written;
  }
  log::MayDieHere(log::KillPoint::kCheckpointFinished);
  return Publish(description);
}

Status Checkpointer::WriteFiles(const log::Identity& database, log::CheckpointDescription* description) {
  StatusOr<std::unique_ptr<log::CheckpointWriter>> writer = log::CheckpointWriter::Create(
      files_, directory_, database, description->id, local_->options.checkpoint_bytes_per_second);
  if (!writer.ok()) return writer.status();
  GANNET_RETURN_IF_ERROR(WriteTables(writer->get()));
  description->all_logged = local_->options.durability != DurabilityMode::kNone && !loads_->met();
  const StatusOr<uint64_t> end = CloseEpoch();
  if (!end.ok()) return end.status();
  description->end_epoch = *end;
  description->wall_nanos = WallNanos();
  return (*writer)->Finish(description, [this] { return GoOn(); });
}

Status Checkpointer::GoOn() {
  GANNET_RETURN_IF_ERROR(CheckStop(take_stop_, "a checkpoint was written"));
  std::lock_guard lock(mutex_);
  return stop_ ? absl::CancelledError("the database is being closed") : absl::OkStatus();
}

// The manifest may lead to the checkpoint only when all that its walk may have seen is durable: recovery takes its rows
// together with the log up to end_epoch.
Status Checkpointer::Publish(const log::CheckpointDescription& description) {
  GANNET_CHECK(description.begin_epoch <= description.end_epoch && description.end_epoch <= log_->durable_epoch(),
               "checkpoint %d begins in epoch %d and ends in %d; epoch %d is durable", description.id,
               description.begin_epoch, description.end_epoch, log_->durable_epoch());
  log::Manifest published;
  GANNET_RETURN_IF_ERROR(manifest_->Change([&](log::Manifest* manifest) {
    RemoveCheckpoint(damaged_, manifest);
    manifest->checkpoints.insert(manifest->checkpoints.begin(), description);
    manifest->run = run_.ToText();  // before the segments of earlier runs are removed
    // Without a log the one before restores nothing. If it were kept, a manifest that is put back from an earlier run
    // would lead to it, and the changes since would be lost without a word.
    const size_t kept = local_->options.durability == DurabilityMode::kNone ? 1 : 2;
    if (manifest->checkpoints.size() > kept) manifest->checkpoints.resize(kept);
    // A table may have been dropped meanwhile. The manifest may also still have one that was dropped: then it could not
    // be written, and this checkpoint has no rows of that table.
    LeaveOutDropped(*local_, manifest);
    published = *manifest;
    return absl::OkStatus();
  }));
  log::MayDieHere(log::KillPoint::kCheckpointPublished);
  {
    std::lock_guard lock(mutex_);
    statistics_.bytes += description.bytes();
    old_log_bytes_ = 0;
    log_from_bytes_ = began_at_bytes_;
  }
  GANNET_RETURN_IF_ERROR(manifest_->RemoveStrays());
  NoteKept(published);
  return RemoveUnneededSegments();
}

void Checkpointer::NoteKept(const log::Manifest& manifest) {
  for (auto at = manifest.checkpoints.rbegin(); at != manifest.checkpoints.rend(); ++at) {
    if (cuts_.empty() || cuts_.back().first < at->begin_epoch) cuts_.emplace_back(at->begin_epoch, at->first_segment);
  }
  if (manifest.checkpoints.empty()) return;
  oldest_kept_ = manifest.checkpoints.back().begin_epoch;
  words_->PublishOldest(oldest_kept_);
}

// The older of the two checkpoints stays usable, with its part of the log, and so do those of the other nodes.
// Everything below a checkpoint's first segment is of epochs before its begin.
Status Checkpointer::RemoveUnneededSegments() {
  const uint64_t oldest = std::min(oldest_kept_, words_->least_oldest());
  uint64_t below = 0;
  for (const auto& [begin_epoch, first_segment] : cuts_) {
    if (begin_epoch <= oldest) below = first_segment;
  }
  return log_->RemoveSegmentsBelow(below);
}

// A table that is created during the walk may be left out. All its changes are then of the begin epoch or later,
// because the walk began after that: the log has them, and recovery takes them from there. A load of such a table was
// not met by a walk, so it is not saved yet (unsaved_loads.h).
Status Checkpointer::WriteTables(log::CheckpointWriter* writer) {
  for (const Table* table : local_->tables) {
    GANNET_RETURN_IF_ERROR(writer->BeginTable(table->id()));
    // A change of the table may wait for a large transaction, and that for room in the log (checkpointer.h).
    Status released;
    loads_->BeginWalk(table->id(), [&] { released = log_->RemoveSegmentsBelow(0); });
    if (!released.ok()) {
      loads_->EndWalk();
      return released;
    }
    Status written = WriteTable(*local_, *table, writer, [this] { return GoOn(); });
    loads_->EndWalk();
    if (!written.ok()) return written;
    log::MayDieHere(log::KillPoint::kCheckpointTable);
  }
  return absl::OkStatus();
}

// A step of the walk and its records are inside the epoch; writing them to disk is not, because that may take long.
Status WriteTable(const LocalNode& local, const Table& table, log::CheckpointWriter* writer,
                  absl::FunctionRef<Status()> go_on) {
  // It may have been dropped before this walk was known, and then it has no index any more.
  if (table.state() == Table::State::kDropped) return absl::OkStatus();
  RecordWalk walk(local, table);
  std::vector<RecordCopy> copies;
  while (walk.has_more()) {
    size_t n = 0;
    {
      // If it is dropped from here on, DropTable waits for this walk.
      if (table.state() == Table::State::kDropped) return absl::OkStatus();
      index::IndexService::Guard guard(&local.indexes);
      // A checkpoint without rows that the log has, and that a damaged index does not find, would lose them for good.
      const auto records = walk.Next();
      if (!records.ok()) return records.status();
      if (copies.size() < records->size()) copies.resize(records->size());
      for (const rdma::GlobalAddress address : *records) {
        const StatusOr<bool> copied = CopyRecord(local.Direct(address), table, &copies[n]);
        if (!copied.ok()) return copied.status();
        n += *copied ? 1 : 0;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (table.state() == Table::State::kDropped) return absl::OkStatus();
      const Key key = copies[i].key.view();
      const RedoKey bytes(key);
      GANNET_RETURN_IF_ERROR(writer->Add(
          {.table = table.id(), .version = copies[i].version, .key = bytes.bytes(), .payload = copies[i].payload}));
    }
    GANNET_RETURN_IF_ERROR(go_on());
  }
  return absl::OkStatus();
}

}  // namespace gannet::txn
