#include "log/commit/group_commit.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "log/file/kill_point.h"

namespace gannet::log {
namespace {

// A worker stays in its slot for microseconds, unless it has lost its core, possibly to this thread.
constexpr int kSpins = 50;
constexpr int kYields = 10;
constexpr uint64_t kWaitForOthersNanos = 30'000;  // for workers in their slots, or for peers
constexpr uint64_t kIdleNanos = 1'000'000'000;    // with nothing to do; new work wakes the thread
constexpr uint64_t kLongestPeerPauseNanos = 500'000;
constexpr uint64_t kPausesOfIdleness = 32;
constexpr uint64_t kLeastRetryNanos = 100'000;
constexpr uint64_t kLeastPauseNanos = 1'000'000;    // between two exchanges with peers while the disk fails
constexpr uint64_t kPatienceNanos = 5'000'000'000;  // of Stop, for workers and peers
constexpr uint64_t kFlushesApart = 6;
constexpr uint64_t kLongestGroupNanos = 1'300'000;
constexpr uint64_t kHoldRoomNanos = 60'000'000'000;  // if the end of a checkpoint is never reported
constexpr uint64_t kSpinOnCommitNanos = 50'000;      // for a lone thread that commits one transaction after the other
constexpr absl::Duration kAwaitRoom = absl::Seconds(1);
constexpr uint64_t kRoomForHeaders = 64 * kDiskBlockBytes;

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Nanoseconds(duration), 0));
}

// All workers wait for this thread, which runs for some microseconds at a time, so it must not queue behind them for a
// core. A higher priority in the ordinary class is not enough: the kernel may let the running thread continue until the
// next clock tick, 4 ms with two busy workers on two cores (measured: a durable write of 512 KiB then takes 4,000 us
// instead of 230). The real-time class gives it a core at once; it never spins for long, so no other thread starves.
// Settings that the system does not permit are skipped.
void PreferThisThread() {
  if (Runtime::Current() != nullptr) return;
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // ns; with the default, short sleeps take 50 us longer
  sched_param first{};
  first.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0) return;  // not inherited
  const sched_param none{};
  sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -10);
}

}  // namespace

GroupCommit::GroupCommit(LogShared* shared, WriterSet* writers, SegmentWriter* segments, const LogEnd& end,
                         const LogOptions& options)
    : shared_(shared),
      writers_(writers),
      segments_(segments),
      options_(options),
      interval_nanos_(Nanos(options.group_commit)),
      retry_nanos_(std::max(Nanos(options.retry_every), kLeastRetryNanos)),
      on_health_(options.on_health),
      drained_(end.recovered_epoch),
      closable_(end.recovered_epoch),
      flushed_(end.recovered_epoch),
      pace_(Nanos(options.group_commit)),
      disk_statistics_(segments->statistics()) {}

void GroupCommit::Prepare(PeerEpochs* peers) {
  peers_.store(peers, std::memory_order_release);
  {
    std::lock_guard lock(mutex_);
    disk_statistics_ = segments_->statistics();
    running_ = true;
  }
  // No commit may begin before it is known that there is room for it.
  if (BeginRun()) EnsureRoom();
  ReportHealth();
}

bool GroupCommit::BeginRun() {
  if (run_begun_) return true;
  if (!segments_->begun()) {
    if (NowNanos() < retry_at_nanos_) return false;
    write_status_ = segments_->Begin(0, SegmentSize::kSmall);
    retry_at_nanos_ = write_status_.ok() ? 0 : NowNanos() + retry_nanos_;
    if (!segments_->begun()) return false;
    std::lock_guard lock(mutex_);
    disk_statistics_ = segments_->statistics();
  }
  run_begun_ = true;
  if (PeerEpochs* peers = peers_.load(std::memory_order_acquire); peers != nullptr) peers->Ready();
  return true;
}

Status GroupCommit::Run() {
  PreferThisThread();
  while (true) {
    const uint64_t begun = NowNanos();
    Round();
    if (MayStop(NowNanos())) break;
    SleepUntilNextRound(begun);
  }
  {
    std::lock_guard lock(mutex_);
    running_ = false;
    room_ensured_.notify_all();
  }
  ServeBeginSegment();
  if (CaughtUp() && !pending_) return absl::OkStatus();
  if (!reported_.ok()) return OwnCopy(reported_);
  return absl::DeadlineExceededError(
      "the log was stopped while commits were still running or other nodes had not finished");
}

