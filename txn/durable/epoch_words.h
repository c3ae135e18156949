// This node's log epochs in registered memory, where other nodes READ them (log/log.h says what they mean).
//
//   | stage | current | loads | drained | flushed | oldest | closing | dirty |   one line
//   | code | node | bytes | text ... |                                           why the node refuses: kReasonLines
//   lines
//
// stage: how far the start of the node has come (start_together.h). What follows it counts only at stage kLogs. The
// reason is written once, before the stage kRefuses: a READ that follows one of that stage finds all of it.
//
// loads: how many bulk loads are not durable (txn/durable/unsaved_loads.h). Beside current: one READ brings both.
//
// oldest: the begin epoch of the older checkpoint that the node keeps. No node removes log of that epoch or later: it
// may hold decisions of transactions whose parts that node would recover.
//
// dirty: the newest epoch in which something was appended to this node's log. Whoever reads a record here, and this
// word after that, knows that the record is durable once this epoch is.
//
// It lies at the same offset on every node: Database::Open allocates it right after the grace period's slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "log/log.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::txn {

class EpochWords : public log::PeerEpochs {
 public:
  // A word that is none of these is of no version that is known, and counts as kNone.
  enum class Stage : uint64_t {
    kNone = 0,     // Database::Start was not called
    kReads = 1,    // recovers
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

  // Of this node. From kRefuses no way leads elsewhere: a second refusal and a later stage have no effect. One thread
  // at a time calls these two; Ready may come at the same time from another.
  void SetStage(Stage stage);
  void Refuse(const Refusal& refusal);
  bool refuses() const;
  // Of another node, by READs of `channel`, which `worker` polls. The errors are the channel's. RefusalOf: after
  // StageOf has brought kRefuses.
  StatusOr<Stage> StageOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const;
  StatusOr<Refusal> RefusalOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const;

  // This node's commits begin in `current`. Other nodes see a log here once it is Ready.
  Status Start(uint64_t current);

  // The current epoch of `node` and its loads, for a READ in a batch.
  static constexpr size_t kCommitWords = 2;
  rdma::GlobalAddress CurrentAt(rdma::NodeId node) const { return {node, offset_ + kCurrent}; }

  // The newest epoch of `node` in which something was logged, likewise.
  rdma::GlobalAddress DirtyAt(rdma::NodeId node) const { return {node, offset_ + kDirty}; }

  // This node appends nothing any more. Waits until that is true of all nodes that live, so that each can still close
  // its last epoch with the others' help; DeadlineExceeded, naming one that is not closing.
  Status CloseTogether(absl::Duration timeout);

  // So many bulk loads of this node are not durable now.
  void AnnounceLoads(uint64_t loads);

  // This node will recover nothing of earlier epochs from the log.
  void PublishOldest(uint64_t begin_epoch);
  // The least that any node published, as of the last Exchange; this node's own if it is alone.
  uint64_t least_oldest() const { return least_oldest_.load(std::memory_order_acquire); }

  // log::PeerEpochs. Ready is for who starts the log, or the log thread. Announce and AnnounceDirty are thread-safe;
  // Exchange is for the log thread: Unavailable, with its reason, if a node (also this one) refuses.
  void Ready() override;
  void Announce(uint64_t current) override;
  void AnnounceDirty(uint64_t epoch) override;
  StatusOr<log::NodeEpochs> Exchange(const log::NodeEpochs& own) override;

 private:
  static constexpr size_t kCurrent = 1 * kWordBytes;
  static constexpr size_t kLoads = 2 * kWordBytes;
  static constexpr size_t kDrained = 3 * kWordBytes;
  static constexpr size_t kFlushed = 4 * kWordBytes;
  static constexpr size_t kOldest = 5 * kWordBytes;
  static constexpr size_t kClosing = 6 * kWordBytes;
  static constexpr size_t kDirty = 7 * kWordBytes;
  static constexpr size_t kReasonLines = 16;
  static constexpr size_t kReason = kLineBytes;  // where it begins

  EpochWords(rdma::Fabric* fabric, rdma::Node* node, std::byte* words);
  void Raise(size_t offset, uint64_t epoch);
  // Unavailable: `node` has stopped to take part.
  Status NotTakingPart(rdma::NodeId node);

  rdma::Fabric* fabric_;
  rdma::Node* node_;
  std::byte* words_;
  uint64_t offset_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  std::atomic<uint64_t> least_oldest_{0};
  std::vector<uint64_t> images_;  // kWords per node
  std::vector<rdma::Operation> operations_;
};

}  // namespace gannet::txn
