// Whether a directory holds a database: a directory that held data never becomes a new database, creation can be
// interrupted anywhere, and parts of several databases are not mixed.
#include "txn/durable/data_directory.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/format/crc32c.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "tests/support/thorough.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/verify.h"

namespace gannet::txn {
namespace data_directory_test {

using ::testing::HasSubstr;
using Disk = std::shared_ptr<log::FaultyFileSystem>;

constexpr uint64_t kRows = 20;

std::vector<TableOptions> Tables() {
  return {HashTable("rows", Placement::ByHash()), OrderedTable("ordered", Placement::ByHash())};
}

StatusOr<std::unique_ptr<DurableCluster>> Open(const Disk& disk, int nodes, bool create) {
  return DurableCluster::Open(disk, Tables(), {.nodes = nodes, .create = create});
}

Status InsertRow(DurableCluster& cluster, uint64_t key) {
  return cluster.database().Run([&](BlockingTransaction& t) { return t.Insert(cluster.table("rows"), key, key); });
}

// Number of the rows 1 to `most` that are there.
uint64_t CountRows(DurableCluster& cluster, uint64_t most = kRows) {
  uint64_t rows = 0;
  for (uint64_t key = 1; key <= most; ++key) {
    const Status status = cluster.database().Run([&](BlockingTransaction& t) {
      uint64_t value = 0;
      return t.Get(cluster.table("rows"), key, &value);
    });
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    rows += status.ok() ? 1 : 0;
  }
  return rows;
}

// The disk of a database with rows after it was killed or closed.
DiskImage Used(int nodes, bool checkpoint, bool close, uint64_t seed = 1) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(seed);
  auto cluster = Open(disk, nodes, /*create=*/true);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  for (uint64_t key = 1; key <= kRows; ++key) {
    EXPECT_TRUE(InsertRow(**cluster, key).ok());
  }
  for (int node = 0; checkpoint && node < nodes; ++node) {
    EXPECT_TRUE((*cluster)->database(node).Checkpoint().ok());
  }
  if (close) {
    EXPECT_TRUE((*cluster)->Close().ok());
  }
  return ImageOf(*disk);
}

// Opening is refused with and without create_if_missing; every node gives the same reason, and nothing changes.
void ExpectRefused(const DiskImage& image, int nodes, absl::StatusCode code, const std::string& says) {
  const Disk disk = DiskOf(image);
  for (const bool create : {false, true}) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = uint64_t{64} << 20});
    ASSERT_TRUE(fabric.ok());
    for (int node = 0; node < nodes; ++node) {
      const auto opened = Database::Open(fabric->get(), static_cast<rdma::NodeId>(node),
                                         {.directory = "/data", .create_if_missing = create, .files = disk});
      EXPECT_EQ(opened.status().code(), code) << "node " << node << " create " << create << ": " << opened.status();
      EXPECT_THAT(std::string(opened.status().message()), HasSubstr(says));
    }
    EXPECT_EQ(ImageOf(*disk), image) << "a database that was not opened was changed";
  }
}

TEST(DataDirectoryTest, ADatabaseIsCreatedOnlyWhereAskedFor) {
  for (const int nodes : {1, 2}) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    const Status missing = Open(disk, nodes, /*create=*/false).status();
    EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
    EXPECT_THAT(std::string(missing.message()), HasSubstr("/data holds no database"));
    EXPECT_THAT(std::string(missing.message()), HasSubstr("DatabaseOptions::create_if_missing"));
    EXPECT_THAT(*disk->List("/"), testing::IsEmpty()) << "nothing is made";
    {
      auto created = Open(disk, nodes, /*create=*/true);
      ASSERT_TRUE(created.ok()) << created.status();
      ASSERT_TRUE(InsertRow(**created, 1).ok());
    }
    for (const bool create : {false, true}) {
      auto again = Open(disk, nodes, create);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(CountRows(**again), 1u);
    }
  }
}