void GroupCommit::StopSoon() {
  stop_by_nanos_.store(NowNanos() + kPatienceNanos, std::memory_order_release);
  shared_->signal.Urgent();
}

// Raises the current epoch. Peers are told first (PeerEpochs::Announce).
void GroupCommit::RaiseCurrent(uint64_t epoch) {
  if (shared_->current.load(std::memory_order_seq_cst) >= epoch) return;
  if (PeerEpochs* peers = peers_.load(std::memory_order_acquire); peers != nullptr) peers->Announce(epoch);
  RaiseTo(&shared_->current, epoch);
}

// The epoch up to which changes must become durable.
uint64_t GroupCommit::Wanted() const {
  const uint64_t own =
      std::max(shared_->last_dirty.load(std::memory_order_seq_cst), shared_->wanted.load(std::memory_order_seq_cst));
  return std::max(own, peers_current_ == 0 ? 0 : peers_current_ - 1);
}

void GroupCommit::Round() {
  const bool urgent = shared_->signal.TakeUrgent();
  const uint64_t room_ticket = RoomTicket();
  stopping_ = StopRequested();
  if (!BeginRun()) {
    ReportHealth();
    ServeRoom(room_ticket);
    ServeBeginSegment();
    return;
  }
  round_wanted_ = Wanted();
  RaiseCurrent(round_wanted_ + 1);
  Drain();
  peer_status_ = Exchange();
  if (peer_status_.ok() && Wanted() > round_wanted_ && peers_current_ > round_wanted_ + 1) {
    // A peer has begun a later epoch and waits until we have drained the one before.
    Sometimes<"log: a peer has begun a later epoch">();
    round_wanted_ = peers_current_ - 1;
    Drain();
    peer_status_ = Exchange();
  }
  if (peer_status_.ok() && (stopping_ || NowNanos() >= retry_at_nanos_)) {
    Flush(urgent);
    if (write_status_.ok()) EnsureRoom();
  }
  ReportHealth();
  ServeRoom(room_ticket);
  ServeBeginSegment();
}

// Updates drained_. Commits that delay it get some time.
void GroupCommit::Drain() {
  for (int turn = 0;; ++turn) {
    const uint64_t current = shared_->current.load(std::memory_order_seq_cst);
    drained_ = std::max(drained_, std::min(current, writers_->OldestSlot()) - 1);
    if (drained_ >= round_wanted_ || turn >= kSpins + kYields) return;
    if (turn < kSpins) {
      CpuRelax();
    } else {
      Sometimes<"log: a commit holds an epoch up">();
      YieldThread();
    }
  }
}

Status GroupCommit::Exchange() {
  PeerEpochs* const peers = peers_.load(std::memory_order_relaxed);
  if (peers == nullptr) {
    closable_ = drained_;
    shared_->PublishDurable(flushed_);
    return absl::OkStatus();
  }
  const NodeEpochs own{shared_->current.load(std::memory_order_seq_cst), drained_, flushed_};
  StatusOr<NodeEpochs> all = peers->Exchange(own);
  GANNET_RETURN_IF_ERROR(all.status());
  peers_current_ = std::max(peers_current_, all->current);
  RaiseCurrent(peers_current_);
  closable_ = std::max(closable_, std::min(all->drained, drained_));
  shared_->PublishDurable(std::min(all->flushed, flushed_));
  return absl::OkStatus();
}

