// Recovery of large ordered tables by several threads (txn/durable/table_rebuilder.h): what one thread makes, and what
// was committed, whether the rows are in the checkpoint, in the log, or in both.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace parallel_rebuild_test {

constexpr uint64_t kLoaded = 40'000;  // more than two parts of an index have
constexpr uint64_t kInTransaction = 500;

using Rows = std::map<uint64_t, uint64_t>;  // by the number of the key

TableOptions Named(const std::string& name, IndexKind kind, size_t key_bytes) {
  TableOptions table = OrderedTable(name);
  table.index = kind;
  table.expected_rows = kLoaded;
  if (key_bytes > 0) {
    table.key_kind = index::KeyKind::kBytes;
    table.max_key_bytes = key_bytes;
  }
  return table;
}

std::vector<TableOptions> Tables() {
  return {Named("integers", IndexKind::kXStore, 0),     Named("names", IndexKind::kXStore, 20),
          Named("long_names", IndexKind::kXStore, 100), Named("blink", IndexKind::kBlink, 0),
          Named("rolex", IndexKind::kRolex, 20),        Named("dex", IndexKind::kDex, 0),
          Named("dolphin", IndexKind::kDolphin, 20)};
}

// The key with a number: numbers and keys have the same order.
class KeyOf {
 public:
  KeyOf(const Table& table, uint64_t number)
      : is_integer_(table.options().key_kind == index::KeyKind::kInteger),
        number_(number),
        name_(absl::StrFormat("row%08d", number)) {}
  Key get() const { return is_integer_ ? Key(number_) : Key(std::string_view(name_)); }

 private:
  bool is_integer_;
  uint64_t number_;
  std::string name_;
};

class ParallelRebuildTest : public ::testing::Test {
 protected:
  std::unique_ptr<DurableCluster> Open(int threads) {
    DurableOptions options;
    options.database.recovery_threads = threads;
    options.database.checkpoint_log_multiple = 0;
    auto cluster = DurableCluster::Open(disk_, Tables(), options);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    return cluster.ok() ? *std::move(cluster) : nullptr;
  }

  // Loads the even numbers.
  void Load() {
    auto session = cluster_->database().OpenSession();
    ASSERT_TRUE(session.ok()) << session.status();
    for (const TableOptions& options : Tables()) {
      const Table& table = cluster_->table(options.name);
      BulkLoader loader(session->get(), &table);
      for (uint64_t i = 0; i < kLoaded; ++i) {
        ASSERT_TRUE(loader.Add(KeyOf(table, 2 * i).get(), i).ok());
        model_[options.name][2 * i] = i;
      }
      const Status finished = loader.Finish();
      ASSERT_TRUE(finished.ok()) << finished;
    }
  }

  // Transactions of random changes of each table, of numbers below `most`.
  void Change(uint64_t transactions, uint64_t most, uint64_t percent_removed) {
    for (uint64_t i = 0; i < transactions; ++i) {
      for (const TableOptions& options : Tables()) {
        const Table& table = cluster_->table(options.name);
        Rows& rows = model_[options.name];
        std::map<uint64_t, std::pair<bool, uint64_t>> changes;
        while (changes.size() < kInTransaction)
          changes[random_.Below(most)] = {random_.Below(100) < percent_removed, random_()};
        const Status status = cluster_->database().Run([&](BlockingTransaction& t) -> Status {
          for (const auto& [number, change] : changes) {
            const KeyOf key(table, number);
            const bool there = rows.contains(number);
            if (change.first) {
              if (there) GANNET_RETURN_IF_ERROR(t.Remove(table, key.get()));
            } else {
              GANNET_RETURN_IF_ERROR(there ? t.Update(table, key.get(), change.second)
                                           : t.Insert(table, key.get(), change.second));
            }
          }
          return absl::OkStatus();
        });
        ASSERT_TRUE(status.ok()) << status;
        for (const auto& [number, change] : changes) {
          if (change.first) {
            rows.erase(number);
          } else {
            rows[number] = change.second;
          }
        }
      }
    }
  }