// Counts in *reads how often a manifest is opened from now on.
void CountManifestReads(log::FaultyFileSystem& disk, std::atomic<int>* reads) {
  disk.SetOptions({.before = [reads](log::DiskOperation operation, const std::string& path) {
    if (operation == log::DiskOperation::kOpen && path.ends_with("/MANIFEST")) ++*reads;
  }});
}

// A node reads its own manifest when it takes the directory. It reads those of the other nodes then, when it starts,
// and together with their logs.
TEST(DataDirectoryTest, ANodeReadsItsManifestOnce) {
  for (const int nodes : {1, 2}) {
    const Disk disk = DiskOf(Used(nodes, /*checkpoint=*/true, /*close=*/true));
    std::atomic<int> reads{0};
    CountManifestReads(*disk, &reads);
    const int expected = nodes + 3 * nodes * (nodes - 1);
    auto cluster = Open(disk, nodes, /*create=*/false);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(reads.load(), expected) << "by Open and Start";
    EXPECT_EQ(CountRows(**cluster), kRows);
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    ASSERT_TRUE((*cluster)->Close().ok());
    EXPECT_EQ(reads.load(), expected) << "by Checkpoint and Close";
  }
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  std::atomic<int> reads{0};
  CountManifestReads(*disk, &reads);
  ASSERT_TRUE(Open(disk, 1, /*create=*/true).ok());
  EXPECT_EQ(reads.load(), 1) << "of a new database";
}

TEST(DataDirectoryTest, WhatHeldDataIsNeverNew) {
  for (const bool checkpoint : {false, true}) {
    for (const bool close : {false, true}) {
      const DiskImage one = Used(1, checkpoint, close);
      ExpectRefused(Without(one, "/data/MANIFEST"), 1, absl::StatusCode::kDataLoss, "/data/MANIFEST is missing");
      const DiskImage two = Used(2, checkpoint, close);
      for (const char* node : {"/data/node-0", "/data/node-1"}) {
        for (const char* what : {"", "/MANIFEST"}) {
          const std::string path = std::string(node) + what;
          DiskImage lost = Without(two, path);
          const std::string says = std::string(node) + "/MANIFEST is missing";
          ExpectRefused(lost, 2, absl::StatusCode::kDataLoss, says);
          // An empty directory, as when nothing is mounted there.
          if (*what == '\0') lost[path] = std::nullopt;
          ExpectRefused(lost, 2, absl::StatusCode::kDataLoss, says);
          EXPECT_TRUE(absl::IsDataLoss(ReadDataDirectory(*DiskOf(lost), "/data").status()));
        }
      }
      ExpectRefused(Without(Without(two, "/data/node-0/MANIFEST"), "/data/node-1/MANIFEST"), 2,
                    absl::StatusCode::kDataLoss, "MANIFEST is missing");
      auto back = Open(DiskOf(two), 2, /*create=*/true);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(CountRows(**back), kRows);
    }
  }
}

TEST(DataDirectoryTest, ALogThatIsGoneIsNotAnEmptyOne) {
  for (const int nodes : {1, 2}) {
    DiskImage image = Used(nodes, /*checkpoint=*/false, /*close=*/true);
    std::erase_if(image, [&](const auto& entry) {
      return entry.first.find("/log-") != std::string::npos && (nodes == 1 || entry.first.starts_with("/data/node-1"));
    });
    const Disk disk = DiskOf(image);
    const Status opened = Open(disk, nodes, /*create=*/true).status();
    EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr(nodes == 1 ? "/data/log-" : "/data/node-1/log-"));
    EXPECT_EQ(ImageOf(*disk), image);
  }
}

TEST(DataDirectoryTest, TheNumberOfNodesIsTheDirectorys) {
  const DiskImage one = Used(1, false, true);
  const DiskImage two = Used(2, false, true);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(one, 2, invalid, "/data belongs to a single node");
  ExpectRefused(two, 1, invalid, "/data belongs to a cluster of several nodes");
  ExpectRefused(two, 3, invalid, "/data belongs to a cluster of 2 nodes");
  ExpectRefused(Without(two, "/data/node-0"), 3, invalid, "/data belongs to a cluster of 2 nodes");
  ExpectRefused(Without(one, "/data/MANIFEST"), 2, invalid, "/data belongs to a single node");
}

