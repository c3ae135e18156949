// What was acknowledged survives; what was not, survives whole or not at all.
#include <atomic>
#include <map>
#include <thread>

#include "rdma/base/random.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace {

using Disk = std::shared_ptr<log::FaultyFileSystem>;

Disk NewDisk(uint64_t seed = 1) {
  return std::make_shared<log::FaultyFileSystem>(seed);
}

// --- One worker's history: its n-th transaction is always the same, so that any prefix can be told. ---

constexpr uint64_t kKeysPerWorker = 40;

// A worker's keys in the ordered table, and its counter in the hash table, after some prefix of its history.
struct WorkerState {
  uint64_t counter = 0;
  std::map<uint64_t, uint64_t> rows;
  friend bool operator==(const WorkerState&, const WorkerState&) = default;
};

enum class Action { kPut, kRemove };
struct Step3 {
  uint64_t key;
  Action action;
};

std::vector<Step3> StepsOf(uint64_t seed, uint64_t worker, uint64_t n) {
  Random random(seed * 1'000'003 + worker * 7919 + n);
  std::vector<Step3> steps;
  while (steps.size() < 3) {
    const uint64_t key = worker * 1000 + random.Below(kKeysPerWorker);
    bool again = false;
    for (const Step3& step : steps) again |= step.key == key;
    if (!again) steps.push_back({key, random.OneIn(3) ? Action::kRemove : Action::kPut});
  }
  return steps;
}

void Apply(uint64_t seed, uint64_t worker, uint64_t n, WorkerState* state) {
  state->counter = n;
  for (const Step3& step : StepsOf(seed, worker, n)) {
    if (step.action == Action::kPut) {
      state->rows[step.key] = n;
    } else {
      state->rows.erase(step.key);
    }
  }
}

Status RunStep(Database& database, uint64_t seed, uint64_t worker, uint64_t n) {
  const Table& counters = *database.FindTable("counters");
  const Table& rows = *database.FindTable("rows");
  return database.Run([&](BlockingTransaction& t) -> Status {
    uint64_t value;
    const Status found = t.Get(counters, worker, &value);
    const Status counted =
        absl::IsNotFound(found) ? t.Insert(counters, worker, n) : (found.ok() ? t.Update(counters, worker, n) : found);
    GANNET_RETURN_IF_ERROR(counted);
    for (const Step3& step : StepsOf(seed, worker, n)) {
      const Status present = t.Get(rows, step.key, &value);
      if (!present.ok() && !absl::IsNotFound(present)) return present;
      if (step.action == Action::kPut) {
        GANNET_RETURN_IF_ERROR(present.ok() ? t.Update(rows, step.key, n) : t.Insert(rows, step.key, n));
      } else if (present.ok()) {
        GANNET_RETURN_IF_ERROR(t.Remove(rows, step.key));
      }
    }
    return absl::OkStatus();
  });
}

std::vector<TableOptions> HistoryTables() {
  return {HashTable("counters"), OrderedTable("rows")};
}

