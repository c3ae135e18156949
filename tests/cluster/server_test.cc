// Servers and clients of the library, each a process over one memory file, with a table of their own.
#include "cluster/server.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/thread.h"
#include "cluster/bare_client.h"
#include "cluster/bare_server.h"
#include "cluster/client.h"
#include "cluster/metrics_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/http_get.h"
#include "tests/rdma/forked.h"
#include "txn/database.h"

namespace gannet::cluster {
namespace server_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kServers = 2;
constexpr uint64_t kRows = 20;
constexpr absl::Duration kShort = absl::Milliseconds(50);

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    std::filesystem::remove(memory_);
    config_ = {.file = "c.toml", .memory_file = memory_, .client_slots = 2, .read_only_percent = 25};
    for (int id = 0; id < kServers; ++id) {
      config_.servers.push_back({.name = absl::StrCat("node ", id), .memory = uint64_t{16} << 20});
    }
  }
  ~ServerTest() override { std::filesystem::remove(memory_); }

  Patience WaitFor(absl::Duration at_most) const { return {.at_most = at_most, .stop = &stop_, .note = nullptr}; }

  // Row k lies on server k % kServers.
  static const txn::Table* CreateRows(txn::Database& database) {
    const txn::Placement by_remainder = {
        .owner = [](const index::Key& key,
                    int nodes) { return static_cast<rdma::NodeId>(key.integer() % static_cast<uint64_t>(nodes)); },
        .range_owner = [](const index::Key&, const index::Key&, int) { return txn::Placement::kSeveralNodes; }};
    auto table = database.CreateTable(
        {.name = "rows", .payload_bytes = sizeof(uint64_t), .expected_rows = kRows, .placement = by_remainder});
    GANNET_CHECK(table.ok(), "%s", table.status().ToString());
    return *table;
  }

  // Serves until the test is done with it, then ends as if it were killed.
  int Serve(int id, const rdma::Forked::Inside& inside) const {
    auto opened = Server::Open(config_, id, WaitFor(absl::Minutes(1)));
    GANNET_CHECK(opened.ok(), "%s", opened.status().ToString());
    Server* const server = opened->release();  // never destroyed
    const txn::Table* rows = CreateRows(server->database());
    Status done = server->Start();
    for (uint64_t row = static_cast<uint64_t>(id); row < kRows && done.ok(); row += kServers) {
      done = server->database().Run([&](txn::BlockingTransaction& t) { return t.Insert(*rows, row, row * row); });
    }
    GANNET_CHECK(done.ok(), "%s", done.ToString());
    server->SetReady();
    inside.SayReady();
    inside.AwaitEnd();
    return 0;
  }
  std::unique_ptr<rdma::Forked> StartServer(int id) const {
    return std::make_unique<rdma::Forked>([this, id](const rdma::Forked::Inside& inside) { return Serve(id, inside); });
  }

  const std::string memory_ = absl::StrCat("/dev/shm/gannet-server-test-", getpid(), "-",
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Config config_;
  std::atomic<bool> stop_{false};
};

// A server that runs transactions, too: how they reach the other server's rows is among its metrics.
TEST_F(ServerTest, MetricsTellHowOtherServersRowsAreReached) {
  const std::unique_ptr<rdma::Forked> other = StartServer(1);
  CallMeter meter;
  auto server = Server::Open(config_, 0, WaitFor(absl::Minutes(1)), &meter);
  ASSERT_TRUE(server.ok()) << server.status();
  txn::Database& database = (*server)->database();
  const txn::Table* rows = CreateRows(database);
  ASSERT_TRUE((*server)->Start().ok());
  auto metrics = MetricsEndpoint::Listen("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  (*metrics)->Show((*server)->bare(),
                   {.memory = [&] { return database.memory_statistics(); },
                    .load = [&] { return database.load_of(0); },
                    .paths = [&] { return database.path_statistics(); }},
                   meter);
  const auto look = [&] { return HttpGet((*metrics)->port(), "/metrics"); };
  EXPECT_THAT(look(), Not(HasSubstr("gannet_remote_accesses")));
  for (uint64_t i = 0; i < 100; ++i) {
    const Status read = database.Run([&](txn::BlockingTransaction& t) -> Status {
      uint64_t value = 0;
      const Status got = t.Get(*rows, i % kRows | 1, &value);
      return absl::IsNotFound(got) ? absl::OkStatus() : got;  // the other server may still load
    });
    ASSERT_TRUE(read.ok()) << read;
  }
  const std::string text = look();
  EXPECT_THAT(text,
              ContainsRegex("gannet_remote_accesses_total\\{table=\"rows\",kind=\"get\",path=\"one_sided\"\\} [1-9]"));
  EXPECT_THAT(text, ContainsRegex("gannet_remote_accesses_total\\{table=\"rows\",kind=\"get\",path=\"call\"\\} [1-9]"));
  EXPECT_THAT(text, ContainsRegex("gannet_remote_accesses_compared_total\\{table=\"rows\",kind=\"get\"\\} [1-9]"));
  EXPECT_THAT(text, HasSubstr("gannet_remote_access_estimated_seconds_total"));
  metrics->reset();
}

