// Logs of several nodes: a transaction is in the recovered epochs of all its nodes or of none.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "log/log.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace log_peers_test {

constexpr uint16_t kNodes = 3;

// The words that nodes would READ from each other, in one process.
class Board {
 public:
  class View final : public PeerEpochs {
   public:
    View(Board* board, uint16_t node) : board_(board), node_(node) {}
    void Announce(uint64_t current) override {
      std::lock_guard lock(board_->mutex_);
      uint64_t& word = board_->epochs_[node_].current;
      word = std::max(word, current);
    }
    void AnnounceDirty(uint64_t epoch) override {
      std::lock_guard lock(board_->mutex_);
      board_->dirty_[node_] = std::max(board_->dirty_[node_], epoch);
    }
    StatusOr<NodeEpochs> Exchange(const NodeEpochs& own) override {
      std::lock_guard lock(board_->mutex_);
      ++board_->exchanges_;
      if (board_->dead_) return absl::UnavailableError("node 2 has died");
      if (board_->loses_) return absl::UnavailableError("lost by the test");
      NodeEpochs& word = board_->epochs_[node_];
      word = {std::max(word.current, own.current), own.drained, own.flushed};
      NodeEpochs all = word;
      for (const NodeEpochs& other : board_->epochs_) {
        all.current = std::max(all.current, other.current);
        all.drained = std::min(all.drained, other.drained);
        all.flushed = std::min(all.flushed, other.flushed);
      }
      return all;
    }
    bool ErrorMayPass() const override {
      std::lock_guard lock(board_->mutex_);
      return !board_->dead_;
    }

   private:
    Board* const board_;
    const uint16_t node_;
  };

  uint64_t dirty(uint16_t node) {
    std::lock_guard lock(mutex_);
    return dirty_[node];
  }
  uint64_t exchanges() {
    std::lock_guard lock(mutex_);
    return exchanges_;
  }
  void Kill() {
    std::lock_guard lock(mutex_);
    dead_ = true;
  }
  // From now on, every exchange is lost, or none.
  void SetLoses(bool loses) {
    std::lock_guard lock(mutex_);
    loses_ = loses;
  }

 private:
  std::mutex mutex_;
  std::array<NodeEpochs, kNodes> epochs_;
  std::array<uint64_t, kNodes> dirty_{};
  uint64_t exchanges_ = 0;
  bool dead_ = false;
  bool loses_ = false;
};

class LogPeersTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint16_t node = 0; node < kNodes; ++node) {
      disks_.push_back(std::make_unique<FaultyFileSystem>(node));
      MakeLogDirectory(disks_.back().get());
      views_.push_back(std::make_unique<Board::View>(&board_, node));
      LogOptions options = SmallLog();
      options.node = node;
      options.num_nodes = kNodes;
      Change(&options);
      logs_.push_back(StartLog(disks_.back().get(), {}, options, views_.back().get()));
    }
  }
  void TearDown() override {
    if (dead_) return;
    const uint64_t last = LastDirty();
    for (auto& log : logs_) EXPECT_TRUE(log->WaitDurable(last, kLongEnough).ok());
  }

  virtual void Change(LogOptions*) const {}

  uint64_t LastDirty() const {
    uint64_t last = 0;
    for (const auto& log : logs_) last = std::max(last, log->last_dirty_epoch());
    return last;
  }

  // A transaction of nodes `from` and `to`, by a worker of `from`.
  StatusOr<uint64_t> CommitOverTwo(uint16_t from, uint16_t to, LogWriter* writer, Name name) {
    constexpr size_t kBytes = kTransactionOverheadBytes + MaxChangeBytes(8, 40);
    bool wait = true;
    Status reserved;
    while (!(reserved = writer->Reserve(kBytes, &wait)).ok() && wait) absl::SleepFor(absl::Microseconds(50));
    GANNET_RETURN_IF_ERROR(reserved);
    const uint64_t entered = writer->Enter();
    const uint64_t epoch = std::max(entered, logs_[to]->current_epoch());
    logs_[from]->RaiseEpoch(epoch);
    const uint64_t id = TransactionIdOf(from, name.second);
    std::byte part[kBytes];
    const size_t bytes = Encode(part, name, epoch, TransactionPart::kPart, id);
    Status sent;
    while (absl::IsResourceExhausted(sent = logs_[to]->AppendForPeer(epoch, {part, bytes})))
      absl::SleepFor(absl::Microseconds(50));
    if (sent.ok()) {
      Encode(writer->Room(kBytes), name, epoch, TransactionPart::kDecision, id);
      writer->Append(epoch, bytes, 1, 40);
    }
    writer->Leave(entered);
    writer->Release(kBytes);
    return sent.ok() ? StatusOr<uint64_t>(epoch) : sent;
  }

  static size_t Encode(std::byte* at, Name name, uint64_t epoch, TransactionPart part, uint64_t id) {
    TransactionEncoder encoder(at);
    std::byte* payload = encoder.Add(ChangeKind::kPut, static_cast<uint16_t>(name.first), name.second,
                                     std::as_bytes(std::span(&name.second, 1)), 40);
    for (size_t i = 0; i < 40; ++i) payload[i] = static_cast<std::byte>(name.second + i);
    return encoder.Finish(epoch, part, id);
  }

  Board board_;
  std::vector<std::unique_ptr<FaultyFileSystem>> disks_;
  std::vector<std::unique_ptr<Board::View>> views_;
  std::vector<std::unique_ptr<Log>> logs_;
  // Returns the epoch of a commit that does not become durable, because messages are lost from then on, with what
  // health() says.
  uint64_t CommitAndLose(LogWriter* writer) {
    for (uint64_t n = 1;; ++n) {
      const uint64_t epoch = Commit(writer, {1, n}, 100).value();
      board_.SetLoses(true);
      while (logs_[0]->health().ok()) absl::SleepFor(absl::Microseconds(100));
      if (logs_[0]->durable_epoch() < epoch) return epoch;
      board_.SetLoses(false);
      while (!logs_[0]->health().ok()) absl::SleepFor(absl::Microseconds(100));
    }
  }

  bool dead_ = false;
};

