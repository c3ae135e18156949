// Database::Close: when it is refused, and what is refused after it, with a directory and without.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/coro/task.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "rdma/fabric.h"
#include "rdma/relay.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "txn/database.h"
#include "txn/run/database_state.h"
#include "txn/run/run_sessions.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace close_test {

class CloseTest : public testing::TestWithParam<bool> {
 protected:
  CloseTest() : fabric_(rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{256} << 20}).value()) {
    database_ = Database::Open(fabric_.get(), 0, Options()).value();
    rows_ = database_->CreateTable({.name = "rows", .payload_bytes = sizeof(uint64_t)}).value();
    EXPECT_TRUE(database_->Start().ok());
  }

  DatabaseOptions Options() const {
    DatabaseOptions options;
    if (!GetParam()) return options;
    options.directory = "/data";
    options.create_if_missing = true;
    options.log_segment_bytes = uint64_t{1} << 20;
    options.files = disk_;
    return options;
  }
  Status Insert(Session& session, uint64_t key) {
    const auto body = [&](Transaction& t) -> coro::Task<Status> { co_return t.Insert(*rows_, key, key); };
    return session.RunBlocking(body);
  }

  const std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<Database> database_;
  const Table* rows_ = nullptr;
};

TEST_P(CloseTest, AnOpenSessionIsNamedAndNothingIsClosed) {
  std::unique_ptr<Session> one = database_->OpenSession().value();
  std::unique_ptr<Session> two = database_->OpenSession().value();
  Status status = database_->Close();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("2 sessions are open"), std::string::npos) << status;
  two = nullptr;
  status = database_->Close();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("1 session is open"), std::string::npos) << status;
  EXPECT_TRUE(Insert(*one, 1).ok()) << "it goes on as before";
  EXPECT_TRUE(database_->OpenSession().ok());
  one = nullptr;
  status = database_->Close();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(CloseTest, ARunThatIsUnderWayIsNamedAndGoesOn) {
  Status closed;
  const Status ran = database_->Run([&](BlockingTransaction& t) {
    closed = database_->Close();
    return t.Insert(*rows_, uint64_t{1}, uint64_t{1});
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
  EXPECT_TRUE(ran.ok()) << ran;
  closed = database_->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

TEST_P(CloseTest, ACreateIndexThatIsUnderWayIsNamedAndGoesOn) {
  EXPECT_TRUE(database_->Run([&](BlockingTransaction& t) { return t.Insert(*rows_, uint64_t{1}, uint64_t{1}); }).ok());
  Status closed;
  const auto key_and_close = [&](const index::Key& key, std::span<const std::byte>) {
    closed = database_->Close();
    return std::optional<index::OwnedKey>(key);
  };
  const Status made = database_->CreateIndex({.name = "again", .table = "rows", .function = key_and_close}).status();
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
  EXPECT_EQ(std::string(closed.message()),
            "Database::Close: Database::CreateIndex is in progress; let it return first");
  closed = database_->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

TEST_P(CloseTest, NothingBeginsAfterIt) {
  EXPECT_TRUE(database_->Run([&](BlockingTransaction& t) { return t.Insert(*rows_, uint64_t{1}, uint64_t{1}); }).ok());
  for (int times = 0; times < 2; ++times) {
    const Status closed = database_->Close();
    EXPECT_TRUE(closed.ok()) << closed;
    const Status opened = database_->OpenSession().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
    const Status ran = database_->Run([](BlockingTransaction&) { return absl::OkStatus(); });
    EXPECT_TRUE(absl::IsFailedPrecondition(ran)) << ran;
    for (const Status& late :
         {database_->Checkpoint(), database_->Backup("/copy"), database_->SetClaimRanges("rows", {})}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
      EXPECT_NE(late.message().find("open it again"), std::string::npos) << late;
    }
  }
  EXPECT_EQ(database_->FindTable("rows"), rows_) << "what only looks goes on";
}

// A node that stops before the last epoch is durable everywhere does not help the others to make it so.
TEST(CloseTogetherTest, TheLastCommitsOfEachNodeBecomeDurable) {
  constexpr int kNodes = 3;
  const auto disk = std::make_shared<log::FaultyFileSystem>(2);
  DurableOptions options{.nodes = kNodes};
  options.database.durability = DurabilityMode::kAsync;
  for (uint64_t round = 0; round < 30; ++round) {
    auto cluster = DurableCluster::Open(disk, {HashTable("rows", Placement::ByHash())}, options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    uint64_t rows = 0;
    const Status counted = (*cluster)->database().Run([&](BlockingTransaction& t) -> Status {
      uint64_t value = 0;
      for (rows = 0; rows < round; ++rows) {
        if (Status read = t.Get((*cluster)->table("rows"), rows, &value); !read.ok()) return read;
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(counted.ok()) << "row " << rows << ": " << counted;
    const int last = static_cast<int>(round % kNodes);
    const Status wrote = (*cluster)->database(last).Run(
        [&](BlockingTransaction& t) { return t.Insert((*cluster)->table("rows", last), round, round); });
    ASSERT_TRUE(wrote.ok()) << wrote;
    const Status closed = (*cluster)->Close();
    ASSERT_TRUE(closed.ok()) << "round " << round << ": " << closed;
  }
}

// Lets the disk of node 0 fail, and inserts rows until its log has noticed.
void BreakLogOfFirst(log::FaultyFileSystem* disk, DurableCluster* cluster) {
  disk->Schedule({.times = UINT64_MAX, .path_contains = "node-0"});
  Database& broken = cluster->database(0);
  for (uint64_t key = 0; broken.log_health().ok(); ++key) {
    const Status wrote = broken.Run([&](BlockingTransaction& t) { return t.Insert(cluster->table("rows"), key, key); });
    // The log may break at any moment.
    ASSERT_TRUE(wrote.ok() || !broken.log_health().ok()) << wrote;
  }
}

// What a node has last becomes durable only with the logs of all nodes. A node does not wait for one whose disk fails.
TEST(CloseTogetherTest, ABrokenLogOfAnotherNodeIsNamed) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(3);
  DurableOptions options{.nodes = 2};
  options.database.durability = DurabilityMode::kAsync;
  auto cluster = DurableCluster::Open(disk, {HashTable("rows", Placement::ByHash())}, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  BreakLogOfFirst(disk.get(), cluster->get());
  std::thread other([&] { (*cluster)->database(0).Close().IgnoreError(); });
  const Status closed = (*cluster)->database(1).Close();
  other.join();
  EXPECT_TRUE(absl::IsUnavailable(closed)) << closed;
  EXPECT_NE(closed.message().find("the log of node 0 is broken"), std::string_view::npos) << closed;
}

// The log would try its disk again a little later only, and the other node would not wait for it.
TEST(CloseTogetherTest, ALogWhoseDiskWorksAgainIsNotBroken) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(3);
  DurableOptions options{.nodes = 2};
  options.database.durability = DurabilityMode::kAsync;
  auto cluster = DurableCluster::Open(disk, {HashTable("rows", Placement::ByHash())}, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  BreakLogOfFirst(disk.get(), cluster->get());
  disk->Heal();
  const Status closed = (*cluster)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

// A node with a broken log cannot help the others to make anything durable, so it does not wait until they close, too.
// (For a node that is closing others wait 10 s.)
TEST(CloseTogetherTest, ANodeWithABrokenLogDoesNotWaitForOthers) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(5);
  DurableOptions options{.nodes = 2};
  options.database.durability = DurabilityMode::kAsync;
  auto cluster = DurableCluster::Open(disk, {HashTable("rows", Placement::ByHash())}, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  BreakLogOfFirst(disk.get(), cluster->get());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE((*cluster)->database(0).Close().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(9));
}

// A channel whose verbs to other nodes fail as long as `*loses`.
class LosingChannel final : public rdma::RelayChannel {
 public:
  LosingChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
                const std::atomic<bool>* loses)
      : rdma::RelayChannel(std::move(inner), memory, capabilities), loses_(loses) {}

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    const auto is_elsewhere = [this](const rdma::Operation& each) { return each.remote.node() != node(); };
    if (*loses_ && std::ranges::any_of(operations, is_elsewhere)) {
      completion->status = absl::UnavailableError("lost by the test");
      return true;
    }
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    return Complete(RelayCall(call, completion), completion);
  }

 private:
  coro::Task<Status> Relay(std::span<rdma::Operation> operations) { co_return co_await inner().Post(operations); }
  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    co_return bytes.status();
  }

  const std::atomic<bool>* loses_;
};

TEST(CloseTogetherTest, ASetClaimRangesThatIsUnderWayIsNamedAndGoesOn) {
  LossPlan plan;
  const DurableOptions options{
      .nodes = 2, .wrap = [&plan](rdma::Fabric* inner) { return std::make_unique<LossyFabric>(inner, &plan); }};
  auto cluster = DurableCluster::Open(
      nullptr, {{.name = "rows", .index = IndexKind::kDex, .payload_bytes = sizeof(uint64_t)}}, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database(0);
  Status closed;
  plan.loss = Loss::kNothing;
  plan.when_fired = [&] { closed = database.Close(); };
  plan.channel = &database.state().run_sessions->Borrow()->session().channel();  // this thread's next call takes it
  const Status set = database.SetClaimRanges("rows", {{.first = index::OwnedKey(index::Key(0)), .node = 1}});
  EXPECT_TRUE(set.ok()) << set;
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
  EXPECT_EQ(std::string(closed.message()),
            "Database::Close: Database::SetClaimRanges is in progress; let it return first");
  closed = (*cluster)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

// The nodes live, so their logs go on when they reach each other again. A close that begins in between must neither
// fail nor make the other nodes fail.
TEST(CloseTogetherTest, LostMessagesBreakNoLog) {
  constexpr int kNodes = 3;
  std::atomic<bool> loses{false};
  const auto disk = std::make_shared<log::FaultyFileSystem>(4);
  DurableOptions options{.nodes = kNodes};
  options.database.durability = DurabilityMode::kAsync;
  options.wrap = [&loses](rdma::Fabric* inner) -> std::unique_ptr<rdma::Fabric> {
    const rdma::Capabilities& capabilities = inner->capabilities();
    return std::make_unique<rdma::RelayFabric>(
        inner, capabilities, [&](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
          return std::make_unique<LosingChannel>(std::move(channel), memory, capabilities, &loses);
        });
  };
  auto cluster = DurableCluster::Open(disk, {HashTable("rows", Placement::ByHash())}, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& writer = (*cluster)->database(2);
  // Commits until one is not durable when the messages begin to be lost.
  for (uint64_t key = 0;; ++key) {
    while (!writer.log_health().ok()) std::this_thread::yield();
    const Status wrote =
        writer.Run([&](BlockingTransaction& t) { return t.Insert((*cluster)->table("rows", 2), key, key); });
    ASSERT_TRUE(wrote.ok() || absl::IsUnavailable(wrote)) << wrote;
    loses = true;
    while (writer.log_health().ok()) std::this_thread::yield();
    if (writer.durable_epoch() < writer.logged_epoch()) break;
    loses = false;
  }
  std::thread healer([&loses] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    loses = false;
  });
  const Status closed = (*cluster)->Close();
  healer.join();
  EXPECT_TRUE(closed.ok()) << closed;
}

INSTANTIATE_TEST_SUITE_P(, CloseTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "WithADirectory" : "WithoutADirectory"; });

}  // namespace close_test
}  // namespace gannet::txn