TEST_F(ServerTest, AClientWorksOnTheServersRowsUntilOneDies) {
  std::vector<std::unique_ptr<rdma::Forked>> servers;
  for (int id = 0; id < kServers; ++id) servers.push_back(StartServer(id));
  auto client = Client::Attach(config_, WaitFor(absl::Minutes(1)));
  ASSERT_TRUE(client.ok()) << client.status();
  txn::Database& database = (*client)->database();
  const txn::Table* rows = CreateRows(database);
  ASSERT_TRUE((*client)->Start().ok());
  EXPECT_EQ((*client)->slot(), 0);
  EXPECT_FALSE((*client)->OtherClients());
  // Start returned, so every row is there.
  const auto get = [&](uint64_t row) {
    uint64_t value = 0;
    const Status status = database.Run([&](txn::BlockingTransaction& t) { return t.Get(*rows, row, &value); });
    return status.ok() ? StatusOr<uint64_t>(value) : status;
  };
  for (uint64_t row = 0; row < kRows; ++row) {
    const StatusOr<uint64_t> value = get(row);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, row * row);
  }
  const Status updated = database.Run([&](txn::BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Update(*rows, 0, uint64_t{7}));
    return t.Update(*rows, 1, uint64_t{8});
  });
  EXPECT_TRUE(updated.ok()) << updated;
  EXPECT_TRUE((*client)->Explain(absl::NotFoundError("x")) == absl::NotFoundError("x")) << "all servers live";

  servers[1].reset();
  while ((*client)->fabric().Alive(1)) SleepForNanos(1'000'000);
  const Status gone = (*client)->Explain(get(1).status());
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("server 1 (node 1) of c.toml is gone, and its data with it"));
  EXPECT_EQ(get(0).value_or(0), 7u) << "the other server's rows are there";
  // It cannot come back beside processes that hold addresses in its old memory.
  const Status again = Server::Open(config_, 1, WaitFor(kShort)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  EXPECT_THAT(std::string(again.message()), HasSubstr("was in this cluster before"));
  client->reset();
}

TEST_F(ServerTest, WaitingEndsAndNamesTheMissingServers) {
  std::vector<std::string> notes;
  Patience patience = WaitFor(kShort);
  patience.note = [&](const std::string& line) { notes.push_back(line); };
  auto server = Server::Open(config_, 0, patience);
  ASSERT_TRUE(server.ok()) << server.status();
  const Status alone = (*server)->Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(alone)) << alone;
  EXPECT_THAT(std::string(alone.message()), HasSubstr("waited 50ms for server 1 (node 1) to come"));
  EXPECT_THAT(notes, ::testing::ElementsAre("waiting for server 1 (node 1) to come"));
  EXPECT_TRUE(absl::IsInvalidArgument(Server::Open(config_, kServers, patience).status()));
}

TEST_F(ServerTest, WhatWaitsIsStopped) {
  stop_ = true;
  auto client = BareClient::Open(config_, WaitFor(absl::Minutes(10)));
  ASSERT_TRUE(client.ok()) << client.status();
  const Status stopped = (*client)->TakeSlot([](rdma::NodeId) { return absl::InternalError("nobody is there"); });
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_THAT(std::string(stopped.message()), HasSubstr("server 0 (node 0), server 1 (node 1)"));
}

TEST_F(ServerTest, AClientTakesTheFirstFreeSlotAndIsToldIfThereIsNone) {
  config_.servers.resize(1);
  auto server = StartServer(0);
  server->AwaitReady();
  auto client = BareClient::Open(config_, WaitFor(absl::Minutes(1)));
  ASSERT_TRUE(client.ok()) << client.status();
  const auto taken = [](int free_from) {
    return [free_from](rdma::NodeId node) -> Status {
      return node < free_from ? absl::FailedPreconditionError("taken") : absl::OkStatus();
    };
  };
  const Status full = (*client)->TakeSlot(taken(3));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("all 2 client slots of c.toml are taken"));
  EXPECT_TRUE((*client)->TakeSlot(taken(2)).ok());
  EXPECT_EQ((*client)->slot(), 1);
}

}  // namespace server_test
}  // namespace gannet::cluster