class LogPeersWithSmallBuffersTest : public LogPeersTest {
 protected:
  void Change(LogOptions* options) const override { options->buffer_bytes = 4096; }
};

// A part that does not fit would be refused again and again.
TEST_F(LogPeersWithSmallBuffersTest, TheLargestPartFits) {
  std::vector<std::byte> part(kLargestPartBytes);
  TransactionEncoder encoder(part.data());
  encoder.Add(ChangeKind::kPut, 1, 1, uint64_t{1},
              kLargestPartBytes - kTransactionOverheadBytes - MaxChangeBytes(kIntegerKeyBytes, 0));
  const uint64_t epoch = logs_[1]->current_epoch();
  const size_t bytes = encoder.Finish(epoch, TransactionPart::kPart, TransactionIdOf(0, 1));
  const Status appended = logs_[1]->AppendForPeer(epoch, std::span(part).first(bytes));
  EXPECT_TRUE(appended.ok()) << appended;
}

TEST_F(LogPeersTest, WhatIsDirtyIsAnnouncedBeforeTheCommitGoesOn) {
  auto writer = logs_[0]->OpenWriter().value();
  for (uint64_t n = 1; n <= 20; ++n) {
    const uint64_t epoch = CommitOverTwo(0, 1, writer.get(), {1, n}).value();
    EXPECT_GE(board_.dirty(0), epoch);
    EXPECT_GE(board_.dirty(1), epoch);
    EXPECT_EQ(board_.dirty(2), 0u) << "nothing was appended there";
  }
}

TEST_F(LogPeersTest, ACommitOfOneNodeBecomesDurableOnAll) {
  auto writer = logs_[0]->OpenWriter().value();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  for (auto& log : logs_) ASSERT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
  for (auto& disk : disks_) EXPECT_GE(Recover(*disk->CrashedCopy(1)).end.recovered_epoch, epoch);
}

// The more rarely, the longer they are idle. Each looks once in at least 400 us, after a first time with shorter
// pauses.
TEST_F(LogPeersTest, IdleNodesLookAtEachOtherRarely) {
  const uint64_t before = board_.exchanges();
  const absl::Time begun = absl::Now();
  absl::SleepFor(absl::Milliseconds(300));
  const uint64_t exchanges = board_.exchanges() - before;
  EXPECT_LT(exchanges, kNodes * (300 + (absl::Now() - begun) / absl::Microseconds(400)));
  EXPECT_GT(exchanges, 0u);
}

TEST_F(LogPeersTest, ANodeThatLagsHoldsUpEverybody) {
  auto lagging = logs_[2]->OpenWriter().value();
  auto writer = logs_[0]->OpenWriter().value();
  const uint64_t entered = lagging->Enter();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  for (auto& log : logs_) EXPECT_TRUE(absl::IsDeadlineExceeded(log->WaitDurable(epoch, absl::Milliseconds(5))));
  lagging->Leave(entered);
  for (auto& log : logs_) EXPECT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
}

TEST_F(LogPeersTest, ANodeThatCannotWriteHoldsUpEverybody) {
  disks_[1]->SetOptions({.sync_error_one_in = 1});
  auto writer = logs_[0]->OpenWriter().value();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  for (auto& log : logs_) EXPECT_TRUE(absl::IsDeadlineExceeded(log->WaitDurable(epoch, absl::Milliseconds(5))));
  disks_[1]->Heal();
  for (auto& log : logs_) EXPECT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
}

