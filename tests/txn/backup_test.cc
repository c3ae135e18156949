// Database::Backup: the copy of a database in use is a database, with all that was committed before.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace backup_test {

using testing::HasSubstr;

constexpr uint64_t kSeed = 7;

// A disk that has only the copy in `directory`, where a DurableCluster looks for its data.
Disk DiskWithCopy(log::FileSystem& disk, const std::string& directory) {
  DiskImage moved;
  for (auto& [path, content] : ImageOf(disk, directory))
    moved["/data" + path.substr(directory.size())] = std::move(content);
  EXPECT_FALSE(moved.empty()) << directory;
  return DiskOf(moved);
}

// Workers that commit one step after another until they are stopped. They pause after each step: otherwise the log
// grows while it is copied, so the copy takes longer, and the log grows more.
class Workers {
 public:
  Workers(Database* database, int count) : done_(static_cast<size_t>(count)) {
    for (size_t worker = 0; worker < done_.size(); ++worker) {
      threads_.emplace_back([this, database, worker] {
        for (uint64_t n = 1; !stop_; ++n) {
          const Status status = RunStep(*database, kSeed, worker, n);
          ASSERT_TRUE(status.ok()) << status;
          done_[worker] = n;
          absl::SleepFor(absl::Microseconds(100));
        }
      });
    }
  }
  ~Workers() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // What each worker has committed.
  std::vector<uint64_t> done() const { return {done_.begin(), done_.end()}; }
  void Await(uint64_t steps) const {
    for (const std::atomic<uint64_t>& each : done_) {
      while (each < steps) std::this_thread::yield();
    }
  }

