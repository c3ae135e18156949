// This node's log epochs in registered memory, where other nodes READ them (log/log.h says what they mean).
//
//   | stage | current | loads | drained | flushed | oldest | closing | dirty |   one line
//   | code | node | bytes | text ... |   kReasonLines lines: why the node refuses
//   | identity of the run |   one line, written once, before the stage kAccepts
//
// stage: how far the start of the node has come (start_together.h). The other words count only at stage kLogs. The
// reason is written once, before the stage kRefuses: a READ that follows one that returned this stage finds all of it.
//
// loads: number of bulk loads that are not durable (txn/durable/unsaved_loads.h). It lies beside current, so that one
// READ brings both.
//
// oldest: the begin epoch of the older checkpoint that the node keeps. No node removes log of that epoch or later: it
// may hold decisions of transactions whose parts the node would recover.
//
// dirty: the newest epoch in which something was appended to this node's log. A node that reads a record here, and this
// word after that, knows that the record is durable once this epoch is.
//
// The words lie at the same offset on every node: Database::Open allocates them right after the grace period's slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "log/format/identity.h"
#include "log/log.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::txn {

class EpochWords : public log::PeerEpochs {
 public:
  // A word that is none of these is of an unknown version, and counts as kNone.
  enum class Stage : uint64_t {
    kNone = 0,     // Database::Start was not called
    kReads = 1,    // is recovering
    kAccepts = 2,  // has recovered, and has written nothing yet
    kRefuses = 3,  // Start has failed or is about to; the reason is there
    kNoLog = 4,    // was opened without a directory
    kLogs = 0x676e745f65706f63,
  };
  struct Refusal {
    rdma::NodeId node = 0;  // whose reason it is
    Status why;
  };

  static StatusOr<std::unique_ptr<EpochWords>> Create(rdma::Fabric* fabric, rdma::Node* node,
                                                      rdma::SlabAllocator* slab);

  // The stage of this node. kRefuses is final: a second refusal and a later stage have no effect. One thread at a time
  // calls these two; another thread may call Ready at the same time.
  void SetStage(Stage stage);
  void Refuse(const Refusal& refusal);
  bool refuses() const;
  // What this node has drawn as the identity of the run that begins; that of node 0 counts. Before it accepts.
  void SetRun(const log::Identity& run);
  // The stage and the refusal of another node, by READs on `channel`, which `worker` polls. The errors are the
  // channel's. Call RefusalOf after StageOf has returned kRefuses.
  StatusOr<Stage> StageOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const;
  StatusOr<Refusal> RefusalOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const;
  // The identity of the run of another node that accepts, or has accepted.
  StatusOr<log::Identity> RunOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const;

  // This node's commits begin in `current`. Other nodes see a log here once it is Ready.
  Status Start(uint64_t current);

  // Address of the current epoch of `node` and its loads, for a READ in a batch.
  static constexpr size_t kCommitWords = 2;
  rdma::GlobalAddress CurrentAt(rdma::NodeId node) const { return {node, offset_ + kCurrent}; }

  // Address of the newest epoch of `node` in which something was logged.
  rdma::GlobalAddress DirtyAt(rdma::NodeId node) const { return {node, offset_ + kDirty}; }

  // Waits until the last epoch in which `log`, this node's, has something is durable, as long as that can still happen:
  // neither this log nor that of a node that is closing is stuck (log::Log::is_stuck). Then announces that this node
  // appends nothing any more, and waits until all live nodes have announced this, so that each can still close its last
  // epoch with the others' help; DeadlineExceeded, naming one that is not closing. Each wait takes at most `timeout`. A
  // log that is stuck is of no help, and waits for none.
  Status CloseTogether(log::Log& log, absl::Duration timeout);

  // Announces the number of this node's bulk loads that are not durable now.
  void AnnounceLoads(uint64_t loads);

  // Announces that this node will recover nothing of earlier epochs from the log.
  void PublishOldest(uint64_t begin_epoch);
  // The smallest epoch that a node published, as of the last Exchange; this node's own if it is alone.
  uint64_t least_oldest() const { return least_oldest_.load(std::memory_order_acquire); }

  // log::PeerEpochs. Ready is called by the thread that starts the log, or by the log thread. Announce and
  // AnnounceDirty are thread-safe. Exchange is for the log thread: Unavailable, with the reason, if a node (also this
  // one) refuses. Its error may pass if a READ failed and all nodes live.
  void Ready() override;
  void Announce(uint64_t current) override;
  void AnnounceDirty(uint64_t epoch) override;
  StatusOr<log::NodeEpochs> Exchange(const log::NodeEpochs& own) override;
  bool ErrorMayPass() const override { return error_may_pass_; }

 private:
  static constexpr size_t kCurrent = 1 * kWordBytes;
  static constexpr size_t kLoads = 2 * kWordBytes;
  static constexpr size_t kDrained = 3 * kWordBytes;
  static constexpr size_t kFlushed = 4 * kWordBytes;
  static constexpr size_t kOldest = 5 * kWordBytes;
  static constexpr size_t kClosing = 6 * kWordBytes;  // a Closing
  static constexpr size_t kDirty = 7 * kWordBytes;
  static constexpr size_t kReasonLines = 16;
  static constexpr size_t kReason = kLineBytes;  // where it begins
  static constexpr size_t kRun = (1 + kReasonLines) * kLineBytes;
  static constexpr size_t kBytes = kRun + kLineBytes;

  enum class Closing : uint64_t { kNo, kWhole, kLogBroken };  // kLogBroken: the log is stuck

  EpochWords(rdma::Fabric* fabric, rdma::Node* node, std::byte* words);
  // True if another node is closing without a log that could help to make an epoch durable.
  bool AnotherLogIsBroken(rdma::Channel* channel, coro::Worker* worker) const;
  void Raise(size_t offset, uint64_t epoch);
  // Unavailable: `node` does not take part any more.
  Status NotTakingPart(rdma::NodeId node);
  bool AllLive() const;

  rdma::Fabric* fabric_;
  rdma::Node* node_;
  std::byte* words_;
  uint64_t offset_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  std::atomic<uint64_t> least_oldest_{0};
  bool error_may_pass_ = false;   // of the last Exchange
  std::vector<uint64_t> images_;  // kWords per node
  std::vector<rdma::Operation> operations_;
};

}  // namespace gannet::txn
