// GroupCommit: the work of the log thread. One round:
//
//   advance    if something is dirty in the current epoch, or a thread waits for it: current epoch + 1
//   drain      until no worker of this node commits in an older epoch; for a limited time, the next round continues
//   exchange   with the other nodes: up to which epoch every node has drained
//   flush      everything in the buffers, as one batch that closes that epoch; then tell the others
//   room       make the next segment ahead of time, and notice a full disk
//
// If the disk was full from the start, there may be no segment yet. Then a round only tries to begin one.
//
// When the next flush begins. If threads are blocked until something is durable, at once, or when all have blocked that
// are expected to (group_pace.h). For results that nobody is blocked for, the time from one flush to the next is
// `group_commit`, or six times the duration of the flush if that is longer (but at most kLongestGroupNanos). Each flush
// costs the workers' processors submissions, interrupts and wake-ups. So on a slow disk fewer and larger flushes are
// faster, and such a commit waits hardly longer, because it waits for the disk anyway.
//
// While one thread commits one transaction after the other, this thread looks for the next one for a short time before
// it sleeps (adaptive_spin.h).
//
// If there is nothing to do, the thread sleeps (with peers, it checks them once per `group_commit`).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/duration_histogram.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/commit/adaptive_spin.h"
#include "log/commit/group_pace.h"
#include "log/commit/log_shared.h"
#include "log/commit/writer_set.h"
#include "log/segment/batch_buffer.h"
#include "log/segment/log_end.h"
#include "log/segment/log_options.h"
#include "log/segment/log_statistics.h"
#include "log/segment/segment_writer.h"

namespace gannet::log {

class GroupCommit {
 public:
  GroupCommit(LogShared* shared, WriterSet* writers, SegmentWriter* segments, const LogEnd& end,
              const LogOptions& options);

  // Called before the thread is started. `peers` may be null.
  void Prepare(PeerEpochs* peers);
  // The thread's body. Returns after StopSoon: Ok, or the reason why not everything is durable.
  Status Run();
  void StopSoon();

  // Thread-safe.
  void RaiseCurrent(uint64_t epoch);
  StatusOr<uint64_t> BeginSegment(bool give_back, uint64_t keep_free);
  // Lets the log take again the room that BeginSegment gave back.
  void TakeRoomAgain() { hold_until_nanos_.store(0, std::memory_order_relaxed); }
  LogStatistics DiskStatistics() const;
  // Waits until a round has seen all writers that are open now, and made room for them or reported that there is none;
  // but for a limited time: the disk may hang.
  void AwaitRoom();
  // Waits until a round has tried the disk again, if it had failed; like AwaitRoom, for a limited time.
  void TryAgain() {
    retry_at_nanos_.store(0, std::memory_order_relaxed);
    AwaitRoom();
  }
  void SetAlarm(uint64_t disk_bytes, std::function<void()> alarm);

 private:
  uint64_t Wanted() const;
  // Begins the run's first segment if there is none. True if the run has one.
  bool BeginRun();
  void Round();
  void Drain();
  Status Exchange();
  void Flush(bool urgent);
  void Collect();
  Status WriteBatch();
  void EnsureRoom();
  bool MayTakeRoom(uint64_t now_nanos, uint64_t room) const;
  uint64_t RoomTicket() const;
  void ServeRoom(uint64_t ticket);
  void ServeBeginSegment();
  StatusOr<uint64_t> BeginSegmentNow(bool give_back);
  bool SegmentRequested() const;
  bool Requested() const;
  void ReportHealth();
  uint64_t RoomNeeded() const;
  bool CaughtUp() const;
  // The last exchange with the peers failed, and the next one may not.
  bool PeersMayAnswer() const;
  bool IsStuck() const;
  bool StopRequested() const { return stop_by_nanos_.load(std::memory_order_seq_cst) != UINT64_MAX; }
  bool MayStop(uint64_t now_nanos) const;
  void SleepUntilNextRound(uint64_t begun_nanos);
  // Sleeps until the time, or until something must be flushed and `number` threads are blocked. True if they are, or if
  // the thread is called for another reason.
  template <class Undisturbed>
  bool SleepUntilBlocked(uint32_t number, uint64_t until_nanos, const Undisturbed& undisturbed);

  LogShared* const shared_;
  WriterSet* const writers_;
  SegmentWriter* const segments_;
  const LogOptions options_;
  const uint64_t interval_nanos_;
  const uint64_t retry_nanos_;
  const std::function<void(const Status& health)> on_health_;
  std::atomic<PeerEpochs*> peers_{nullptr};

  // Used by the log thread only.
  BatchBuffer batch_;
  bool run_begun_ = false;       // the run has a segment, and the peers know it
  bool pending_ = false;         // batch_ was collected and is not durable
  uint64_t batch_large_ = 0;     // bytes that its large transactions have taken
  uint64_t batch_closes_ = 0;    // epoch that it closes
  uint64_t drained_;             // of this node
  uint64_t closable_;            // least drained of all nodes
  uint64_t flushed_;             // closed by a durable batch
  uint64_t peers_current_ = 0;   // greatest current epoch of all nodes
  uint64_t greatest_epoch_ = 0;  // of all transactions taken from the buffers
  Status peer_status_;           // of the last exchange
  Status write_status_;          // of the last write
  Status spare_status_;          // of the last attempt to make a segment ahead of time
  Status room_status_;           // not ok: no room for the content of the buffers
  Status reported_;
  uint64_t flush_nanos_ = 0;                // duration of the last write
  std::array<uint64_t, 8> last_flushes_{};  // durations
  size_t flushes_noted_ = 0;
  bool one_by_one_ = false;  // the last flush had one transaction, of the only thread that is blocked now and then
  AdaptiveSpin spin_;
  uint32_t served_ = 0;  // number of threads that are blocked until batch_ is durable
  GroupPace pace_;
  uint64_t room_retry_at_nanos_ = 0;
  uint64_t round_wanted_ = 0;  // Wanted() when the round began
  uint64_t last_wanted_ = 0;
  uint64_t idle_since_nanos_ = 0;  // when round_wanted_ was seen to change
  int rounds_behind_ = 0;          // number of rounds in a row that did not make it durable
  bool stopping_ = false;          // the round began with a request to stop

  // Until this time the room that was given back, keep_free_ bytes, is for a checkpoint, and not for the next segment.
  std::atomic<uint64_t> hold_until_nanos_{0};
  std::atomic<uint64_t> keep_free_{0};
  std::atomic<uint64_t> stop_by_nanos_{UINT64_MAX};  // UINT64_MAX: no stop requested
  // When to write again, after the disk has failed. TryAgain stores 0, which a failure at the same moment may replace:
  // that one was an attempt, too.
  std::atomic<uint64_t> retry_at_nanos_{0};

  mutable Mutex mutex_;  // guards the members below
  CondVar segment_begun_;
  uint64_t segments_requested_ = 0;
  uint64_t segments_begun_ = 0;
  bool give_back_requested_ = false;
  uint64_t begun_segment_ = 0;  // or why there is none
  Status begun_status_;
  CondVar room_ensured_;
  uint64_t rooms_requested_ = 0;
  uint64_t rooms_ensured_ = 0;
  uint64_t alarm_at_bytes_ = UINT64_MAX;
  std::function<void()> alarm_;
  bool running_ = false;
  LogStatistics disk_statistics_;
  DurationCounts flushes_;
};

}  // namespace gannet::log