void GroupCommit::Flush(bool urgent) {
  if (!pending_) {
    const bool closes = closable_ > flushed_ && Wanted() > flushed_;
    if (!closes && !urgent && !SegmentRequested()) return;
    Collect();
    if (!pending_) return;
  }
  // The second attempt writes to a new segment at once. If that fails, too, the next one comes after a pause.
  write_status_ = WriteBatch();
  if (!write_status_.ok()) {
    Sometimes<"log: a batch cannot be written">();
    write_status_ = WriteBatch();
  }
  if (!write_status_.ok()) {
    Sometimes<"log: a batch cannot be written to a new segment either">();
    retry_at_nanos_ = NowNanos() + retry_nanos_;
    return;
  }
  retry_at_nanos_ = 0;
  MayDieHere(KillPoint::kBatchWritten);
  pending_ = false;
  shared_->large.Written(std::exchange(batch_large_, 0));
  const uint64_t transactions = batch_.content().transactions;
  batch_.Clear();
  flushed_ = batch_closes_;
  const uint32_t came = shared_->blocked.number();  // before those that were served can come again
  peer_status_ = Exchange();
  pace_.Flushed(std::exchange(served_, 0), came, flush_nanos_, NowNanos());
  // Other threads would need the processors on which this one and the lone one spin.
  one_by_one_ = pace_.is_lone() && transactions == 1 && peers_.load(std::memory_order_relaxed) == nullptr;
  last_flushes_[flushes_noted_++ % last_flushes_.size()] = flush_nanos_;
  shared_->lone_flush_nanos.store(one_by_one_ ? *std::ranges::min_element(last_flushes_) : 0,
                                  std::memory_order_relaxed);
}

// Everything appended in the epochs up to closable_ is visible here: each thread that appended it has left its slot,
// and this node, or that thread's node, has seen that. Peers report it through Exchange.
void GroupCommit::Collect() {
  shared_->signal.TakeUrgent();
  batch_closes_ = std::max(flushed_, closable_);
  // An epoch in which a worker of this node may still append must stay open.
  GANNET_CHECK(batch_closes_ <= drained_, "epoch %d would be closed; this node has drained %d", batch_closes_,
               drained_);
  served_ += shared_->blocked.Take(batch_closes_);
  batch_large_ += writers_->MoveAllInto(&batch_, flushed_);
  pending_ = !batch_.empty() || (batch_closes_ > flushed_ && Wanted() > flushed_);
  if (pending_) MayDieHere(KillPoint::kBatchCollected);
}

Status GroupCommit::WriteBatch() {
  const BatchBuffer::Content& content = batch_.content();
  greatest_epoch_ = std::max(greatest_epoch_, content.greatest_epoch);
  // Otherwise commits that begin later could get an earlier epoch.
  const uint64_t current = shared_->current.load(std::memory_order_seq_cst);
  GANNET_CHECK(greatest_epoch_ <= current, "a commit of epoch %d is written in epoch %d", greatest_epoch_, current);
  const BatchHeader header{
      .closed_epoch = batch_closes_, .wall_nanos = WallNanos(), .transactions = content.transactions};
  const uint64_t begun = NowNanos();
  Status status = segments_->Write(&batch_, header, RoomNeeded());
  flush_nanos_ = NowNanos() - begun;
  std::lock_guard lock(mutex_);
  flushes_.Record(flush_nanos_);
  disk_statistics_ = segments_->statistics();
  if (disk_statistics_.disk_bytes >= alarm_at_bytes_) {
    alarm_at_bytes_ = UINT64_MAX;
    alarm_();
  }
  return status;
}

void GroupCommit::SetAlarm(uint64_t disk_bytes, std::function<void()> alarm) {
  std::lock_guard lock(mutex_);
  alarm_ = std::move(alarm);
  alarm_at_bytes_ = alarm_ == nullptr ? UINT64_MAX : disk_bytes;
  if (disk_statistics_.disk_bytes < alarm_at_bytes_) return;
  alarm_at_bytes_ = UINT64_MAX;
  alarm_();
}

void GroupCommit::AwaitRoom() {
  std::unique_lock lock(mutex_);
  if (!running_) return;  // Prepare does it
  const uint64_t ticket = ++rooms_requested_;
  shared_->signal.Urgent();
  room_ensured_.wait_for(lock, kAwaitRoom, [&] { return rooms_ensured_ >= ticket || !running_; });
}

// The ticket is read before the round looks at the writers.
uint64_t GroupCommit::RoomTicket() const {
  std::lock_guard lock(mutex_);
  return rooms_requested_;
}

void GroupCommit::ServeRoom(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (rooms_ensured_ >= ticket) return;
  rooms_ensured_ = ticket;
  room_ensured_.notify_all();
}

// The buffers when a full disk is noticed, plus what workers may append until they notice it. Large transactions append
// only what was granted to them.
uint64_t GroupCommit::RoomNeeded() const {
  return 2 * writers_->Capacity() + shared_->large.taken() + kRoomForHeaders;
}

