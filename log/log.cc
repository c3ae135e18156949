#include "log/log.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "log/commit/group_commit.h"
#include "log/commit/writer_set.h"
#include "log/file/kill_point.h"
#include "log/segment/segment_writer.h"

namespace gannet::log {
namespace {

constexpr size_t kInboxBuffers = 4;  // the inbox is as large as this many writers' buffers, and at least one part

class ThreadedLog final : public Log {
 public:
  ThreadedLog(FileSystem* files, const std::string& directory, const LogEnd& end, const LogOptions& options)
      : files_(files),
        directory_(directory),
        writers_(options.buffer_bytes, options.large_buffer_bytes,
                 options.num_nodes > 1 ? std::max(kInboxBuffers * options.buffer_bytes, kLargestPartBytes) : 0),
        segments_(files, directory, end, options),
        group_commit_(&shared_, &writers_, &segments_, end, options) {
    if (options.large_buffer_bytes > options.buffer_bytes) shared_.large.SetLimit(options.large_buffer_bytes);
    shared_.current.store(std::max(end.recovered_epoch, end.last_epoch) + 1, std::memory_order_relaxed);
    shared_.durable.store(end.recovered_epoch, std::memory_order_relaxed);
    shared_.blocked.Take(shared_.current.load(std::memory_order_relaxed) - 1);
  }
  ~ThreadedLog() override { Stop().IgnoreError(); }

  // Succeeds on a full disk: the log thread then continues with the attempts.
  Status Begin() {
    GANNET_RETURN_IF_ERROR(segments_.PrepareFirst());
    const Status begun = segments_.Begin(0, SegmentSize::kSmall);
    return absl::IsResourceExhausted(begun) ? absl::OkStatus() : begun;
  }

  Status Start(PeerEpochs* peers) override {
    std::lock_guard lock(thread_mutex_);
    if (thread_.joinable() || stopped_) return absl::FailedPreconditionError("a log is started once");
    shared_.peers.store(peers, std::memory_order_release);
    group_commit_.Prepare(peers);
    thread_ = Thread("log", [this] { result_ = group_commit_.Run(); });
    return absl::OkStatus();
  }

  Status Stop() override {
    std::lock_guard lock(thread_mutex_);
    if (!thread_.joinable()) return OwnCopy(result_);
    stopped_ = true;
    group_commit_.StopSoon();
    thread_.join();
    const Status noted = segments_.Finish();
    if (result_.ok()) result_ = noted;
    if (result_.ok()) shared_.SetHealth(absl::FailedPreconditionError("the log was stopped"));
    return OwnCopy(result_);
  }

  StatusOr<std::unique_ptr<LogWriter>> OpenWriter() override {
    StatusOr<std::shared_ptr<WriterChannel>> channel = writers_.Open();
    GANNET_RETURN_IF_ERROR(channel.status());
    group_commit_.AwaitRoom();
    return std::make_unique<LogWriter>(&shared_, std::move(*channel));
  }

  Status AppendForPeer(uint64_t epoch, std::span<const std::byte> transaction) override {
    GANNET_RETURN_IF_ERROR(shared_.Health());
    group_commit_.RaiseCurrent(epoch);
    if (Status appended = writers_.AppendToInbox(transaction); !appended.ok()) {
      shared_.signal.Urgent();  // the caller tries again, and keeps its epoch open until then
      return appended;
    }
    if (shared_.NoteDirty(epoch)) shared_.signal.Dirty();
    return absl::OkStatus();
  }

  void RaiseEpoch(uint64_t epoch) override { group_commit_.RaiseCurrent(epoch); }

  Status WaitDurable(uint64_t epoch, absl::Duration timeout) override {
    const uint64_t deadline = NowNanos() + static_cast<uint64_t>(std::max<int64_t>(ToInt64Nanoseconds(timeout), 0));
    shared_.NoteWanted(epoch);
    if (durable_epoch() < epoch) shared_.NoteBlocked(epoch);
    while (durable_epoch() < epoch) {
      const uint64_t now = NowNanos();
      if (now >= deadline) return NotDurable(epoch, timeout);
      shared_.SleepUntilDurable(epoch, deadline - now);
    }
    return absl::OkStatus();
  }

  Status health() const override { return shared_.Health(); }
  void TryAgain() override { group_commit_.TryAgain(); }
  StatusOr<uint64_t> BeginSegment(bool give_back, uint64_t keep_free) override {
    return group_commit_.BeginSegment(give_back, keep_free);
  }
  Status RemoveSegmentsBelow(uint64_t segment) override;

  void SetAlarm(uint64_t disk_bytes, std::function<void()> alarm) override {
    group_commit_.SetAlarm(disk_bytes, std::move(alarm));
  }

  LogStatistics statistics() const override {
    LogStatistics total = group_commit_.DiskStatistics();
    const LogStatistics writers = writers_.Counters();
    total.transactions = writers.transactions;
    total.changes = writers.changes;
    total.payload_bytes = writers.payload_bytes;
    total.record_bytes = writers.record_bytes;
    return total;
  }

 private:
  Status NotDurable(uint64_t epoch, absl::Duration timeout) const {
    const Status why = shared_.Health();
    return absl::DeadlineExceededError(absl::StrCat("epoch ", epoch, " is not durable after ",
                                                    absl::FormatDuration(timeout), " (durable is ", durable_epoch(),
                                                    ")", why.ok() ? "" : ": ", absl::string_view(why.message())));
  }

  FileSystem* const files_;
  const std::string directory_;
  WriterSet writers_;
  SegmentWriter segments_;
  GroupCommit group_commit_;

  Mutex thread_mutex_;  // guards the members below
  Thread thread_;
  bool stopped_ = false;
  Status result_;  // of the thread; read after it was joined

  Status removals_;  // of segments: why there are none any more
};

// Renames one by one, in ascending order, so that a crash leaves no gaps: of several names changed since the last sync
// of the directory, a power cut may keep the last and lose the first. A file is handed on for reuse only when its name
// as a segment is durably gone; otherwise rewritten content could appear under that name. If the directory cannot be
// synced, a later sync does not help: the name may come back at the next crash, so no later segment is removed.
Status ThreadedLog::RemoveSegmentsBelow(uint64_t segment) {
  group_commit_.TakeRoomAgain();
  StatusOr<std::vector<std::string>> names = files_->List(directory_);
  GANNET_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const std::optional<uint64_t> number = SegmentOfName(name);
    if (!number.has_value() || *number >= segment) continue;
    GANNET_RETURN_IF_ERROR(removals_);
    const std::string used = segments_.NewSparePath();
    GANNET_RETURN_IF_ERROR(files_->Rename(directory_ + "/" + name, used));
    MayDieHere(KillPoint::kSegmentRemoved);
    const Status synced = files_->SyncDirectory(directory_);
    if (!synced.ok()) {
      removals_ = Status(synced.code(), absl::StrCat("the segment ", name, " may come back at a crash, so later ones ",
                                                     "stay until the database is opened again: ", synced.message()));
      return removals_;
    }
    if (!segments_.OfferUsed(used)) GANNET_RETURN_IF_ERROR(files_->Remove(used));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Log>> Log::Create(FileSystem* files, const std::string& directory, const LogEnd& end,
                                           const LogOptions& options) {
  auto log = std::make_unique<ThreadedLog>(files, directory, end, options);
  GANNET_RETURN_IF_ERROR(log->Begin());
  return log;
}

}  // namespace gannet::log
