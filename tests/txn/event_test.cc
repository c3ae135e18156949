// DatabaseOptions::on_event: what a program is told, and nothing else.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "log/checkpoint/checkpoint.h"
#include "log/manifest/manifest.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace event_test {

class Events {
 public:
  std::function<void(EventLevel, const std::string&)> function() {
    return [this](EventLevel level, const std::string& text) {
      const std::lock_guard lock(mutex_);
      events_.emplace_back(level, text);
    };
  }
  // The number of events of this level with this text.
  size_t Count(EventLevel level, const std::string& text) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(
        events_, [&](const auto& event) { return event.first == level && absl::StrContains(event.second, text); }));
  }
  void Await(EventLevel level, const std::string& text) const {
    const uint64_t deadline = NowNanos() + 60'000'000'000;
    while (Count(level, text) == 0 && NowNanos() < deadline) std::this_thread::yield();
    EXPECT_GT(Count(level, text), 0u) << text;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<EventLevel, std::string>> events_;
};

class EventTest : public testing::Test {
 protected:
  EventTest() { options_.database.on_event = events_.function(); }
  void Open() {
    auto cluster = DurableCluster::Open(disk_, HistoryTables(), options_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  Database& database() { return cluster_->database(); }

  const Disk disk_ = NewDisk();
  Events events_;
  DurableOptions options_;
  std::unique_ptr<DurableCluster> cluster_;
};

TEST_F(EventTest, TellsOfRecoveryAndNothingWhileAllIsWell) {
  Open();
  for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(RunStep(database(), 1, 0, n).ok());
  ASSERT_TRUE(database().Checkpoint().ok());
  cluster_.reset();
  EXPECT_EQ(events_.size(), 0u) << "a new database";
  Open();
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_.Count(EventLevel::kInfo, "/data: recovered "), 1u);
  EXPECT_EQ(events_.Count(EventLevel::kInfo, "from checkpoint 1 and "), 1u);
}

TEST_F(EventTest, TellsOfDamage) {
  Open();
  for (int checkpoint = 0; checkpoint < 2; ++checkpoint) {
    ASSERT_TRUE(RunStep(database(), 1, 0, static_cast<uint64_t>(checkpoint + 1)).ok());
    ASSERT_TRUE(database().Checkpoint().ok());
  }
  cluster_.reset();
  const log::CheckpointDescription newest = log::ReadManifest(*disk_, "/data")->checkpoints.front();
  const std::string path = log::CheckpointDirectory("/data", newest.id) + "/" + newest.files.front().name;
  ASSERT_TRUE(disk_->FlipRandomBit(path, 4096, 4096 + 64).ok());
  Open();
  EXPECT_EQ(events_.Count(EventLevel::kWarning, "made from checkpoint 1 and the log, so nothing is lost"), 1u);
  EXPECT_EQ(events_.Count(EventLevel::kWarning, path), 1u);
}

TEST_F(EventTest, TellsOfAutomaticCheckpoints) {
  options_.database.checkpoint_every = absl::Milliseconds(1);
  Open();
  ASSERT_TRUE(RunStep(database(), 1, 0, 1).ok());
  events_.Await(EventLevel::kInfo, "/data: a checkpoint was taken in ");
  disk_->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = "/checkpoint-"});
  ASSERT_TRUE(RunStep(database(), 1, 0, 2).ok());
  events_.Await(EventLevel::kError, "/data: an automatic checkpoint failed, and will be tried again: ");
}

TEST_F(EventTest, TellsOfAFullDiskOnceAndOfItsEnd) {
  Open();
  disk_->SetCapacity(0);
  uint64_t n = 1;
  Status refused;
  while (refused.ok()) refused = RunStep(database(), 1, 0, n), n += refused.ok() ? 1 : 0;
  ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  events_.Await(EventLevel::kError, "/data: the log cannot be written: ");
  EXPECT_EQ(events_.size(), 1u);
  disk_->SetCapacity(UINT64_MAX);
  events_.Await(EventLevel::kInfo, "/data: the log can be written again");
  EXPECT_EQ(events_.size(), 2u);
}