TEST(DataDirectoryTest, PartsOfSeveralDatabasesAreNotMixed) {
  const DiskImage mine = Used(2, false, true, 1);
  const DiskImage other = Used(2, false, true, 2);
  const auto loss = absl::StatusCode::kDataLoss;
  ExpectRefused(WithPartOf(mine, "/data/node-1", other, "/data/node-1"), 2, loss,
                "/data/node-1 is of another database");
  ExpectRefused(WithPartOf(mine, "/data/node-1/MANIFEST", other, "/data/node-1/MANIFEST"), 2, loss,
                "/data/node-1 is of another database");
  DiskImage swapped = WithPartOf(mine, "/data/node-1", mine, "/data/node-0");
  ExpectRefused(swapped, 2, loss, "/data/node-1/MANIFEST is of node 0");
  swapped = WithPartOf(std::move(swapped), "/data/node-0", mine, "/data/node-1");
  ExpectRefused(swapped, 2, loss, "MANIFEST is of node 1");
  ExpectRefused(WithPartOf(mine, "/data/node-1", Used(1, false, true), "/data"), 2, absl::StatusCode::kInvalidArgument,
                "/data belongs to a cluster of 1 nodes");
}

TEST(DataDirectoryTest, TheLogOfAnotherNodeIsNamed) {
  const DiskImage mine = Used(2, false, true);
  for (const bool also_note : {false, true}) {
    DiskImage image = mine;
    std::erase_if(image, [](const auto& entry) { return entry.first.starts_with("/data/node-0/log-"); });
    for (const auto& [path, content] : mine) {
      if (!path.starts_with("/data/node-1/log-") && !(also_note && path == "/data/node-1/LOG-END")) continue;
      image["/data/node-0" + path.substr(std::string("/data/node-1").size())] = content;
    }
    const Disk disk = DiskOf(image);
    const Status opened = Open(disk, 2, /*create=*/false).status();
    EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr(also_note ? "/data/node-0/LOG-END" : "/data/node-0/log-"));
    EXPECT_THAT(std::string(opened.message()), HasSubstr("is of node 1 of 2, and the directory of node 0 of 2"));
    EXPECT_EQ(ImageOf(*disk), image);
  }
}

// The place of the identity in a file of this name; 0: it has none.
size_t IdentityPlace(const std::string& path) {
  if (path.find("/log-") != std::string::npos) return 88;
  if (path.ends_with("/LOG-END")) return 72;
  return path.find("/table-") != std::string::npos ? 32 : 0;
}

// The bytes of a file, as if another database had written them: nothing but the identity tells them apart.
std::string OfAnotherDatabase(std::string content, size_t identity) {
  for (size_t at = 0; at < content.size() && (at == 0 || identity == 72); at += 4096) {  // LOG-END has two such blocks
    if (content[at] == 0) continue;
    content[at + identity] = static_cast<char>(content[at + identity] ^ 1);
    const auto rest = std::as_bytes(std::span(content)).subspan(at + 12, 4096 - 12);
    const uint32_t crc = log::Crc32c(rest);
    std::memcpy(&content[at + 8], &crc, sizeof crc);
  }
  return content;
}

std::vector<std::string> ProblemsOf(const DiskImage& image) {
  const auto verified = VerifyDataDirectory(*DiskOf(image), "/data", 1);
  EXPECT_TRUE(verified.ok()) << verified.status();
  std::vector<std::string> problems;
  if (verified.ok()) {
    for (const Problem& problem : verified->problems) problems.push_back(ToText(problem));
  }
  return problems;
}