WorkerState ReadState(Database& database, uint64_t worker) {
  WorkerState state;
  const Status status = database.Run([&](BlockingTransaction& t) -> Status {
    state = {};
    const Status found = t.Get(*database.FindTable("counters"), worker, &state.counter);
    if (!found.ok() && !absl::IsNotFound(found)) return found;
    ScanRows rows;
    GANNET_RETURN_IF_ERROR(
        t.Scan(*database.FindTable("rows"), {.from = worker * 1000, .to = worker * 1000 + 999}, &rows));
    for (size_t i = 0; i < rows.size(); ++i) state.rows[rows.key(i).integer()] = rows.As<uint64_t>(i);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return state;
}

// The state is that after some n >= `acknowledged` of the worker's transactions; returns n.
uint64_t ExpectPrefix(const WorkerState& state, uint64_t seed, uint64_t worker, uint64_t acknowledged) {
  EXPECT_GE(state.counter, acknowledged) << "worker " << worker;
  WorkerState expected;
  for (uint64_t n = 1; n <= state.counter; ++n) Apply(seed, worker, n, &expected);
  EXPECT_EQ(state.rows, expected.rows) << "worker " << worker << " after " << state.counter;
  return state.counter;
}

// --- ---

TEST(DurabilityTest, ClosingAndOpeningShowsTheSame) {
  const Disk disk = NewDisk();
  std::vector<TableOptions> tables = HistoryTables();
  tables.push_back({.name = "names",
                    .key_kind = index::KeyKind::kBytes,
                    .max_key_bytes = 40,
                    .index = IndexKind::kXStore,
                    .payload_bytes = 3000,
                    .variable_length = true});
  const std::string large(2500, 'x');
  for (int run = 0; run < 4; ++run) {
    auto cluster = DurableCluster::Open(disk, tables);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const uint64_t before = ExpectPrefix(ReadState(database, 0), 9, 0, 0);
    EXPECT_EQ(before, static_cast<uint64_t>(run) * 100);
    const Table& names = *database.FindTable("names");
    if (run > 0) {
      std::string read(2500, ' ');
      const Status status = database.Run([&](BlockingTransaction& t) {
        return t.Get(names, Key("the one that grew"), std::as_writable_bytes(std::span(read)));
      });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(read, large);
    } else {
      ASSERT_TRUE(database
                      .Run([&](BlockingTransaction& t) {
                        return t.Insert(names, Key("the one that grew"), std::as_bytes(std::span("small", 5)));
                      })
                      .ok());
      ASSERT_TRUE(database
                      .Run([&](BlockingTransaction& t) -> Status {
                        std::array<std::byte, 5> small;
                        auto handle = t.transaction().GetForUpdate(names, Key("the one that grew"), small);
                        if (!handle.value().ok()) return handle.value().status();
                        return t.transaction().Update(*handle.value(), std::as_bytes(std::span(large)), 0,
                                                      /*resize=*/true);
                      })
                      .ok());
    }
    for (uint64_t n = before + 1; n <= before + 100; ++n) {
      const Status status = RunStep(database, 9, 0, n);
      ASSERT_TRUE(status.ok()) << status;
    }
    for (int i = 0; i < run; ++i) ASSERT_TRUE(database.Checkpoint().ok());
    const Status closed = (*cluster)->Close();
    ASSERT_TRUE(closed.ok()) << closed;
  }
}

// Threads work, and every now and then we look at what a power cut would leave.
void CrashWhileWorking(uint64_t seed, absl::Duration checkpoint_every) {
  constexpr uint64_t kWorkers = 3;
  constexpr int kCopies = 6;
  const Disk disk = NewDisk(seed);
  auto cluster = DurableCluster::Open(disk, HistoryTables(), {.database = {.checkpoint_every = checkpoint_every}});
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
    const uint64_t target = acknowledged[0].load() + 20;
    while (acknowledged[0].load() < target) std::this_thread::yield();
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
    // Also after a crash during or after the recovery.
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

TEST(DurabilityTest, AcknowledgedTransactionsSurviveAPowerCut) {
  for (uint64_t seed = 1; seed <= 5; ++seed) CrashWhileWorking(seed, absl::ZeroDuration());
}

TEST(DurabilityTest, AlsoBesideCheckpoints) {
  for (uint64_t seed = 11; seed <= 15; ++seed) CrashWhileWorking(seed, absl::Milliseconds(5));
}

TEST(DurabilityTest, AKeyThatComesAndGoesKeepsItsLastState) {
  const Disk disk = NewDisk();
  uint64_t last = 0;
  {
    // All within few epochs: the versions alone order the changes of a key.
    auto cluster = DurableCluster::Open(
        disk, HistoryTables(),
        {.database = {.durability = DurabilityMode::kAsync, .group_commit = absl::Milliseconds(50)}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (last = 1; last < 3000; ++last) ASSERT_TRUE(RunStep((*cluster)->database(), 3, 0, last).ok());
    --last;
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 3, 0, last), last);
}

TEST(DurabilityTest, WithoutALogOnlyCloseAndCheckpointsAreDurable) {
  const Disk disk = NewDisk();
  const DurableOptions none{.database = {.durability = DurabilityMode::kNone}};
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint64_t n = 1; n <= 50; ++n) ASSERT_TRUE(RunStep((*cluster)->database(), 4, 0, n).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 4, 0, 50), 50u);
    for (uint64_t n = 51; n <= 60; ++n) ASSERT_TRUE(RunStep((*cluster)->database(), 4, 0, n).ok());
    disk->PowerOff();
  }
  disk->PowerOn();
  auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 4, 0, 50), 50u);
}

