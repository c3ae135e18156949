// Compute nodes that come and go (DEX, VLDB'24, sections 4 and 8.3): nodes without rows of their own claim the leaves
// of their ranges at the data node, get parts of others' ranges while transactions run, and leave.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "rdma/statistics.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace compute_nodes_test {

constexpr uint64_t kRows = 2000;  // even keys
constexpr int64_t kBalance = 100;

struct Account {
  int64_t balance = 0;
};

// Node 0 has the rows. The others come, work, and leave.
class ComputeNodes {
 public:
  ComputeNodes() : simulation_({.seed = 3}) {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = kNodes;
    options.bytes_per_node = uint64_t{64} << 20;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    Come(0);
    On(0, [this] {
      for (uint64_t i = 0; i < kRows; ++i) {
        const Status inserted = nodes_[0].database->Run([&](BlockingTransaction& t) -> Status {
          return t.Insert(TableOf(0), 2 * i, Account{.balance = kBalance});
        });
        ASSERT_TRUE(inserted.ok()) << inserted;
      }
    });
  }
  ~ComputeNodes() {
    for (Node& node : nodes_) node.database.reset();
  }

  void Come(int id) {
    On(id, [this, id] {
      auto opened = Database::Open(fabric_.get(), static_cast<rdma::NodeId>(id),
                                   {.data_nodes = 1, .read_path = ReadPathPolicy::kOneSided});
      ASSERT_TRUE(opened.ok()) << opened.status();
      const auto table = (*opened)->CreateTable(
          {.name = "rows", .index = IndexKind::kDex, .payload_bytes = sizeof(Account), .expected_rows = kRows});
      ASSERT_TRUE(table.ok()) << table.status();
      const Status started = (*opened)->Start();
      ASSERT_TRUE(started.ok()) << started;
      At(id).database = *std::move(opened);
    });
  }
  // These nodes get equal ranges, and the last of them says so to the data node.
  void Divide(const std::vector<int>& among) {
    std::vector<index::ClaimRange> ranges;
    for (size_t i = 0; i < among.size(); ++i) {
      Node& node = At(among[i]);
      node.first = 2 * (i * kRows / among.size());
      node.end = 2 * ((i + 1) * kRows / among.size());
      ranges.push_back({.first = index::OwnedKey(node.first), .node = static_cast<rdma::NodeId>(among[i])});
    }
    On(among.back(), [&] {
      const Status set = At(among.back()).database->SetClaimRanges("rows", ranges);
      ASSERT_TRUE(set.ok()) << set;
    });
  }
  void Begin(int id) {
    At(id).is_working = true;
    for (uint64_t i = 0; i < 2; ++i) {
      At(id).threads.push_back(
          simulation_.StartOn(static_cast<rdma::NodeId>(id), "client", [this, id, i] { Work(id, 7 * i + ++seed_); }));
    }
  }
  void End(int id) {
    At(id).is_working = false;
    for (Runtime::Thread* const thread : std::exchange(At(id).threads, {})) simulation_.Join(thread);
  }
  void Leave(int id) {
    On(id, [this, id] {
      const Status closed = At(id).database->Close();
      EXPECT_TRUE(closed.ok()) << closed;
      At(id).database.reset();
    });
  }

  // The node reads all rows of its range, and claims their leaves; those that it has lost, after a pause.
  void ReadAll(int id) {
    for (int i = 0; i < 2; ++i) {
      SleepForNanos(5'000'000);
      On(id, [&] { EXPECT_GT(Count(id, At(id).first, At(id).end - 1), 0u); });
    }
  }
  // READs and calls by which the node looks for 100 absent rows of its range.
  uint64_t VerbsOfLookups(int id) {
    uint64_t verbs = 0;
    On(id, [&] {
      const auto session = At(id).database->OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      const auto look = [&](uint64_t i) {
        const uint64_t key = At(id).first + (At(id).end - At(id).first) / 200 * 2 * i + 1;
        const Status read = (*session)->RunBlocking([&, key](Transaction& t) -> coro::Task<Status> {
          Account account;
          Status got = co_await t.Get(TableOf(id), key, &account);
          co_return got;
        });
        EXPECT_TRUE(absl::IsNotFound(read)) << read;
      };
      look(50);  // renews the lease, if it is over
      const rdma::VerbCounters before = (*session)->channel().counters();
      for (uint64_t i = 0; i < 100; ++i) look(i);
      const rdma::VerbCounters used = (*session)->channel().counters() - before;
      verbs = used.reads + used.calls;
    });
    return verbs;
  }
  int64_t Sum() {
    int64_t sum = 0;
    On(0, [&] { Count(0, 0, 2 * kRows, &sum); });
    return sum;
  }

  uint64_t committed() const { return committed_; }
  uint64_t longest_nanos() const { return longest_nanos_; }

 private:
  static constexpr int kNodes = 4;

  struct Node {
    std::unique_ptr<Database> database;
    uint64_t first = 0;  // of its range
    uint64_t end = 0;
    bool is_working = false;
    std::vector<Runtime::Thread*> threads;
  };