// Nodes 0 and 1 own rows, node 2 is a client. Node 1 has changed rows of node 0, so it has joined it; node 2 has only
// started.
class EventOfDeathTest : public testing::Test {
 protected:
  static constexpr int kNodes = 3;
  static constexpr rdma::NodeId kClient = 2;

  void SetUp() override {
    for (rdma::NodeId node = 0; node < kNodes; ++node) Open(node);
    std::vector<std::thread> threads;
    for (auto& database : databases_) threads.emplace_back([&] { EXPECT_TRUE(database->Start().ok()); });
    for (std::thread& thread : threads) thread.join();
    const Table& rows = *databases_[1]->FindTable("rows");
    const Status inserted = databases_[1]->Run([&](BlockingTransaction& t) { return t.Insert(rows, 1, uint64_t{1}); });
    ASSERT_TRUE(inserted.ok()) << inserted;
    for (const Events& events : events_) EXPECT_EQ(events.size(), 0u);
  }
  void Open(rdma::NodeId node) {
    auto database = Database::Open(fabric_.get(), node, {.data_nodes = 2, .on_event = events_[node].function()});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->CreateTable(HashTable("rows")).ok());
    databases_[node] = *std::move(database);
  }
  // Each node has probably looked at the others: more often than it has to be told of one death.
  static void AwaitLooks() { SleepForNanos(100'000'000); }
  // `at` has been told so often that `node` was lost, and of nothing else.
  void ExpectTold(rdma::NodeId at, rdma::NodeId node, size_t times) {
    const std::string text = absl::StrCat("node ", at, ": node ", node, " has left or is lost");
    events_[at].Await(EventLevel::kWarning, text);
    AwaitLooks();
    EXPECT_EQ(events_[at].Count(EventLevel::kWarning, text), times);
    EXPECT_EQ(events_[at].size(), times);
  }

  std::array<Events, kNodes> events_;
  const std::unique_ptr<rdma::ShmFabric> fabric_ =
      rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{64} << 20}).value();
  std::array<std::unique_ptr<Database>, kNodes> databases_;
};

TEST_F(EventOfDeathTest, IsToldByTheSurvivors) {
  fabric_->Kill(1);
  ExpectTold(0, 1, 1);
  EXPECT_EQ(events_[0].Count(EventLevel::kWarning, "its rows are unavailable"), 1u);
  ExpectTold(kClient, 1, 1);
}

TEST_F(EventOfDeathTest, OfAClientThatHeldNothingIsTold) {
  fabric_->Kill(kClient);
  ExpectTold(0, kClient, 1);
  EXPECT_EQ(events_[0].Count(EventLevel::kWarning, "its rows are unavailable"), 0u);
  ExpectTold(1, kClient, 1);
}

TEST_F(EventOfDeathTest, IsToldOfEachLoss) {
  for (size_t times = 1; times <= 3; ++times) {
    databases_[kClient].reset();
    Open(kClient);  // in the third round it is back before it starts
    EXPECT_TRUE(times == 3 || databases_[kClient]->Start().ok());
    ExpectTold(0, kClient, times);
    ExpectTold(1, kClient, times);
  }
}

TEST_F(EventOfDeathTest, IsNotToldAfterClose) {
  ASSERT_TRUE(databases_[0]->Close().ok());
  databases_[1].reset();
  // The node that has closed still repairs what the other one left: then it would have told of it.
  Peers& peers = *databases_[0]->state().peers;
  const uint64_t deadline = NowNanos() + 60'000'000'000;
  while (peers.phase(1) != Peers::Phase::kStranger && NowNanos() < deadline) std::this_thread::yield();
  EXPECT_EQ(peers.phase(1), Peers::Phase::kStranger);
  EXPECT_EQ(events_[0].size(), 0u);
}

}  // namespace event_test
}  // namespace gannet::txn
