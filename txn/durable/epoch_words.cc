#include "txn/durable/epoch_words.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "txn/durable/read_words.h"

namespace gannet::txn {
namespace {

constexpr size_t kWords = 7;  // stage, current, loads, drained, flushed, oldest, closing

// Positions of a reason's words.
constexpr size_t kReasonCode = 0;
constexpr size_t kReasonNode = 1;
constexpr size_t kReasonBytes = 2;
constexpr size_t kReasonText = 3;

constexpr absl::Duration kLookAtOthersEvery = absl::Milliseconds(20);  // while a node that closes waits for its log

}  // namespace

StatusOr<std::unique_ptr<EpochWords>> EpochWords::Create(rdma::Fabric* fabric, rdma::Node* node,
                                                         rdma::SlabAllocator* slab) {
  StatusOr<std::byte*> words = slab->AllocateExtent(kBytes);
  if (!words.ok()) return words.status();
  return std::unique_ptr<EpochWords>(new EpochWords(fabric, node, *words));
}

EpochWords::EpochWords(rdma::Fabric* fabric, rdma::Node* node, std::byte* words)
    : fabric_(fabric),
      node_(node),
      words_(words),
      offset_(static_cast<uint64_t>(words - node->memory().data())),
      images_(kWords * static_cast<size_t>(fabric->num_nodes())) {}

void EpochWords::SetStage(Stage stage) {
  if (!refuses()) StoreWord(words_, static_cast<uint64_t>(stage));
}

void EpochWords::Refuse(const Refusal& refusal) {
  if (refuses()) return;
  std::array<uint64_t, kReasonLines * kLineBytes / kWordBytes> reason{};
  constexpr size_t kMostText = (reason.size() - kReasonText) * kWordBytes;
  std::string text(refusal.why.message());
  if (text.size() > kMostText) text.replace(kMostText - 3, std::string::npos, "...");
  reason[kReasonCode] = static_cast<uint64_t>(refusal.why.code());
  reason[kReasonNode] = refusal.node;
  reason[kReasonBytes] = text.size();
  std::memcpy(&reason[kReasonText], text.data(), text.size());
  for (size_t i = 0; i < reason.size(); ++i) StoreWord(words_ + kReason + i * kWordBytes, reason[i]);
  StoreWord(words_, static_cast<uint64_t>(Stage::kRefuses));
}

bool EpochWords::refuses() const {
  return LoadWord(words_) == static_cast<uint64_t>(Stage::kRefuses);
}

void EpochWords::SetRun(const log::Identity& run) {
  std::array<uint64_t, sizeof(log::Identity) / kWordBytes> words{};
  std::memcpy(words.data(), run.bytes.data(), sizeof(words));
  for (size_t i = 0; i < words.size(); ++i) StoreWord(words_ + kRun + i * kWordBytes, words[i]);
}

StatusOr<log::Identity> EpochWords::RunOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const {
  std::array<uint64_t, sizeof(log::Identity) / kWordBytes> words{};
  GANNET_RETURN_IF_ERROR(worker->BlockOn(ReadWords(channel, {node, offset_ + kRun}, words)));
  log::Identity run;
  std::memcpy(run.bytes.data(), words.data(), sizeof(words));
  return run;
}

StatusOr<EpochWords::Stage> EpochWords::StageOf(rdma::NodeId node, rdma::Channel* channel, coro::Worker* worker) const {
  uint64_t word = 0;
  GANNET_RETURN_IF_ERROR(worker->BlockOn(ReadWords(channel, {node, offset_}, {&word, 1})));
  const auto stage = static_cast<Stage>(word);
  switch (stage) {
    case Stage::kNone:
    case Stage::kReads:
    case Stage::kAccepts:
    case Stage::kRefuses:
    case Stage::kNoLog:
    case Stage::kLogs:
      return stage;
  }
  return Stage::kNone;
}

StatusOr<EpochWords::Refusal> EpochWords::RefusalOf(rdma::NodeId node, rdma::Channel* channel,
                                                    coro::Worker* worker) const {
  std::array<uint64_t, kReasonLines * kLineBytes / kWordBytes> reason{};
  GANNET_RETURN_IF_ERROR(worker->BlockOn(ReadWords(channel, {node, offset_ + kReason}, reason)));
  const size_t bytes = std::min<size_t>(reason[kReasonBytes], (reason.size() - kReasonText) * kWordBytes);
  const std::string text(reinterpret_cast<const char*>(&reason[kReasonText]), bytes);
  return Refusal{.node = static_cast<rdma::NodeId>(reason[kReasonNode]),
                 .why = Status(static_cast<absl::StatusCode>(reason[kReasonCode]), text)};
}

Status EpochWords::Start(uint64_t current) {
  StatusOr<std::unique_ptr<rdma::Channel>> channel = node_->OpenChannel();
  if (!channel.ok()) return channel.status();
  channel_ = std::move(*channel);
  worker_.AddPoller([c = channel_.get()] { return c->Poll(); });
  GANNET_CHECK(current > 0 && LoadWord(words_ + kCurrent) <= current, "the log starts in epoch %d, after %d", current,
               LoadWord(words_ + kCurrent));
  // The current epoch comes last: before that, the others know of none in which this node could commit.
  StoreWord(words_ + kFlushed, current - 1);
  StoreWord(words_ + kDrained, current - 1);
  StoreWord(words_ + kCurrent, current);
  return absl::OkStatus();
}

// Does not replace a refusal, which another thread may store at this moment.
void EpochWords::Ready() {
  const auto accepts = static_cast<uint64_t>(Stage::kAccepts);
  CompareAndSwapWord(words_, accepts, static_cast<uint64_t>(Stage::kLogs));
}

void EpochWords::Raise(size_t offset, uint64_t epoch) {
  for (uint64_t seen = LoadWord(words_ + offset); seen < epoch;) {
    const uint64_t found = CompareAndSwapWord(words_ + offset, seen, epoch);
    if (found == seen) return;
    seen = found;
  }
}

void EpochWords::Announce(uint64_t current) {
  Raise(kCurrent, current);
}

void EpochWords::AnnounceDirty(uint64_t epoch) {
  Raise(kDirty, epoch);
}

bool EpochWords::AnotherLogIsBroken(rdma::Channel* channel, coro::Worker* worker) const {
  for (int i = 0; i < fabric_->num_nodes(); ++i) {
    const auto id = static_cast<rdma::NodeId>(i);
    uint64_t closing = 0;
    if (id == node_->id() || !fabric_->Alive(id)) continue;
    const Status status = worker->BlockOn(ReadWords(channel, {id, offset_ + kClosing}, {&closing, 1}));
    if (status.ok() && closing == static_cast<uint64_t>(Closing::kLogBroken)) return true;
  }
  return false;
}

Status EpochWords::CloseTogether(log::Log& log, absl::Duration timeout) {
  StatusOr<std::unique_ptr<rdma::Channel>> channel = node_->OpenChannel();
  coro::Worker worker;
  if (channel.ok()) worker.AddPoller([c = channel->get()] { return c->Poll(); });
  const uint64_t durable_by = NowNanos() + NanosOf(timeout);
  // A disk that works again is no reason to let the others fail.
  if (log.is_stuck()) log.TryAgain();
  // Even if another log is broken already, this log gets time to write what it has: that node may have written it, too.
  while (channel.ok() && !log.is_stuck() && NowNanos() < durable_by) {
    if (log.WaitDurable(log.last_dirty_epoch(), kLookAtOthersEvery).ok()) break;
    if (AnotherLogIsBroken(channel->get(), &worker)) break;
  }
  const bool is_stuck = log.is_stuck();
  StoreWord(words_ + kClosing, static_cast<uint64_t>(is_stuck ? Closing::kLogBroken : Closing::kWhole));
  if (!channel.ok()) return channel.status();
  if (is_stuck) return absl::OkStatus();  // it cannot help the others, who do not wait for it; Log::Stop says why
  const uint64_t deadline = NowNanos() + NanosOf(timeout);
  for (int i = 0; i < fabric_->num_nodes();) {
    const auto id = static_cast<rdma::NodeId>(i);
    std::array<uint64_t, kClosing / kWordBytes + 1> words{};
    const Status status = worker.BlockOn(ReadWords(channel->get(), {id, offset_}, words));
    const bool has_log = words[0] == static_cast<uint64_t>(Stage::kLogs);
    // A READ that failed says nothing about a node that is alive.
    if (!fabric_->Alive(id) ||
        (status.ok() && (!has_log || words[kClosing / kWordBytes] != static_cast<uint64_t>(Closing::kNo)))) {
      ++i;
    } else if (NowNanos() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("node ", i, " does not close; close all nodes of a cluster together"));
    } else {
      worker.BlockOn(worker.Sleep(NowNanos() + 100'000));
    }
  }
  return absl::OkStatus();
}

void EpochWords::AnnounceLoads(uint64_t loads) {
  StoreWord(words_ + kLoads, loads);
}

void EpochWords::PublishOldest(uint64_t begin_epoch) {
  StoreWord(words_ + kOldest, begin_epoch);
  if (fabric_->num_nodes() == 1) least_oldest_.store(begin_epoch, std::memory_order_release);
}

Status EpochWords::NotTakingPart(rdma::NodeId node) {
  StatusOr<Refusal> refusal = RefusalOf(node, channel_.get(), &worker_);
  if (!refusal.ok()) return refusal.status();
  return absl::UnavailableError(
      absl::StrCat("the start of node ", refusal->node,
                   " failed, so nothing becomes durable: ", absl::string_view(refusal->why.message())));
}

bool EpochWords::AllLive() const {
  for (int i = 0; i < fabric_->num_nodes(); ++i) {
    if (!fabric_->Alive(static_cast<rdma::NodeId>(i))) return false;
  }
  return true;
}

// One READ per node. A node whose log has not started has drained nothing.
StatusOr<log::NodeEpochs> EpochWords::Exchange(const log::NodeEpochs& own) {
  // Only this node's CPU writes these words, and the others take them for promises.
  const uint64_t drained = LoadWord(words_ + kDrained);
  GANNET_CHECK(drained <= own.drained && own.flushed <= own.drained && own.drained < own.current,
               "epoch %d is drained after %d, %d is flushed, %d is current", own.drained, drained, own.flushed,
               own.current);
  StoreWord(words_ + kDrained, own.drained);
  StoreWord(words_ + kFlushed, own.flushed);
  log::NodeEpochs all = own;
  error_may_pass_ = false;
  operations_.clear();
  const auto nodes = static_cast<size_t>(fabric_->num_nodes());
  for (size_t i = 0; i < nodes; ++i) {
    const auto id = static_cast<rdma::NodeId>(i);
    if (id == node_->id()) continue;
    operations_.push_back(rdma::Operation::Read({id, offset_}, &images_[i * kWords], kWords * kWordBytes));
  }
  if (operations_.empty()) return all;
  if (refuses()) return NotTakingPart(node_->id());
  const auto read = [](rdma::Channel* channel, std::span<rdma::Operation> operations) -> coro::Task<Status> {
    co_return co_await channel->Post(operations);
  };
  const Status status = worker_.BlockOn(read(channel_.get(), operations_));
  if (!status.ok()) {
    error_may_pass_ = AllLive();
    return absl::UnavailableError(
        absl::StrCat("the logs of the other nodes cannot be read, so nothing becomes durable: ",
                     absl::string_view(status.message())));
  }
  uint64_t oldest = LoadWord(words_ + kOldest);
  const bool closing = LoadWord(words_ + kClosing) != static_cast<uint64_t>(Closing::kNo);
  for (size_t i = 0; i < nodes; ++i) {
    if (static_cast<rdma::NodeId>(i) == node_->id()) continue;
    const uint64_t* words = &images_[i * kWords];
    const bool started = words[0] == static_cast<uint64_t>(Stage::kLogs);
    if (words[0] == static_cast<uint64_t>(Stage::kRefuses)) return NotTakingPart(static_cast<rdma::NodeId>(i));
    // Nothing becomes durable any more, so the log of this node need not wait for it (Log::Stop).
    if (closing && words[kClosing / kWordBytes] == static_cast<uint64_t>(Closing::kLogBroken)) {
      return absl::UnavailableError(absl::StrCat("the log of node ", i, " is broken, and that node is closing"));
    }
    oldest = std::min(oldest, started ? words[kOldest / kWordBytes] : 0);
    all.current = std::max(all.current, started ? words[kCurrent / kWordBytes] : 0);
    all.drained = std::min(all.drained, started ? words[kDrained / kWordBytes] : 0);
    all.flushed = std::min(all.flushed, started ? words[kFlushed / kWordBytes] : 0);
  }
  least_oldest_.store(oldest, std::memory_order_release);
  return all;
}

}  // namespace gannet::txn