  template <class Work>
  void On(int id, Work work) {
    simulation_.Join(simulation_.StartOn(static_cast<rdma::NodeId>(id), "work", work));
  }
  Node& At(int id) { return nodes_[static_cast<size_t>(id)]; }
  const Table& TableOf(int id) { return *At(id).database->FindTable("rows"); }

  // Rows, and the sum of their balances. On a thread of the node.
  size_t Count(int id, uint64_t from, uint64_t to, int64_t* sum = nullptr) {
    size_t n = 0;
    const Status scanned = At(id).database->Run([&](BlockingTransaction& t) -> Status {
      ScanRows rows;
      Status status = t.Scan(TableOf(id), {.from = from, .to = to}, &rows);
      n = rows.size();
      if (sum != nullptr) *sum = 0;
      for (size_t i = 0; i < n && sum != nullptr; ++i) *sum += rows.As<Account>(i).balance;
      return status;
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return n;
  }

  // Moves money between rows of the node's range, some of which go, and come back.
  void Work(int id, uint64_t seed) {
    Random random(seed);
    while (At(id).is_working) {
      const auto draw = [&] { return At(id).first + 2 * random.Below((At(id).end - At(id).first) / 2); };
      const uint64_t from = draw();
      const uint64_t to = draw();
      if (from == to) continue;
      const bool goes = random.Below(8) == 0;
      const uint64_t begin = NowNanos();
      const Status moved = At(id).database->Run([&](BlockingTransaction& t) -> Status {
        Account giver;
        Account taker;
        const Status read = t.Get(TableOf(id), from, &giver);
        if (absl::IsNotFound(read)) return t.Insert(TableOf(id), from, Account{});
        GANNET_RETURN_IF_ERROR(read);
        const Status found = t.Get(TableOf(id), to, &taker);
        if (absl::IsNotFound(found)) return absl::OkStatus();
        GANNET_RETURN_IF_ERROR(found);
        const int64_t amount = goes ? giver.balance : std::min<int64_t>(giver.balance, 1);
        GANNET_RETURN_IF_ERROR(t.Update(TableOf(id), to, Account{.balance = taker.balance + amount}));
        if (goes) return t.Remove(TableOf(id), from);
        return t.Update(TableOf(id), from, Account{.balance = giver.balance - amount});
      });
      EXPECT_TRUE(moved.ok()) << moved;
      longest_nanos_ = std::max(longest_nanos_, NowNanos() - begin);
      ++committed_;
    }
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::array<Node, kNodes> nodes_;
  uint64_t seed_ = 0;
  uint64_t committed_ = 0;
  uint64_t longest_nanos_ = 0;
};

TEST(ComputeNodesTest, ComeAndGoUnderLoad) {
  constexpr uint64_t kWhile = 20'000'000;  // virtual
  ComputeNodes nodes;
  nodes.Come(1);
  nodes.Divide({1});
  nodes.Begin(1);
  SleepForNanos(kWhile);
  for (int round = 0; round < 3; ++round) {
    // The paper's scale-out: a new node takes over a part of the keys.
    nodes.Come(2);
    nodes.Divide({1, 2});
    nodes.Begin(2);
    SleepForNanos(kWhile);
    nodes.Come(3);
    nodes.Divide({1, 3, 2});
    nodes.Begin(3);
    SleepForNanos(kWhile);
    // Scale-in. The others get the keys before it leaves, or after that.
    nodes.End(2);
    if (round % 2 == 0) nodes.Leave(2);
    nodes.Divide({1, 3});
    if (round % 2 == 1) nodes.Leave(2);
    SleepForNanos(kWhile);
    nodes.End(3);
    nodes.Leave(3);
    nodes.Divide({1});
    SleepForNanos(kWhile);
  }
  nodes.End(1);
  EXPECT_EQ(nodes.Sum(), static_cast<int64_t>(kRows) * kBalance);
  EXPECT_GT(nodes.committed(), 5000u);
  EXPECT_LT(nodes.longest_nanos(), 10'000'000u) << "some transaction waited for a move";
}

// A node that has come claims what it uses of its range, although another one had claimed it. What a node had that has
// left is claimed by those that get it. A leaf belongs to the range of its least key, so one of two ranges takes READs.
TEST(ComputeNodesTest, ClaimWhatTheyAreGiven) {
  constexpr uint64_t kLookupsOfALeaf = 5;
  ComputeNodes nodes;
  nodes.Come(1);
  nodes.Divide({1});
  EXPECT_GT(nodes.VerbsOfLookups(1), 50u);
  nodes.ReadAll(1);
  EXPECT_EQ(nodes.VerbsOfLookups(1), 0u);
  nodes.Come(2);
  nodes.Divide({1, 2});
  nodes.ReadAll(2);
  EXPECT_LE(nodes.VerbsOfLookups(2), kLookupsOfALeaf);
  EXPECT_EQ(nodes.VerbsOfLookups(1), 0u) << "it has lost none of what is still its own";
  nodes.Leave(2);
  nodes.Divide({1});
  nodes.ReadAll(1);
  EXPECT_EQ(nodes.VerbsOfLookups(1), 0u);
  nodes.Leave(1);
}

}  // namespace compute_nodes_test
}  // namespace gannet::txn