bool GroupCommit::MayTakeRoom(uint64_t now_nanos, uint64_t room) const {
  return now_nanos >= hold_until_nanos_.load(std::memory_order_relaxed) ||
         segments_->LeavesFree(room, keep_free_.load(std::memory_order_relaxed));
}

// First tries to get room for the waiting large transactions, too. If the disk has no room for those, or if it is kept
// for a checkpoint, only they are refused.
void GroupCommit::EnsureRoom() {
  const uint64_t now = NowNanos();
  const uint64_t room = 2 * writers_->Capacity() + kRoomForHeaders;
  uint64_t large = shared_->large.Wanted();
  if (now >= room_retry_at_nanos_) {
    const auto prepare = [&] {
      return MayTakeRoom(now, room + large) ? segments_->PrepareAhead(room + large) : segments_->KeptForCheckpoint();
    };
    spare_status_ = prepare();
    room_retry_at_nanos_ = spare_status_.ok() ? 0 : now + retry_nanos_;
    if (!spare_status_.ok() && large > shared_->large.taken() && !segments_->HasRoom(room + large)) {
      Sometimes<"log: the disk has no room for a large transaction">();
      large = shared_->large.Refuse(spare_status_);
      spare_status_ = prepare();
    }
  }
  if (segments_->HasRoom(room + large)) {
    shared_->large.Grant(large);
    room_status_ = absl::OkStatus();
  } else {
    room_status_ = segments_->HasRoom(room + shared_->large.taken()) ? absl::OkStatus() : spare_status_;
  }
  if (!room_status_.ok()) Sometimes<"log: the disk is full, and commits are refused">();
}

bool GroupCommit::PeersMayAnswer() const {
  return !peer_status_.ok() && peers_.load(std::memory_order_relaxed)->ErrorMayPass();
}

bool GroupCommit::IsStuck() const {
  return !write_status_.ok() || (!peer_status_.ok() && !PeersMayAnswer());
}

void GroupCommit::ReportHealth() {
  shared_->stuck.store(IsStuck(), std::memory_order_release);
  const Status& status = !peer_status_.ok() ? peer_status_ : !write_status_.ok() ? write_status_ : room_status_;
  if (status == reported_) return;
  const bool was_ok = reported_.ok();
  reported_ = status;
  shared_->SetHealth(status);
  if (on_health_ && was_ok != status.ok()) on_health_(status);
}

bool GroupCommit::SegmentRequested() const {
  std::lock_guard lock(mutex_);
  return segments_requested_ > segments_begun_;
}

bool GroupCommit::Requested() const {
  std::lock_guard lock(mutex_);
  return segments_requested_ > segments_begun_ || rooms_requested_ > rooms_ensured_;
}

StatusOr<uint64_t> GroupCommit::BeginSegment(bool give_back, uint64_t keep_free) {
  std::unique_lock lock(mutex_);
  if (!running_) return absl::FailedPreconditionError("the log has not been started, or was stopped");
  const uint64_t ticket = ++segments_requested_;
  give_back_requested_ |= give_back;
  if (give_back) keep_free_.store(keep_free, std::memory_order_relaxed);
  shared_->signal.Urgent();
  segment_begun_.wait(lock, [&] { return segments_begun_ >= ticket; });
  if (!begun_status_.ok()) return OwnCopy(begun_status_);
  return begun_segment_;
}

void GroupCommit::ServeBeginSegment() {
  uint64_t requested;
  bool running;
  bool give_back;
  {
    std::lock_guard lock(mutex_);
    requested = segments_requested_;
    running = running_;
    if (requested == segments_begun_) return;
    give_back = std::exchange(give_back_requested_, false);
  }
  // A full disk (room_status_) is no reason to refuse: the requesting checkpoint may free space. Neither is a lost
  // message: the checkpoint waits for the epoch later.
  const Status& blocked = peer_status_.ok() || PeersMayAnswer() ? write_status_ : peer_status_;
  StatusOr<uint64_t> result = !blocked.ok() ? StatusOr<uint64_t>(blocked)
                              : !running    ? absl::CancelledError("the log was stopped")
                                            : BeginSegmentNow(give_back);
  std::lock_guard lock(mutex_);
  segments_begun_ = requested;
  begun_status_ = OwnCopy(result.status());
  begun_segment_ = result.value_or(0);
  disk_statistics_ = segments_->statistics();
  segment_begun_.notify_all();
}