TEST(DataDirectoryTest, EachFileOfAnotherDatabaseIsRefusedAndNamed) {
  for (const int nodes : {1, 2}) {
    const DiskImage mine = Used(nodes, /*checkpoint=*/true, /*close=*/true);
    EXPECT_THAT(ProblemsOf(mine), testing::IsEmpty());
    int files = 0;
    for (const auto& [path, content] : mine) {
      const size_t identity = IdentityPlace(path);
      if (identity == 0 || !content.has_value()) continue;
      SCOPED_TRACE(path);
      ++files;
      const std::string bytes = log::ReadManifest(*DiskOf(mine), NodeDirectory("/data", 0, nodes))->database;
      EXPECT_EQ(log::LoadIdentity(std::as_bytes(std::span(*content)).data() + identity).ToText(), bytes);
      DiskImage mixed = mine;
      mixed[path] = OfAnotherDatabase(*content, identity);
      const Disk disk = DiskOf(mixed);
      const Status opened = Open(disk, nodes, /*create=*/true).status();
      EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
      EXPECT_THAT(std::string(opened.message()), HasSubstr(path));
      EXPECT_THAT(std::string(opened.message()), HasSubstr("the file is of another database"));
      EXPECT_EQ(ImageOf(*disk), mixed);
      EXPECT_THAT(ProblemsOf(mixed),
                  testing::Contains(testing::AllOf(HasSubstr(path), HasSubstr("the file is of another database"))));
    }
    EXPECT_GE(files, 3 * nodes) << "the log, its end, and a checkpoint";
  }
}

TEST(DataDirectoryTest, ARealLogOfAnotherDatabaseIsRefused) {
  const DiskImage mine = Used(1, /*checkpoint=*/false, /*close=*/true, 1);
  const DiskImage other = Used(1, /*checkpoint=*/false, /*close=*/true, 2);
  DiskImage mixed = mine;
  for (const auto& [path, content] : other) {
    if (IdentityPlace(path) != 0) mixed[path] = content;
  }
  const Status opened = Open(DiskOf(mixed), 1, /*create=*/false).status();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("the file is of another database"));
  EXPECT_THAT(ProblemsOf(mixed), testing::Contains(HasSubstr("/data/log-")));
}

