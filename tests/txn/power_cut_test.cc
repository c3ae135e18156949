// Power cuts in the middle of the work of several threads or nodes: acknowledged transactions survive; others survive
// whole or not at all.
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace power_cut_test {

// Waits until `count` has grown by `more`, or a worker has failed and left.
void AwaitMore(const std::atomic<uint64_t>& count, uint64_t more) {
  const uint64_t target = count.load() + more;
  while (count.load() < target && !testing::Test::HasFailure()) std::this_thread::yield();
}

// Threads work, and from time to time the test checks what a power cut would leave.
void CrashWhileWorking(uint64_t seed, const DatabaseOptions& options) {
  constexpr uint64_t kWorkers = 3;
  constexpr int kCopies = 6;
  const Disk disk = NewDisk(seed);
  auto cluster = DurableCluster::Open(disk, HistoryTables(), {.database = options});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  std::array<std::atomic<uint64_t>, kWorkers> acknowledged{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (uint64_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      for (uint64_t n = 1; !stop.load(); ++n) {
        const Status status = RunStep(database, seed, w, n);
        ASSERT_TRUE(status.ok()) << status;
        acknowledged[w].store(n);
      }
    });
  }
  struct Copy {
    std::array<uint64_t, kWorkers> acknowledged;
    Disk disk;
  };
  std::vector<Copy> copies;
  for (int i = 0; i < kCopies; ++i) {
    AwaitMore(acknowledged[0], 20);
    Copy copy;
    for (uint64_t w = 0; w < kWorkers; ++w) copy.acknowledged[w] = acknowledged[w].load();
    copy.disk = disk->CrashedCopy(seed * 100 + static_cast<uint64_t>(i));
    copies.push_back(std::move(copy));
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();
  ASSERT_TRUE((*cluster)->Close().ok());
  for (const Copy& copy : copies) {
    std::array<uint64_t, kWorkers> least = copy.acknowledged;
    // The second round comes after a crash during or after the recovery.
    for (int again = 0; again < 2; ++again) {
      auto survivor = DurableCluster::Open(copy.disk, HistoryTables());
      ASSERT_TRUE(survivor.ok()) << survivor.status();
      for (uint64_t w = 0; w < kWorkers; ++w) {
        least[w] = ExpectPrefix(ReadState((*survivor)->database(), w), seed, w, least[w]);
        ASSERT_TRUE(RunStep((*survivor)->database(), seed, w, ++least[w]).ok());
      }
      copy.disk->PowerOff();
      survivor->reset();
      copy.disk->PowerOn();
    }
  }
}

TEST(PowerCutTest, AcknowledgedTransactionsSurviveAPowerCut) {
  for (uint64_t seed = 1; seed <= 5; ++seed) CrashWhileWorking(seed, {});
}

TEST(PowerCutTest, AlsoBesideCheckpoints) {
  for (uint64_t seed = 11; seed <= 15; ++seed) {
    CrashWhileWorking(seed, {.checkpoint_every = absl::Milliseconds(5)});
  }
}

TEST(PowerCutTest, AlsoBesideCheckpointsThatTheSizeOfTheLogCauses) {
  for (uint64_t seed = 21; seed <= 25; ++seed) CrashWhileWorking(seed, {.checkpoint_log_least_bytes = 32 << 10});
}

// The power fails at each operation that changes a file, from the first start in an empty directory on: the result can
// be opened.
void CutAtEachOperation(int nodes, uint64_t stride) {
  DurableOptions options{.nodes = nodes};
  options.database.durable_within = absl::Milliseconds(20);  // for commits that wait for a disk that is off
  bool cut = true;
  for (uint64_t at = 0; cut; at += stride) {
    const Disk disk = NewDisk(1000 + at);
    std::atomic<uint64_t> passed{0};
    disk->SetOptions({.before = [&](log::DiskOperation operation, const std::string&) {
      const bool reads = operation == log::DiskOperation::kOpen || operation == log::DiskOperation::kRead ||
                         operation == log::DiskOperation::kList;
      if (!reads && passed.fetch_add(1) == at) disk->PowerOff();
    }});
    uint64_t acknowledged = 0;
    for (int run = 0; run < 2; ++run) {
      auto cluster = DurableCluster::Open(disk, HistoryTables(), options);
      while (cluster.ok() && acknowledged < 3 * static_cast<uint64_t>(run + 1)) {
        if (!RunStep((*cluster)->database(), 8, 0, acknowledged + 1).ok()) break;
        ++acknowledged;
      }
      if (cluster.ok()) (*cluster)->Close().IgnoreError();
    }
    disk->SetOptions({});
    cut = passed.load() > at;
    if (cut) disk->PowerOn();
    for (int again = 0; again < 2; ++again) {
      auto survivor = DurableCluster::Open(disk, HistoryTables(), {.nodes = nodes});
      ASSERT_TRUE(survivor.ok()) << "after " << at << ": " << survivor.status();
      acknowledged = ExpectPrefix(ReadState((*survivor)->database(), 0), 8, 0, acknowledged);
      ASSERT_TRUE(RunStep((*survivor)->database(), 8, 0, ++acknowledged).ok());
    }
  }
}

TEST(PowerCutTest, AtEachFileOperation) {
  CutAtEachOperation(1, 1);
}

// --- Several nodes ---

TEST(PowerCutTest, AtFileOperationsOfTwoNodes) {
  CutAtEachOperation(2, 5);
}

constexpr uint64_t kAccounts = 32;
constexpr uint64_t kStartBalance = 1000;

std::vector<TableOptions> BankTables() {
  return {HashTable("accounts", Placement::ByHash()), OrderedTable("receipts", Placement::ByHash())};
}

// Moves money between two accounts on any nodes and writes a receipt; sometimes removes an old receipt.
coro::Task<Status> Transfer(Transaction& t, const Table& accounts, const Table& receipts, uint64_t from, uint64_t to,
                            uint64_t amount, uint64_t receipt) {
  uint64_t a;
  uint64_t b;
  StatusOr<RecordHandle> ha = co_await t.GetForUpdate(accounts, from, &a);
  if (!ha.ok()) co_return ha.status();
  StatusOr<RecordHandle> hb = co_await t.GetForUpdate(accounts, to, &b);
  if (!hb.ok()) co_return hb.status();
  Status status = t.Update(*ha, a - amount);
  if (status.ok()) status = t.Update(*hb, b + amount);
  if (status.ok()) status = t.Insert(receipts, receipt, amount);
  if (status.ok() && receipt % 4 == 0) status = co_await t.Remove(receipts, receipt - 2);
  co_return status;
}

void ExpectBank(DurableCluster& cluster, const std::array<uint64_t, 2>& acknowledged,
                std::array<uint64_t, 2>* recovered) {
  auto session = cluster.database(0).OpenSession();
  ASSERT_TRUE(session.ok());
  const Status status = RunBlockingBody(**session, [&](BlockingTransaction& t) -> Status {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kAccounts; ++i) {
      uint64_t balance;
      GANNET_RETURN_IF_ERROR(t.Get(cluster.table("accounts"), i, &balance));
      sum += balance;
    }
    EXPECT_EQ(sum, kAccounts * kStartBalance);
    for (uint64_t node = 0; node < 2; ++node) {
      ScanRows rows;
      const uint64_t base = node * 1'000'000;
      GANNET_RETURN_IF_ERROR(t.Scan(cluster.table("receipts"), {.from = base, .to = base + 999'999}, &rows));
      const uint64_t last = rows.empty() ? 0 : rows.key(rows.size() - 1).integer() - base;
      EXPECT_GE(last, acknowledged[node]);
      std::vector<uint64_t> expected;  // the balances according to the receipts 1..last
      for (uint64_t n = 1; n <= last; ++n) {
        if (n % 4 != 2 || n + 2 > last) expected.push_back(base + n);
      }
      std::vector<uint64_t> got;
      for (size_t i = 0; i < rows.size(); ++i) got.push_back(rows.key(i).integer());
      EXPECT_EQ(got, expected);
      (*recovered)[node] = last;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
}

// The rows are also in checkpoints: a load is not in the log.
void LoadBank(DurableCluster& cluster) {
  for (int node = 0; node < 2; ++node) {
    auto session = cluster.database(node).OpenSession();
    ASSERT_TRUE(session.ok());
    const Table& accounts = cluster.table("accounts", node);
    BulkLoader loader(session->get(), &accounts);
    for (uint64_t i = 0; i < kAccounts; ++i) {
      if (accounts.OwnerOf(i, static_cast<rdma::NodeId>(node)) != node) continue;
      ASSERT_TRUE(loader.Add(i, kStartBalance).ok());
    }
    ASSERT_TRUE(loader.Finish().ok());
  }
  for (int node = 0; node < 2; ++node) {
    const Status taken = cluster.database(node).Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
  }
}

void TransferUntil(const std::atomic<bool>& stop, DurableCluster& cluster, int node, uint64_t seed,
                   std::atomic<uint64_t>* acknowledged) {
  auto session = cluster.database(node).OpenSession();
  ASSERT_TRUE(session.ok());
  Random random(seed * 2 + static_cast<uint64_t>(node));
  const Table& accounts = cluster.table("accounts", node);
  const Table& receipts = cluster.table("receipts", node);
  for (uint64_t n = 1; !stop.load(); ++n) {
    const uint64_t from = random.Below(kAccounts);
    const uint64_t to = (from + 1 + random.Below(kAccounts - 1)) % kAccounts;
    const uint64_t receipt = static_cast<uint64_t>(node) * 1'000'000 + n;
    const uint64_t amount = random.Below(5);
    const Status status = (*session)->RunBlocking(
        [&](Transaction& t) { return Transfer(t, accounts, receipts, from, to, amount, receipt); });
    ASSERT_TRUE(status.ok()) << status;
    acknowledged->store(n);
  }
}

void WorkAndCrash(uint64_t seed, bool checkpoints) {
  const Disk disk = NewDisk(seed);
  DurableOptions options{.nodes = 2};
  if (checkpoints) options.database.checkpoint_every = absl::Milliseconds(10);
  auto cluster = DurableCluster::Open(disk, BankTables(), options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_NO_FATAL_FAILURE(LoadBank(**cluster));
  std::array<std::atomic<uint64_t>, 2> acknowledged{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (int node = 0; node < 2; ++node) {
    std::atomic<uint64_t>* const mine = &acknowledged[static_cast<size_t>(node)];
    workers.emplace_back([&, node, mine] { TransferUntil(stop, **cluster, node, seed, mine); });
  }
  std::vector<std::pair<std::array<uint64_t, 2>, Disk>> copies;
  for (uint64_t i = 0; i < 4; ++i) {
    AwaitMore(acknowledged[i % 2], 15);
    const std::array<uint64_t, 2> least{acknowledged[0].load(), acknowledged[1].load()};
    copies.emplace_back(least, disk->CrashedCopy(seed * 10 + i));
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();
  const Status closed = (*cluster)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
  for (auto& [least, copy] : copies) {
    for (int again = 0; again < 2; ++again) {  // also after a crash that follows the recovery
      auto survivor = DurableCluster::Open(copy, BankTables(), {.nodes = 2});
      ASSERT_TRUE(survivor.ok()) << survivor.status();
      ExpectBank(**survivor, least, &least);
      copy->PowerOff();
      survivor->reset();
      copy->PowerOn();
    }
  }
}

TEST(PowerCutTest, TransactionsOverNodesSurviveWholeOrNotAtAll) {
  for (uint64_t seed = 1; seed <= 4; ++seed) WorkAndCrash(seed, false);
}

TEST(PowerCutTest, AlsoOverNodesBesideCheckpoints) {
  for (uint64_t seed = 21; seed <= 23; ++seed) WorkAndCrash(seed, true);
}

}  // namespace power_cut_test
}  // namespace gannet::txn