// Everything appended before goes to older segments, with older epochs than commits from now on. While commits are
// accepted, the new segment has room for the content of the buffers.
StatusOr<uint64_t> GroupCommit::BeginSegmentNow(bool give_back) {
  Flush(true);
  GANNET_RETURN_IF_ERROR(write_status_);
  if (give_back) {
    segments_->GiveBack();
    hold_until_nanos_.store(NowNanos() + kHoldRoomNanos, std::memory_order_relaxed);
  }
  const SegmentSize size = room_status_.ok() ? SegmentSize::kFits
                           : give_back       ? SegmentSize::kLeast
                                             : SegmentSize::kSmall;
  GANNET_RETURN_IF_ERROR(segments_->Begin(RoomNeeded(), size));
  segments_->Cut();
  RaiseCurrent(greatest_epoch_ + 1);
  return segments_->segment();
}

LogStatistics GroupCommit::DiskStatistics() const {
  std::lock_guard lock(mutex_);
  LogStatistics statistics = disk_statistics_;
  statistics.flushes = flushes_;
  return statistics;
}

bool GroupCommit::CaughtUp() const {
  const uint64_t wanted = Wanted();
  return flushed_ >= wanted && shared_->durable.load(std::memory_order_relaxed) >= wanted;
}

bool GroupCommit::MayStop(uint64_t now_nanos) const {
  if (!stopping_) return false;
  return now_nanos >= stop_by_nanos_.load(std::memory_order_acquire) || IsStuck() || (!pending_ && CaughtUp());
}

void GroupCommit::SleepUntilNextRound(uint64_t begun_nanos) {
  ThreadSignal& signal = shared_->signal;
  // A round that knew of the request to stop has done for it what it could.
  const auto undisturbed = [this] { return (stopping_ || !StopRequested()) && !Requested(); };
  if (!write_status_.ok() || !peer_status_.ok())
    return signal.SleepUntilUrgent(std::min(retry_nanos_, std::max(interval_nanos_, kLeastPauseNanos)), undisturbed);
  if (flushed_ < round_wanted_ || shared_->durable.load(std::memory_order_relaxed) < round_wanted_) {
    const int doublings = std::min(++rounds_behind_ / 8, 6);
    return signal.SleepUntilUrgent(
        std::min(kWaitForOthersNanos << doublings, std::max(interval_nanos_, kWaitForOthersNanos)),
        [] { return true; });
  }
  rounds_behind_ = 0;
  const uint64_t paced =
      begun_nanos + std::max(interval_nanos_, std::min(kFlushesApart * flush_nanos_, kLongestGroupNanos));
  if (SleepUntilBlocked(pace_.expected(), std::min(pace_.patient_until(), paced), undisturbed)) return;
  if (SleepUntilBlocked(1, paced, undisturbed)) return;
  // No peer wakes this thread. What a peer commits waits for it by at most 1 part in 32 of the time since the last one.
  if (std::exchange(last_wanted_, round_wanted_) != round_wanted_) idle_since_nanos_ = begun_nanos;
  const uint64_t pause =
      std::clamp((begun_nanos - idle_since_nanos_) / kPausesOfIdleness, kWaitForOthersNanos, kLongestPeerPauseNanos);
  const bool look_at_peers = peers_.load(std::memory_order_relaxed) != nullptr;
  signal.SleepUntilDirty(look_at_peers               ? std::max(interval_nanos_, pause)
                         : room_retry_at_nanos_ != 0 ? retry_nanos_
                                                     : kIdleNanos,
                         [&] { return undisturbed() && Wanted() <= flushed_; });
}

template <class Undisturbed>
bool GroupCommit::SleepUntilBlocked(uint32_t number, uint64_t until_nanos, const Undisturbed& undisturbed) {
  const auto too_few = [&] { return undisturbed() && (Wanted() <= flushed_ || shared_->blocked.number() < number); };
  shared_->blocked.SetFlushAt(number);
  const uint64_t now = NowNanos();
  if (number == 1 && one_by_one_ && now < until_nanos)
    spin_.Until(std::min(until_nanos, now + kSpinOnCommitNanos), [&] { return !too_few(); });
  if (now < until_nanos) shared_->signal.SleepUntilBlocked(until_nanos - now, too_few);
  return shared_->signal.is_urgent() || !too_few();
}

}  // namespace gannet::log