 private:
  std::vector<std::atomic<uint64_t>> done_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

void ExpectHistories(Database& database, const std::vector<uint64_t>& acknowledged) {
  for (uint64_t worker = 0; worker < acknowledged.size(); ++worker)
    ExpectPrefix(ReadState(database, worker), kSeed, worker, acknowledged[worker]);
}

// Waits until the database has taken one, or for a minute.
void AwaitCheckpoint(Database& database) {
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (database.checkpoint_statistics().taken == 0 && absl::Now() < deadline) std::this_thread::yield();
}

TEST(BackupTest, UnderLoadWithCheckpointsAndNewTables) {
  const Disk disk = NewDisk();
  DurableOptions options;
  options.database.checkpoint_every = absl::Milliseconds(2);
  options.database.durability = DurabilityMode::kAsync;
  auto cluster = DurableCluster::Open(disk, HistoryTables(), options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  constexpr int kBackups = 4;
  std::vector<std::vector<uint64_t>> before;
  std::vector<uint64_t> tables_before;
  {
    Workers workers(&database, 3);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> tables{0};  // created, each with its row
    std::thread creator([&] {
      for (uint64_t i = 0; !stop && i < 100; ++i) {
        const StatusOr<const Table*> table = database.CreateTable(HashTable(absl::StrCat("new ", i)));
        ASSERT_TRUE(table.ok()) << table.status();
        const Status status = database.Run([&](BlockingTransaction& t) { return t.Insert(**table, 1, i); });
        ASSERT_TRUE(status.ok()) << status;
        tables = i + 1;
      }
    });
    for (int i = 0; i < kBackups; ++i) {
      workers.Await(static_cast<uint64_t>(20 * (i + 1)));
      // A machine may be too busy for a checkpoint until now.
      if (i == kBackups / 2) AwaitCheckpoint(database);
      before.push_back(workers.done());
      tables_before.push_back(tables);
      const Status status = database.Backup(absl::StrCat("/copy-", i));
      ASSERT_TRUE(status.ok()) << status;
    }
    stop = true;
    creator.join();
  }
  EXPECT_GT(database.checkpoint_statistics().taken, 0u);
  for (int i = 0; i < kBackups; ++i) {
    SCOPED_TRACE(i);
    auto copy = DurableCluster::Open(DiskWithCopy(*disk, absl::StrCat("/copy-", i)), HistoryTables());
    ASSERT_TRUE(copy.ok()) << copy.status();
    Database& copied = (*copy)->database();
    ExpectHistories(copied, before[static_cast<size_t>(i)]);
    for (uint64_t n = 0; n < tables_before[static_cast<size_t>(i)]; ++n) {
      const Table* const table = copied.FindTable(absl::StrCat("new ", n));
      ASSERT_NE(table, nullptr) << n;
      uint64_t value = 0;
      const Status read = copied.Run([&](BlockingTransaction& t) { return t.Get(*table, 1, &value); });
      EXPECT_TRUE(read.ok()) << read;
      EXPECT_EQ(value, n);
    }
    EXPECT_TRUE(copied.CreateTable(HashTable("another")).ok()) << "the copy is a database of its own";
  }
}

TEST(BackupTest, OfAllNodes) {
  const Disk disk = NewDisk();
  DurableOptions options{.nodes = 2};
  const std::vector<TableOptions> tables = {HashTable("counters", Placement::ByHash()),
                                            OrderedTable("rows", Placement::ByHash())};
  auto cluster = DurableCluster::Open(disk, tables, options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::vector<uint64_t> before;
  {
    Workers workers(&(*cluster)->database(1), 2);
    workers.Await(20);
    before = workers.done();
    const Status status = (*cluster)->database(1).Backup("/copy");
    ASSERT_TRUE(status.ok()) << status;
  }
  auto copy = DurableCluster::Open(DiskWithCopy(*disk, "/copy"), tables, options);
  ASSERT_TRUE(copy.ok()) << copy.status();
  ExpectHistories((*copy)->database(0), before);
}

TEST(BackupTest, HasWhatNoLogHas) {
  for (const DurabilityMode mode : {DurabilityMode::kSync, DurabilityMode::kNone}) {
    const Disk disk = NewDisk();
    DurableOptions options;
    options.database.durability = mode;
    auto cluster = DurableCluster::Open(disk, HistoryTables(), options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    {
      auto session = database.OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      BulkLoader loader(session->get(), database.FindTable("rows"));
      for (uint64_t key = 0; key < 100; ++key) ASSERT_TRUE(loader.Add(key, key + 1).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    const Status status = database.Backup("/copy");
    ASSERT_TRUE(status.ok()) << status;
    auto copy = DurableCluster::Open(DiskWithCopy(*disk, "/copy"), HistoryTables());
    ASSERT_TRUE(copy.ok()) << copy.status();
    const WorkerState state = ReadState((*copy)->database(), 0);
    EXPECT_EQ(state.rows.size(), 100u);
    for (const auto& [key, value] : state.rows) EXPECT_EQ(value, key + 1);
  }
}

std::optional<index::OwnedKey> SameKey(const index::Key& key, std::span<const std::byte>) {
  return index::OwnedKey(key);
}

// The newest segment is copied first. Before the next one a program makes an index, and replaces a table by another:
// the entries, and the moved rows, are in no copied segment.
TEST(BackupTest, TablesChangeWhileTheLogIsCopied) {
  constexpr uint64_t kRows = 60;
  const SecondaryIndexOptions by_key{.name = "by_key", .table = "stays", .unique = true, .function = SameKey};
  const std::vector<TableOptions> tables = {OrderedTable("stays"), OrderedTable("old"), OrderedTable("new")};
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, tables);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  for (uint64_t key = 0; key < kRows; ++key) {
    const Status put = database.Run([&](BlockingTransaction& t) -> Status {
      GANNET_RETURN_IF_ERROR(t.Insert((*cluster)->table("old"), key, key));
      return t.Insert((*cluster)->table("stays"), key, key);
    });
    ASSERT_TRUE(put.ok()) << put;
  }
  ASSERT_GT(database.log_statistics().segments, 1u);
  std::set<std::string> copied;
  const auto change = [&](log::DiskOperation, const std::string& path) {
    if (!path.starts_with("/copy/log-") || !copied.insert(path).second || copied.size() != 2) return;
    EXPECT_TRUE(database.CreateIndex(by_key).ok());
    const Status moved = database.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kRows; ++key) {
        GANNET_RETURN_IF_ERROR(t.Remove((*cluster)->table("old"), key));
        GANNET_RETURN_IF_ERROR(t.Insert((*cluster)->table("new"), key, key));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(moved.ok()) << moved;
    EXPECT_TRUE(database.DropTable("old").ok());
  };
  disk->SetOptions({.before = change});
  const Status status = database.Backup("/copy");
  disk->SetOptions({});
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(database.FindTable("old"), nullptr);
  auto copy = DurableCluster::Open(DiskWithCopy(*disk, "/copy"), tables);
  ASSERT_TRUE(copy.ok()) << copy.status();
  Database& restored = (*copy)->database();
  uint64_t value = 0;
  for (uint64_t key = 0; key < kRows; ++key) {
    const auto has = [&](const char* table) {
      return restored.Run([&](BlockingTransaction& t) { return t.Get((*copy)->table(table), key, &value); }).ok();
    };
    EXPECT_TRUE(has("old") != has("new")) << key;
  }
  ASSERT_NE(restored.FindIndex("by_key"), nullptr);
  EXPECT_FALSE(restored.FindIndex("by_key")->is_complete());
  const StatusOr<const SecondaryIndex*> made = restored.CreateIndex(by_key);
  ASSERT_TRUE(made.ok()) << made.status();
  for (uint64_t key = 0; key < kRows; ++key) {
    const Status read = restored.Run([&](BlockingTransaction& t) { return t.GetBy(**made, key).status(); });
    EXPECT_TRUE(read.ok()) << key << ": " << read;
  }
}

// Afterwards the directory is another's.
TEST(BackupTest, NoCloseDuringABackupOrACheckpoint) {
  for (const bool is_backup : {true, false}) {
    const Disk disk = NewDisk();
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    ASSERT_TRUE(RunStep(database, kSeed, 0, 1).ok());
    Status closed;
    disk->SetOptions({.before = [&](log::DiskOperation, const std::string& path) {
      if (closed.ok() && absl::StrContains(path, is_backup ? "/copy" : "checkpoint-")) closed = database.Close();
    }});
    const Status done = is_backup ? database.Backup("/copy") : database.Checkpoint();
    disk->SetOptions({});
    EXPECT_TRUE(done.ok()) << done;
    EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
    EXPECT_THAT(std::string(closed.message()), HasSubstr(is_backup ? "Database::Backup" : "Database::Checkpoint"));
    EXPECT_TRUE(database.Close().ok());
  }
}

class BackupErrorTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.database.stop = &stop_;
    auto cluster = DurableCluster::Open(disk_, HistoryTables(), options_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(RunStep(database(), kSeed, 0, n).ok());
  }
  Database& database() { return cluster_->database(); }
  void ExpectItWorksNow(const std::string& directory) {
    const Status status = database().Backup(directory);
    ASSERT_TRUE(status.ok()) << status;
    auto copy = DurableCluster::Open(DiskWithCopy(*disk_, directory), HistoryTables());
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(ExpectPrefix(ReadState((*copy)->database(), 0), kSeed, 0, 20), 20u);
  }

  const Disk disk_ = NewDisk();
  std::atomic<bool> stop_{false};
  DurableOptions options_;
  std::unique_ptr<DurableCluster> cluster_;
};

TEST_F(BackupErrorTest, ATargetThatIsNotEmptyOrInsideIsRefused) {
  ASSERT_TRUE(disk_->MakeDirectory("/other").ok());
  ASSERT_TRUE(disk_->Open("/other/file", log::OpenMode::kCreate).ok());
  for (const std::string target : {"/other", "/data", "/data/copy", "/nowhere/copy"}) {
    const auto before = ImageOf(*disk_, "/other");
    const Status status = database().Backup(target);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(target));
    EXPECT_EQ(ImageOf(*disk_, "/other"), before);
    EXPECT_FALSE(disk_->List("/data/copy").ok());
  }
  const Status nameless = database().Backup("");
  EXPECT_TRUE(absl::IsInvalidArgument(nameless)) << nameless;
  EXPECT_THAT(std::string(nameless.message()), HasSubstr("the name of the directory is empty; name a directory"));
  ASSERT_TRUE(disk_->MakeDirectory("/empty").ok());
  ExpectItWorksNow("/empty");
}

TEST_F(BackupErrorTest, AFullDiskLeavesNothing) {
  constexpr uint64_t kMuch = uint64_t{1} << 40;
  disk_->SetCapacity(kMuch);
  disk_->SetCapacity(kMuch - *disk_->FreeBytes("/") + 10 * log::kDiskBlockBytes);
  const Status status = database().Backup("/copy");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/copy/"));
  EXPECT_TRUE(absl::IsNotFound(disk_->List("/copy").status()));
  disk_->SetCapacity(UINT64_MAX);
  ExpectItWorksNow("/copy");
}

TEST_F(BackupErrorTest, AFailingDiskLeavesNothing) {
  for (const log::DiskOperation operation :
       {log::DiskOperation::kWrite, log::DiskOperation::kSync, log::DiskOperation::kRename}) {
    disk_->Schedule({.operation = operation, .after = 1, .times = 1000, .path_contains = "/copy"});
    const Status status = database().Backup("/copy");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("/copy"));
    EXPECT_TRUE(absl::IsNotFound(disk_->List("/copy").status())) << status;
    disk_->Heal();
  }
  ExpectItWorksNow("/copy");
}

TEST_F(BackupErrorTest, StopsWhenAsked) {
  stop_ = true;
  const Status status = database().Backup("/copy");
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsNotFound(disk_->List("/copy").status()));
  stop_ = false;
  ExpectItWorksNow("/copy");
}

TEST(BackupTest, NeedsADirectory) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{64} << 20});
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_TRUE(absl::IsFailedPrecondition((*database)->Backup("/nowhere"))) << (*database)->Backup("/nowhere");
}

}  // namespace backup_test
}  // namespace gannet::txn