// Salvage reads nothing of the other database, does not write over its file, and what follows is a sound database.
TEST(DataDirectoryTest, SalvageLeavesFilesOfAnotherDatabaseOut) {
  for (const bool checkpoint : {false, true}) {
    DiskImage mixed = Used(1, checkpoint, /*close=*/true);
    for (auto& [path, content] : mixed) {
      const size_t identity = IdentityPlace(path);
      if (identity == (checkpoint ? size_t{32} : size_t{88})) content = OfAnotherDatabase(*content, identity);
    }
    const Disk disk = DiskOf(mixed);
    {
      auto cluster = DurableCluster::Open(disk, Tables(), {.create = false, .database = {.salvage = true}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_EQ(CountRows(**cluster), 0u) << "all rows were in the other database's files";
      EXPECT_FALSE((*cluster)->database().recovery().damages.empty());
      for (const auto& [path, content] : mixed) {
        if (path.find("/log-") != std::string::npos) {
          EXPECT_EQ(ImageOf(*disk)[path], content) << path;
        }
      }
      ASSERT_TRUE(InsertRow(**cluster, 1).ok());
      for (int i = 0; i < 2; ++i) ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
      ASSERT_TRUE((*cluster)->Close().ok());
    }
    EXPECT_THAT(ProblemsOf(ImageOf(*disk)), testing::IsEmpty());
    auto again = Open(disk, 1, /*create=*/false);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(CountRows(**again), 1u);
  }
}

// The copy is undamaged, and the whole cluster would go back to it.
TEST(DataDirectoryTest, AnOldCopyOfOneNodeIsRefused) {
  for (const bool checkpoint : {false, true}) {
    const DiskImage old = Used(2, false, true);
    const Disk disk = DiskOf(old);
    for (int run = 0; run < 2; ++run) {
      auto cluster = Open(disk, 2, /*create=*/false);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (uint64_t key = 1; key <= 10; ++key) {
        ASSERT_TRUE(InsertRow(**cluster, static_cast<uint64_t>(100 + run * 10) + key).ok());
      }
      for (int node = 0; checkpoint && node < 2; ++node) {
        ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
      }
      ASSERT_TRUE((*cluster)->Close().ok());
    }
    for (const std::string& node : {std::string("/data/node-0"), std::string("/data/node-1")}) {
      const DiskImage mixed = WithPartOf(ImageOf(*disk), node, old, node);
      const Disk of_mixed = DiskOf(mixed);
      const Status opened = Open(of_mixed, 2, /*create=*/true).status();
      EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
      EXPECT_THAT(std::string(opened.message()), HasSubstr(node));
      EXPECT_EQ(ImageOf(*of_mixed), mixed) << "both nodes refuse";
    }
  }
}

TEST(DataDirectoryTest, WhatIsNoDirectoryIsRefused) {
  DiskImage file;
  file["/data"] = std::string(4096, 'x');
  for (const int nodes : {1, 2}) {
    const Disk disk = DiskOf(file);
    for (const bool create : {false, true}) {
      const Status opened = Open(disk, nodes, create).status();
      EXPECT_TRUE(absl::IsInvalidArgument(opened)) << opened;
      EXPECT_THAT(std::string(opened.message()), HasSubstr("/data"));
    }
  }
  DiskImage node = Used(2, false, true);
  node = Without(std::move(node), "/data/node-1");
  node["/data/node-1"] = std::string(4096, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(Open(DiskOf(node), 2, /*create=*/true).status()));
}

// A database written by the first version has no identity. It gets one, the same on all nodes, whichever node starts
// first.
TEST(DataDirectoryTest, ADatabaseOfTheFirstVersionGetsAnIdentity) {
  for (const int nodes : {1, 3}) {
    const Disk disk = DiskOf(Used(nodes, /*checkpoint=*/true, /*close=*/true));
    for (int node = 0; node < nodes; ++node) {
      const std::string path = NodeDirectory("/data", node, nodes);
      log::Manifest manifest = *log::ReadManifest(*disk, path);
      manifest.version = 1;
      ASSERT_TRUE(log::WriteManifest(*disk, path, manifest).ok());
      manifest = *log::ReadManifest(*disk, path);
      ASSERT_EQ(manifest.database, "");
      ASSERT_TRUE(manifest.started);
    }
    // Only the manifest was of the first version here: the files beside it have an identity, which must stay theirs.
    std::string identity = log::ReadEndNote(*disk, NodeDirectory("/data", 0, nodes))->database.ToText();
    for (int again = 0; again < 2; ++again) {
      auto cluster = Open(disk, nodes, /*create=*/false);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_EQ(CountRows(**cluster), kRows);
      const auto data = ReadDataDirectory(*disk, "/data");
      ASSERT_TRUE(data.ok()) << data.status();
      for (const NodeData& node : *data) {
        if (identity.empty()) identity = node.manifest.database;
        EXPECT_EQ(node.manifest.database, identity);
        EXPECT_EQ(node.manifest.version, log::kManifestVersion);
      }
      EXPECT_EQ(identity.size(), 32u);
    }
  }
}

// All nodes at once, like processes that start together: one of them creates the database.
TEST(DataDirectoryTest, NodesThatComeTogetherCreateOneDatabase) {
  constexpr int kNodes = 4;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(seed);
    disk->SetOptions({.before = [](log::DiskOperation, const std::string&) { std::this_thread::yield(); }});
    std::vector<std::thread> threads;
    std::vector<Status> taken(kNodes);
    for (int node = 0; node < kNodes; ++node) {
      threads.emplace_back([&, node] {
        const auto held = TakeDataDirectory(*disk, "/data", node, kNodes, /*create=*/true, "application");
        taken[static_cast<size_t>(node)] = held.status();
        EXPECT_TRUE(!held.ok() || held->path == NodeDirectory("/data", node, kNodes));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : taken) EXPECT_TRUE(status.ok()) << status;
    const auto data = ReadDataDirectory(*disk, "/data");
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->size(), size_t{kNodes});
    for (const NodeData& node : *data) {
      EXPECT_FALSE(node.manifest.started);
      EXPECT_EQ(node.manifest.application, "application");
    }
  }
}

// --- Interrupted creation ---

enum class Interruption { kPowerCut, kError };

// Opens a new database and inserts a row, while the disk breaks at its `at`-th operation. Returns the disks that this
// may leave; empty if there are fewer operations. *acknowledged: the row's insert.
std::vector<Disk> CreateInterrupted(int nodes, uint64_t at, Interruption how, bool* acknowledged) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(at);
  std::atomic<uint64_t> operations{0};
  disk->SetOptions({.before = [&, how, at](log::DiskOperation operation, const std::string& path) {
    if (operations.fetch_add(1) + 1 != at) return;
    if (how == Interruption::kPowerCut) disk->PowerOff();
    if (how == Interruption::kError) disk->Schedule({.operation = operation, .path_contains = path});
  }});
  {
    // Without the disk nothing becomes durable, so a long wait is useless.
    auto cluster =
        DurableCluster::Open(disk, Tables(), {.nodes = nodes, .database = {.durable_within = absl::Milliseconds(20)}});
    *acknowledged = cluster.ok() && InsertRow(**cluster, 1).ok();
    disk->SetOptions({});
  }
  if (operations.load() < at) return {};
  disk->Heal();
  if (how == Interruption::kError) return {disk};
  std::vector<Disk> left;
  for (uint64_t seed = 1; seed <= 3; ++seed) left.push_back(disk->CrashedCopy(at * 10 + seed));
  return left;
}

void InterruptEverywhere(int nodes, Interruption how) {
  for (uint64_t at = 1;; at += StepOfPlaces(nodes == 1 ? 1 : 3)) {
    SCOPED_TRACE(testing::Message() << nodes << " nodes, at operation " << at);
    bool acknowledged = false;
    const std::vector<Disk> left = CreateInterrupted(nodes, at, how, &acknowledged);
    if (left.empty()) {
      EXPECT_GT(at, 20u) << "a creation has more operations than that";
      return;
    }
    for (const Disk& disk : left) {
      auto cluster = Open(disk, nodes, /*create=*/false);
      if (!cluster.ok()) {
        EXPECT_FALSE(acknowledged);
        EXPECT_TRUE(absl::IsNotFound(cluster.status())) << cluster.status();
        EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("create_if_missing"));
        cluster = Open(disk, nodes, /*create=*/true);
      }
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      ASSERT_TRUE(InsertRow(**cluster, 2).ok());
      EXPECT_GE(CountRows(**cluster), acknowledged ? 2u : 1u);
    }
  }
}

TEST(InterruptedCreationTest, ByPowerCuts) {
  InterruptEverywhere(1, Interruption::kPowerCut);
  InterruptEverywhere(2, Interruption::kPowerCut);
}

TEST(InterruptedCreationTest, ByErrorsOfTheDisk) {
  InterruptEverywhere(1, Interruption::kError);
  InterruptEverywhere(2, Interruption::kError);
}

TEST(InterruptedCreationTest, IsToldFromNoDatabase) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  disk->Schedule({.operation = log::DiskOperation::kRename, .path_contains = "node-1"});
  EXPECT_FALSE(Open(disk, 2, /*create=*/true).ok());
  const Status opened = Open(disk, 2, /*create=*/false).status();
  EXPECT_TRUE(absl::IsNotFound(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("creating one was interrupted"));
  EXPECT_TRUE(*IsUnfinished(*disk, "/data"));
  EXPECT_TRUE(Open(disk, 2, /*create=*/true).ok());
  EXPECT_FALSE(*IsUnfinished(*disk, "/data"));
}

}  // namespace data_directory_test
}  // namespace gannet::txn