TEST_F(LogPeersTest, ADeadNodeEndsAcknowledgements) {
  auto writer = logs_[0]->OpenWriter().value();
  ASSERT_TRUE(logs_[0]->WaitDurable(Commit(writer.get(), {1, 1}, 100).value(), kLongEnough).ok());
  board_.Kill();
  dead_ = true;
  bool wait = false;
  Status refused;
  for (int i = 0; i < 60'000 && (refused = writer->Reserve(8, &wait)).ok(); ++i) {
    writer->Release(8);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_FALSE(wait);
  const uint64_t epoch = logs_[0]->current_epoch();
  EXPECT_TRUE(absl::IsDeadlineExceeded(logs_[0]->WaitDurable(epoch, absl::Milliseconds(5))));
  EXPECT_TRUE(logs_[0]->is_stuck());
  EXPECT_TRUE(absl::IsUnavailable(logs_[0]->Stop()));
}

TEST_F(LogPeersTest, ALogWhoseMessagesAreLostIsNotStuck) {
  auto writer = logs_[0]->OpenWriter().value();
  const uint64_t epoch = CommitAndLose(writer.get());
  EXPECT_TRUE(absl::IsUnavailable(logs_[0]->health())) << logs_[0]->health();
  EXPECT_FALSE(logs_[0]->is_stuck());
  const StatusOr<uint64_t> segment = logs_[0]->BeginSegment();
  EXPECT_TRUE(segment.ok()) << "a checkpoint begins meanwhile: " << segment.status();
  board_.SetLoses(false);
  EXPECT_TRUE(logs_[0]->WaitDurable(epoch, kLongEnough).ok());
}

TEST_F(LogPeersTest, StopGoesOnAfterLostMessages) {
  auto writer = logs_[0]->OpenWriter().value();
  const uint64_t epoch = CommitAndLose(writer.get());
  std::thread healer([this] {
    absl::SleepFor(absl::Milliseconds(20));
    board_.SetLoses(false);
  });
  const Status stopped = logs_[0]->Stop();
  healer.join();
  dead_ = !stopped.ok();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_GE(logs_[0]->durable_epoch(), epoch);
}

TEST_F(LogPeersTest, ALogWhoseDiskFailsIsStuckUntilItWorksAgain) {
  auto writer = logs_[1]->OpenWriter().value();
  disks_[1]->SetOptions({.sync_error_one_in = 1});
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  while (!logs_[1]->is_stuck()) absl::SleepFor(absl::Microseconds(100));
  EXPECT_FALSE(logs_[0]->is_stuck()) << "that of another node";
  disks_[1]->Heal();
  EXPECT_TRUE(logs_[1]->WaitDurable(epoch, kLongEnough).ok());
  while (logs_[1]->is_stuck()) absl::SleepFor(absl::Microseconds(100));
}

struct Committed {
  uint16_t from;
  uint16_t to;
  uint64_t epoch;
};

TEST_F(LogPeersTest, PartsOfATransactionAreRecoveredTogether) {
  constexpr uint64_t kCommits = 500;
  std::array<std::map<Name, Committed>, kNodes> committed;
  std::vector<std::thread> threads;
  std::atomic<int> running = kNodes;
  for (uint16_t node = 0; node < kNodes; ++node) {
    threads.emplace_back([&, node] {
      Random random(node);
      auto writer = logs_[node]->OpenWriter().value();
      for (uint64_t i = 0; i < kCommits; ++i) {
        const auto to = static_cast<uint16_t>((node + 1 + random.Below(kNodes - 1)) % kNodes);
        const uint64_t epoch = CommitOverTwo(node, to, writer.get(), {node, i}).value();
        committed[node][{node, i}] = {node, to, epoch};
      }
      --running;
    });
  }
  // Disks as a crash might leave them. They are not from the same moment, which makes the test only harder.
  struct Crash {
    uint64_t durable;
    std::vector<Recovered> nodes;
  };
  std::vector<Crash> crashes;
  for (uint64_t seed = 1; running != 0 && seed < 30; ++seed) {
    Crash crash{.durable = logs_[seed % kNodes]->durable_epoch(), .nodes = {}};
    for (auto& disk : disks_) crash.nodes.push_back(Recover(*disk->CrashedCopy(seed)));
    crashes.push_back(std::move(crash));
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t last = LastDirty();
  ASSERT_TRUE(logs_[0]->WaitDurable(last, kLongEnough).ok());
  crashes.push_back({last, {}});
  for (auto& disk : disks_) crashes.back().nodes.push_back(Recover(*disk->CrashedCopy(99)));

  for (const Crash& crash : crashes) {
    uint64_t recovered = UINT64_MAX;
    for (const Recovered& node : crash.nodes) recovered = std::min(recovered, node.end.recovered_epoch);
    EXPECT_GE(recovered, crash.durable);
    for (const auto& of_node : committed) {
      for (const auto& [name, transaction] : of_node) {
        if (transaction.epoch > recovered) continue;
        EXPECT_TRUE(crash.nodes[transaction.from].Has(name));
        EXPECT_TRUE(crash.nodes[transaction.to].Has(name));
      }
    }
  }
}

}  // namespace log_peers_test
}  // namespace gannet::log