  void Crash() {
    disk_->PowerOff();
    cluster_.reset();
    disk_->PowerOn();
    image_ = ImageOf(*disk_);
  }

  // Recovers the directory by `threads` threads and compares it with the model.
  std::map<std::string, index::Statistics> Recover(int threads) {
    disk_ = DiskOf(image_);
    cluster_ = Open(threads);
    std::map<std::string, index::Statistics> all;
    if (cluster_ == nullptr) return all;
    for (const auto& [name, rows] : model_) {
      const Table& table = cluster_->table(name);
      EXPECT_TRUE(table.local_index().CheckStructure().ok()) << name << table.local_index().CheckStructure();
      all[name] = table.local_index().statistics();
      EXPECT_EQ(all[name].keys, rows.size()) << name;
      ExpectRows(table, rows);
    }
    return all;
  }
  void ExpectRows(const Table& table, const Rows& rows) {
    for (auto row = rows.begin(); row != rows.end();) {
      const auto first = row;
      const Status status = cluster_->database().Run([&](BlockingTransaction& t) -> Status {
        row = first;
        for (uint64_t i = 0; i < 1000 && row != rows.end(); ++i, ++row) {
          uint64_t value = 0;
          GANNET_RETURN_IF_ERROR(t.Get(table, KeyOf(table, row->first).get(), &value));
          if (value != row->second) return absl::InternalError(absl::StrFormat("row %d has %d", row->first, value));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << table.name() << " near " << first->first << ": " << status;
    }
  }

  void ExpectTheSameByAnyThreads() {
    Crash();
    const auto by_one = Recover(1);
    for (const int threads : {2, 5}) {
      const auto by_several = Recover(threads);
      for (const auto& [name, statistics] : by_one) {
        const auto found = by_several.find(name);
        ASSERT_NE(found, by_several.end());
        EXPECT_EQ(found->second.nodes, statistics.nodes) << name;
        EXPECT_EQ(found->second.height, statistics.height) << name;
      }
    }
    // The tables are whole: changes go on.
    Change(4, 2 * kLoaded, 30);
    Crash();
    Recover(3);
  }

  std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  std::unique_ptr<DurableCluster> cluster_ = Open(1);
  DiskImage image_;
  std::map<std::string, Rows> model_;
  Random random_{7};
};

TEST_F(ParallelRebuildTest, OfACheckpointAlone) {
  Load();
  ASSERT_TRUE(cluster_->database().Checkpoint().ok());
  ExpectTheSameByAnyThreads();
}

TEST_F(ParallelRebuildTest, OfALogAlone) {
  Change(160, 2 * kLoaded, 10);
  for (const auto& [name, rows] : model_) ASSERT_GT(rows.size(), kLoaded) << name;
  ExpectTheSameByAnyThreads();
}

// Changes during the checkpoint are in both, and the newer one counts.
TEST_F(ParallelRebuildTest, OfACheckpointAndALog) {
  Load();
  ASSERT_TRUE(cluster_->database().Checkpoint().ok());
  Status taken;
  std::atomic<bool> ended{false};
  std::thread checkpoint([&] {
    taken = cluster_->database().Checkpoint();
    ended = true;
  });
  while (!ended) Change(1, 2 * kLoaded, 30);
  checkpoint.join();
  ASSERT_TRUE(taken.ok()) << taken;
  Change(30, 3 * kLoaded, 30);  // also above all keys of the checkpoint
  ExpectTheSameByAnyThreads();
}

// There are few changes of a large table, and of a part of it: many pieces have none.
TEST_F(ParallelRebuildTest, OfACheckpointAndAFewChanges) {
  Load();
  ASSERT_TRUE(cluster_->database().Checkpoint().ok());
  Change(1, 3000, 50);
  ExpectTheSameByAnyThreads();
}

}  // namespace parallel_rebuild_test
}  // namespace gannet::txn
