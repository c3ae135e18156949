// Tests that when the newest checkpoint is damaged, the previous one and the log restore the same state.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "index/index.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/segment_format.h"
#include "log/manifest/manifest.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace older_checkpoint_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kKeys = 300;

// A row so large that a checkpoint file has several blocks: some are loaded before the damaged one is found.
using Row = std::array<uint64_t, 1024>;

Row RowOf(uint64_t value) {
  Row row;
  row.fill(value);
  return row;
}

TableOptions Large(TableOptions table) {
  table.payload_bytes = sizeof(Row);
  return table;
}

class OlderCheckpointTest : public ::testing::Test {
 protected:
  // Tables and their rows, by name.
  using Model = std::map<std::string, std::map<uint64_t, uint64_t>>;

  explicit OlderCheckpointTest(int nodes = 1) { options_.nodes = nodes; }

  Status Open(bool salvage = false) {
    options_.database.salvage = salvage;
    auto cluster = DurableCluster::Open(
        disk_, {Large(HashTable("hash", Placement::ByHash())), Large(OrderedTable("ordered", Placement::ByHash()))},
        options_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = *std::move(cluster);
    return absl::OkStatus();
  }
  Database& database(int node = 0) { return cluster_->database(node); }
  const RecoveryReport& report(int node = 0) { return database(node).recovery(); }

  // Puts and removals of random keys in both tables, one per transaction, on all nodes.
  void Work(int transactions) {
    for (int i = 0; i < transactions; ++i) {
      const uint64_t key = random_.Below(kKeys);
      const bool remove = random_.OneIn(3);
      const uint64_t value = random_();
      const Status status = database().Run([&](BlockingTransaction& t) -> Status {
        for (const char* name : {"hash", "ordered"}) {
          const Table& table = cluster_->table(name);
          const bool there = model_[name].contains(key);
          if (remove && there) GANNET_RETURN_IF_ERROR(t.Remove(table, key));
          if (remove) continue;
          GANNET_RETURN_IF_ERROR(there ? t.Update(table, key, RowOf(value)) : t.Insert(table, key, RowOf(value)));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
      for (const char* name : {"hash", "ordered"}) {
        if (remove) {
          model_[name].erase(key);
        } else {
          model_[name][key] = value;
        }
      }
    }
  }
  void Checkpoint() {
    for (int node = 0; node < options_.nodes; ++node) {
      const Status taken = database(node).Checkpoint();
      ASSERT_TRUE(taken.ok()) << taken;
    }
  }
  // Two checkpoints, with changes before, between and after them. Then a power cut.
  void WorkWithTwoCheckpoints() {
    ASSERT_TRUE(Open().ok());
    Work(200);
    Checkpoint();
    Work(200);
    Checkpoint();
    Work(200);
    Crash();
  }
  void ExpectRefused(const std::string& why) {
    const Status status = Open();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  void Crash() {
    disk_->PowerOff();
    cluster_.reset();
    disk_->PowerOn();
  }

  Model Read() {
    Model all;
    const Status status = database().Run([&](BlockingTransaction& t) -> Status {
      all = {{"hash", {}}, {"ordered", {}}};
      for (const char* name : {"hash", "ordered"}) {
        for (uint64_t key = 0; key < kKeys; ++key) {
          Row row;
          Status found = t.Get(cluster_->table(name), key, &row);
          if (found.ok()) all[name][key] = row == RowOf(row[0]) ? row[0] : 0;
          if (!found.ok() && !absl::IsNotFound(found)) return found;
        }
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return all;
  }
  // Checks the rows, and by the index itself that it has no other key.
  void ExpectAllIsThere() {
    EXPECT_EQ(Read(), model_);
    for (const char* name : {"hash", "ordered"}) {
      uint64_t keys = 0;
      for (int node = 0; node < options_.nodes; ++node) {
        EXPECT_TRUE(cluster_->table(name, node).local_index().CheckStructure().ok());
        for (const TableStatistics& statistics : database(node).table_statistics()) {
          if (statistics.table == name) keys += statistics.index.keys;
        }
      }
      EXPECT_EQ(keys, model_[name].size()) << name;
    }
  }

  std::string DirectoryOf(int node) const {
    return options_.nodes == 1 ? "/data" : "/data/node-" + std::to_string(node);
  }
  log::Manifest ManifestOf(int node = 0) const { return *log::ReadManifest(*disk_, DirectoryOf(node)); }
  // The files of the newest checkpoint (0) or the previous one (1).
  std::vector<std::string> FilesOf(size_t checkpoint, int node = 0) const {
    const log::Manifest manifest = ManifestOf(node);
    const log::CheckpointDescription& description = manifest.checkpoints.at(checkpoint);
    std::vector<std::string> paths;
    for (const log::CheckpointFile& file : description.files) {
      paths.push_back(log::CheckpointDirectory(DirectoryOf(node), description.id) + "/" + file.name);
    }
    return paths;
  }
  void Damage(const std::string& path) {
    const auto file = disk_->Open(path, log::OpenMode::kRead);
    ASSERT_TRUE(file.ok()) << path;
    ASSERT_TRUE(disk_->FlipRandomBit(path, 0, *(*file)->Size()).ok());
  }

  std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  DurableOptions options_;
  Random random_{7};
  Model model_{{"hash", {}}, {"ordered", {}}};
  std::unique_ptr<DurableCluster> cluster_;
};

class OlderCheckpointOfTwoNodesTest : public OlderCheckpointTest {
 protected:
  OlderCheckpointOfTwoNodesTest() : OlderCheckpointTest(2) {}
};

TEST_F(OlderCheckpointTest, TakesThePlaceOfADamagedOne) {
  WorkWithTwoCheckpoints();
  const std::vector<std::string> files = FilesOf(0);
  ASSERT_EQ(files.size(), 2u) << "one for each table";
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const auto sound = disk_;
    int in_later_block = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      disk_ = sound->CrashedCopy(seed);
      Damage(file);
      const Status status = Open();
      ASSERT_TRUE(status.ok()) << status;
      in_later_block += report().replaced.at(0).find(" is damaged at offset 4096:") == std::string::npos ? 1 : 0;
      EXPECT_EQ(report().checkpoint_id, 2u);
      EXPECT_EQ(report().older_checkpoint_id, 1u);
      ASSERT_EQ(report().replaced.size(), 1u);
      EXPECT_THAT(report().replaced[0], HasSubstr(file + " is damaged at offset "));
      EXPECT_THAT(report().replaced[0], Not(HasSubstr("salvage")));
      EXPECT_THAT(report().damages, IsEmpty());
      EXPECT_EQ(report().records, model_["hash"].size() + model_["ordered"].size());
      ExpectAllIsThere();
      cluster_.reset();
    }
    EXPECT_GT(in_later_block, 0) << "something had been loaded and was taken out again";
    disk_ = sound;
  }
}

TEST_F(OlderCheckpointTest, IsNotNeededWhenTheNewestIsSound) {
  WorkWithTwoCheckpoints();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(report().older_checkpoint_id, 0u);
  EXPECT_THAT(report().replaced, IsEmpty());
  ExpectAllIsThere();
}

TEST_F(OlderCheckpointTest, TakesThePlaceOfOneThatIsGone) {
  WorkWithTwoCheckpoints();
  for (const std::string& file : FilesOf(0)) ASSERT_TRUE(disk_->Remove(file).ok());
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(report().replaced.size(), 2u);
  EXPECT_THAT(report().replaced[0], HasSubstr("the file is missing"));
  ExpectAllIsThere();
}

// A damaged checkpoint must not be relied on any more: neither by recovery nor when the log is cut.
TEST_F(OlderCheckpointTest, StaysUntilThereAreTwoSoundOnes) {
  WorkWithTwoCheckpoints();
  for (const std::string& file : FilesOf(0)) Damage(file);
  ASSERT_TRUE(Open().ok());
  Work(100);
  Crash();
  ASSERT_TRUE(Open().ok()) << "and once more";
  EXPECT_EQ(report().older_checkpoint_id, 1u);
  ExpectAllIsThere();
  Work(100);
  Checkpoint();
  const log::Manifest manifest = ManifestOf();
  ASSERT_EQ(manifest.checkpoints.size(), 2u);
  EXPECT_EQ(manifest.checkpoints[0].id, 3u);
  EXPECT_EQ(manifest.checkpoints[1].id, 1u);
  Work(100);
  Crash();
  Damage(FilesOf(0)[1]);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(report().checkpoint_id, 3u);
  EXPECT_EQ(report().older_checkpoint_id, 1u);
  ExpectAllIsThere();
  Checkpoint();
  Checkpoint();
  Crash();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(report().older_checkpoint_id, 0u);
  ExpectAllIsThere();
}

TEST_F(OlderCheckpointTest, IsRefusedWhenItIsDamagedToo) {
  WorkWithTwoCheckpoints();
  Damage(FilesOf(0)[0]);
  Damage(FilesOf(1)[0]);
  const Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr(FilesOf(0)[0] + " is damaged at offset "));
  EXPECT_THAT(message, HasSubstr(FilesOf(1)[0] + " is damaged at offset "));
  EXPECT_THAT(message, HasSubstr("gannet backup --salvage"));
  ASSERT_TRUE(Open(/*salvage=*/true).ok());
  EXPECT_THAT(report().damages, Not(IsEmpty()));
  EXPECT_EQ(Read()["ordered"], model_["ordered"]) << "of the table that is not damaged nothing is missing";
}

TEST_F(OlderCheckpointTest, SalvageLosesOnlyWhatBothHaveLost) {
  WorkWithTwoCheckpoints();
  for (const std::string& file : FilesOf(0)) Damage(file);
  Damage(FilesOf(1)[1]);
  EXPECT_TRUE(absl::IsDataLoss(Open()));
  ASSERT_TRUE(Open(/*salvage=*/true).ok());
  EXPECT_EQ(report().replaced.size(), 1u);
  EXPECT_THAT(report().damages, Not(IsEmpty()));
  EXPECT_EQ(Read()["hash"], model_["hash"]);
}

TEST_F(OlderCheckpointTest, IsRefusedWhenItsPartOfTheLogIsGone) {
  WorkWithTwoCheckpoints();
  const uint64_t segment = ManifestOf().checkpoints[1].first_segment;
  ASSERT_TRUE(disk_->Remove("/data/" + log::SegmentName(segment)).ok());
  ASSERT_TRUE(disk_->SyncDirectory("/data").ok());
  ASSERT_TRUE(Open().ok()) << "the newest one does not need it";
  Crash();
  Damage(FilesOf(0)[0]);
  ExpectRefused("cannot take its place");
}

TEST_F(OlderCheckpointTest, IsRefusedWhenTheLogDoesNotHaveALoad) {
  ASSERT_TRUE(Open().ok());
  Checkpoint();
  {
    auto session = database().OpenSession();
    ASSERT_TRUE(session.ok());
    BulkLoader loader(session->get(), &cluster_->table("ordered"));
    for (uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(loader.Add(key, RowOf(key)).ok());
    ASSERT_TRUE(loader.Finish().ok());
    for (uint64_t key = 0; key < kKeys; ++key) model_["ordered"][key] = key;
  }
  Checkpoint();
  Crash();
  const std::string file = FilesOf(0).back();
  const std::shared_ptr<log::FaultyFileSystem> before = disk_;
  disk_ = before->CrashedCopy(1);
  Damage(file);
  ExpectRefused("the log does not have all that changed");
  // The next checkpoint can be replaced.
  disk_ = before;
  ASSERT_TRUE(Open().ok());
  Checkpoint();
  Crash();
  Damage(FilesOf(0).back());
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(report().older_checkpoint_id, 2u);
  ExpectAllIsThere();
}

TEST_F(OlderCheckpointTest, IsRefusedWhenNothingWasLogged) {
  options_.database.durability = DurabilityMode::kNone;
  ASSERT_TRUE(Open().ok());
  Work(50);
  Checkpoint();
  Work(50);
  Checkpoint();
  Crash();
  Damage(FilesOf(0)[0]);
  ExpectRefused("there is none");
}

// Without a log nothing else would tell that changes are missing.
TEST_F(OlderCheckpointTest, AnEarlierManifestIsRefusedWhenNothingWasLogged) {
  options_.database.durability = DurabilityMode::kNone;
  ASSERT_TRUE(Open().ok());
  Work(50);
  ASSERT_TRUE(cluster_->Close().ok());
  const log::Manifest early = ManifestOf();
  ASSERT_TRUE(Open().ok());
  Work(50);
  ASSERT_TRUE(cluster_->Close().ok());
  cluster_.reset();
  const log::Manifest newest = ManifestOf();
  ASSERT_TRUE(log::WriteManifest(*disk_, "/data", early).ok());
  ExpectRefused("missing");
  ASSERT_TRUE(log::WriteManifest(*disk_, "/data", newest).ok());
  const Status opened = Open();
  ASSERT_TRUE(opened.ok()) << opened;
  ExpectAllIsThere();
}

TEST_F(OlderCheckpointTest, ThatThereIsNoneIsSaid) {
  ASSERT_TRUE(Open().ok());
  Work(50);
  Checkpoint();
  Crash();
  Damage(FilesOf(0)[0]);
  ExpectRefused("there is none");
}

TEST_F(OlderCheckpointOfTwoNodesTest, TakesThePlaceOfADamagedOneOfOneNode) {
  WorkWithTwoCheckpoints();
  for (const std::string& file : FilesOf(0, /*node=*/1)) Damage(file);
  const Status status = Open();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(report(0).older_checkpoint_id, 0u);
  EXPECT_EQ(report(1).older_checkpoint_id, 1u);
  EXPECT_EQ(report(1).replaced.size(), 2u);
  ExpectAllIsThere();
}

}  // namespace older_checkpoint_test
}  // namespace gannet::txn