TEST(DurabilityTest, AFullDiskRefusesWritesAndGoesOnWhenThereIsRoom) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  uint64_t n = 0;
  ASSERT_TRUE(RunStep(database, 5, 0, ++n).ok());
  disk->SetCapacity(0);
  Status refused;
  while (refused.ok()) refused = RunStep(database, 5, 0, n + 1), n += refused.ok() ? 1 : 0;
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ExpectPrefix(ReadState(database, 0), 5, 0, n), n) << "reads go on, and what was refused is not there";
  disk->SetCapacity(UINT64_MAX);
  Status accepted = refused;
  while (absl::IsResourceExhausted(accepted)) accepted = RunStep(database, 5, 0, n + 1);  // until the log notices
  EXPECT_TRUE(accepted.ok()) << accepted;
  ++n;
  const Disk copy = disk->CrashedCopy(77);
  auto survivor = DurableCluster::Open(copy, HistoryTables());
  ASSERT_TRUE(survivor.ok()) << survivor.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*survivor)->database(), 0), 5, 0, n), n);
}

// A full disk and a close in the middle end a checkpoint early, too: what there is of it would take room for nothing.
TEST(DurabilityTest, ACheckpointThatFailsLeavesNothing) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  ASSERT_TRUE(RunStep(database, 7, 0, 1).ok());
  ASSERT_TRUE(database.Checkpoint().ok());
  const auto checkpoints = [&] {
    std::vector<std::string> names = *disk->List("/data");
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("checkpoint-"); });
    return names;
  };
  const std::vector<std::string> before = checkpoints();
  ASSERT_FALSE(before.empty());
  disk->Schedule({.operation = log::DiskOperation::kWrite, .after = 1, .path_contains = "checkpoint-"});
  EXPECT_FALSE(database.Checkpoint().ok());
  EXPECT_EQ(checkpoints(), before);
  EXPECT_TRUE(database.Checkpoint().ok());
}

TEST(DurabilityTest, AFailedSyncLosesNothingThatWasAcknowledged) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Disk disk = NewDisk(seed);
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    uint64_t n = 0;
    for (int round = 0; round < 5; ++round) {
      disk->Schedule({.operation = log::DiskOperation::kSync, .after = seed % 3, .path_contains = "log-"});
      disk->Schedule({.operation = log::DiskOperation::kWrite,
                      .after = 4 + seed % 5,
                      .path_contains = "log-",
                      .short_write = seed % 2 == 0});
      for (int i = 0; i < 10; ++i) {
        Status status;
        do {  // refused while the log is not on sound ground: nothing happened
          status = RunStep(database, seed, 0, n + 1);
        } while (absl::IsDataLoss(status) || absl::IsUnavailable(status));
        ASSERT_TRUE(status.ok()) << status;
        ++n;
      }
      const Disk copy = disk->CrashedCopy(seed * 10 + static_cast<uint64_t>(round));
      auto survivor = DurableCluster::Open(copy, HistoryTables());
      ASSERT_TRUE(survivor.ok()) << survivor.status();
      ExpectPrefix(ReadState((*survivor)->database(), 0), seed, 0, n);
    }
    EXPECT_GT(database.log_statistics().failures, 0u);
  }
}

// Otherwise a crash would leave a log of changes to rows that are gone.
TEST(DurabilityTest, ChangesAreRefusedUntilALoadIsInACheckpoint) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    {
      auto session = database.OpenSession();
      ASSERT_TRUE(session.ok());
      BulkLoader loader(session->get(), database.FindTable("rows"));
      for (uint64_t key = 5000; key < 5100; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(RunStep(database, 6, 0, 1)));
    EXPECT_EQ(ReadState(database, 5).rows.size(), 100u) << "reading is no change";
    ASSERT_TRUE(database.Checkpoint().ok());
    EXPECT_TRUE(RunStep(database, 6, 0, 1).ok());
    disk->PowerOff();
  }
  disk->PowerOn();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ReadState((*cluster)->database(), 5).rows.size(), 100u);
  ExpectPrefix(ReadState((*cluster)->database(), 0), 6, 0, 1);
}

TEST(DurabilityTest, AnotherSchemaIsRefused) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
  }
  std::vector<TableOptions> tables = HistoryTables();
  tables[1].payload_bytes = 16;
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, tables).status()));
  tables = HistoryTables();
  std::swap(tables[0], tables[1]);
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, tables).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, HistoryTables(), {.nodes = 2}).status()));
  const Disk of_two = NewDisk();
  ASSERT_TRUE(DurableCluster::Open(of_two, HistoryTables(), {.nodes = 2}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(of_two, HistoryTables()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(of_two, HistoryTables(), {.nodes = 3}).status()));
}

// --- Several nodes ---

constexpr uint64_t kAccounts = 32;
constexpr uint64_t kStartBalance = 1000;

std::vector<TableOptions> BankTables() {
  return {HashTable("accounts", Placement::ByHash()), OrderedTable("receipts", Placement::ByHash())};
}

// Moves money between two accounts, wherever they are, and writes a receipt; every so often takes an old receipt away.
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
      std::vector<uint64_t> expected;  // what the receipts 1..last have left
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

void WorkAndCrash(uint64_t seed, bool checkpoints) {
  const Disk disk = NewDisk(seed);
  DurableOptions options{.nodes = 2};
  if (checkpoints) options.database.checkpoint_every = absl::Milliseconds(10);
  auto cluster = DurableCluster::Open(disk, BankTables(), options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  for (int node = 0; node < 2; ++node) {
    auto session = (*cluster)->database(node).OpenSession();
    ASSERT_TRUE(session.ok());
    BulkLoader loader(session->get(), &(*cluster)->table("accounts", node));
    for (uint64_t i = 0; i < kAccounts; ++i) {
      if ((*cluster)->table("accounts", node).OwnerOf(i, static_cast<rdma::NodeId>(node)) != node) continue;
      ASSERT_TRUE(loader.Add(i, kStartBalance).ok());
    }
    ASSERT_TRUE(loader.Finish().ok());
  }
  for (int node = 0; node < 2; ++node) {
    const Status taken = (*cluster)->database(node).Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
  }
  std::array<std::atomic<uint64_t>, 2> acknowledged{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (int node = 0; node < 2; ++node) {
    workers.emplace_back([&, node] {
      auto session = (*cluster)->database(node).OpenSession();
      ASSERT_TRUE(session.ok());
      Random random(seed * 2 + static_cast<uint64_t>(node));
      const Table& accounts = (*cluster)->table("accounts", node);
      const Table& receipts = (*cluster)->table("receipts", node);
      for (uint64_t n = 1; !stop.load(); ++n) {
        const uint64_t from = random.Below(kAccounts);
        const uint64_t to = (from + 1 + random.Below(kAccounts - 1)) % kAccounts;
        const uint64_t receipt = static_cast<uint64_t>(node) * 1'000'000 + n;
        const uint64_t amount = random.Below(5);
        const Status status = (*session)->RunBlocking(
            [&](Transaction& t) { return Transfer(t, accounts, receipts, from, to, amount, receipt); });
        ASSERT_TRUE(status.ok()) << status;
        acknowledged[static_cast<size_t>(node)].store(n);
      }
    });
  }
  std::vector<std::pair<std::array<uint64_t, 2>, Disk>> copies;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t target = acknowledged[i % 2].load() + 15;
    while (acknowledged[i % 2].load() < target) std::this_thread::yield();
    const std::array<uint64_t, 2> least{acknowledged[0].load(), acknowledged[1].load()};
    copies.emplace_back(least, disk->CrashedCopy(seed * 10 + i));
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();
  const Status closed = (*cluster)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
  for (auto& [least, copy] : copies) {
    auto survivor = DurableCluster::Open(copy, BankTables(), {.nodes = 2});
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    ExpectBank(**survivor, least, &least);
    copy->PowerOff();
    survivor->reset();
    copy->PowerOn();
    survivor = DurableCluster::Open(copy, BankTables(), {.nodes = 2});
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    ExpectBank(**survivor, least, &least);
  }
}

TEST(DurabilityTest, TransactionsOverNodesSurviveWholeOrNotAtAll) {
  for (uint64_t seed = 1; seed <= 4; ++seed) WorkAndCrash(seed, false);
}

TEST(DurabilityTest, AlsoOverNodesBesideCheckpoints) {
  for (uint64_t seed = 21; seed <= 23; ++seed) WorkAndCrash(seed, true);
}

}  // namespace
}  // namespace gannet::txn
