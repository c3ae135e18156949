// Nodes of one fabric change their tables together while transactions run, durably and atomically.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/checkpoint.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/all_nodes.h"
#include "txn/durable/data_directory.h"
#include "txn/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kNodes = 3;

std::vector<Database*> NodesOf(DurableCluster& cluster) {
  std::vector<Database*> nodes;
  for (int node = 0; node < kNodes; ++node) nodes.push_back(&cluster.database(node));
  return nodes;
}

Status Rename(DurableCluster& cluster, std::string_view from, const std::string& to) {
  return RenameTableOnAllNodes(NodesOf(cluster), from, to);
}

TableOptions Spread(const std::string& name) {
  return HashTable(name, Placement::ByHash());
}

// Rows of every node.
void PutRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < 12; ++key) {
    const Status put = Put(cluster, table, key, value + key, static_cast<int>(key % kNodes));
    ASSERT_TRUE(put.ok()) << put;
  }
}

void ExpectRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < 12; ++key) {
    const StatusOr<uint64_t> got = Get(cluster, table, key, static_cast<int>((key + 1) % kNodes));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, value + key) << table << ", key " << key;
  }
}

// The same on all nodes.
std::vector<std::string> NamesOnAll(DurableCluster& cluster) {
  const std::vector<std::string> names = Names(cluster.database(0));
  for (int node = 1; node < kNodes; ++node) EXPECT_EQ(Names(cluster.database(node)), names) << node;
  return names;
}

log::Manifest ManifestOf(log::FileSystem& disk, int node) {
  return log::ReadManifest(disk, NodeDirectory("/data", node, kNodes)).value();
}

// What a crash leaves of a change that some nodes have noted: for each set of nodes, `after` with their manifests from
// `before`. The change itself is `change`, on a database that `make` has made.
using Step = std::function<void(DurableCluster&)>;
void WithManifestsBehind(const std::vector<TableOptions>& tables, const Step& make, const Step& change,
                         const std::function<void(DurableCluster&, const Disk&, bool all_behind)>& check) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    auto cluster = Open(disk, tables, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    make(**cluster);
    before = ImageOf(*disk);
    change(**cluster);
  }
  const DiskImage after = ImageOf(*disk);
  for (unsigned behind = 0; behind < 1U << kNodes; ++behind) {
    SCOPED_TRACE(testing::Message() << "behind: nodes of the bits " << behind);
    DiskImage image = after;
    for (int node = 0; node < kNodes; ++node) {
      const std::string path = NodeDirectory("/data", node, kNodes) + "/MANIFEST";
      if ((behind >> node & 1U) != 0) image[path] = before.at(path);
    }
    const Disk crashed = DiskOf(image);
    // The second start reads what the first one has written.
    for (int start = 0; start < 2; ++start) {
      auto cluster = Open(crashed, {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      check(**cluster, crashed, behind == (1U << kNodes) - 1);
      ASSERT_TRUE((*cluster)->Close().ok());
      for (int node = 1; node < kNodes; ++node) {
        EXPECT_EQ(ManifestOf(*crashed, node).catalog_generation, ManifestOf(*crashed, 0).catalog_generation);
        EXPECT_EQ(ManifestOf(*crashed, node).tables, ManifestOf(*crashed, 0).tables);
      }
    }
  }
}

TEST(CatalogNodesTest, ATableIsRenamed) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    PutRows(**cluster, "a", 100);
    const Table* const table = (*cluster)->database(1).FindTable("a");
    EXPECT_TRUE(absl::IsNotFound(Rename(**cluster, "c", "d")));
    EXPECT_TRUE(absl::IsAlreadyExists(Rename(**cluster, "a", "b")));
    EXPECT_TRUE(absl::IsInvalidArgument(Rename(**cluster, "a", "")));
    EXPECT_EQ(ManifestOf(*disk, 0).catalog_generation, 0u) << "a program of before may still open it";
    const Status renamed = Rename(**cluster, "a", "z");
    ASSERT_TRUE(renamed.ok()) << renamed;
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z", "b"));
    EXPECT_EQ((*cluster)->database(1).FindTable("z"), table);
    ExpectRows(**cluster, "z", 100);
    for (int node = 0; node < kNodes; ++node) {
      EXPECT_EQ(ManifestOf(*disk, node).catalog_generation, 1u);
      EXPECT_EQ(ManifestOf(*disk, node).tables[0].name, "z");
      EXPECT_TRUE((*cluster)->database(node).OpenSession().ok());
    }
    PutRows(**cluster, "z", 200);
    ASSERT_TRUE(Rename(**cluster, "b", "a").ok());
  }
  auto cluster = Open(disk, {Spread("z"), Spread("new")}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z", "a", "new"));
  ExpectRows(**cluster, "z", 200);
}

TEST(CatalogNodesTest, WithoutADirectory) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  auto first = Database::Open(fabric->get(), 0, {});
  auto second = Database::Open(fabric->get(), 1, {});
  std::vector<Database*> nodes = {second->get(), first->get()};
  for (Database* node : nodes) ASSERT_TRUE(node->CreateTable(Spread("a")).ok());
  const Status early = RenameTableOnAllNodes(nodes, "a", "b");
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  ASSERT_TRUE(RenameTableOnAllNodes(nodes, "a", "b").ok());
  for (Database* node : nodes) EXPECT_THAT(Names(*node), ElementsAre("b"));
  using List = std::vector<Database*>;
  for (const List& wrong : {List{}, List{nodes[0]}, List{nodes[1]}, List{nodes[0], nodes[0]}, List{nodes[1], nullptr},
                            List{nodes[0], nodes[1], nodes[1]}}) {
    const Status refused = RenameTableOnAllNodes(wrong, "b", "c");
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("the tables of all nodes are changed together: "));
  }
  auto other_fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  auto other = Database::Open(other_fabric->get(), 1, {});
  EXPECT_THAT(Message(RenameTableOnAllNodes(List{nodes[1], other->get()}, "b", "c")), HasSubstr("several fabrics"));
  ASSERT_TRUE((*second)->Close().ok());
  const Status closed = RenameTableOnAllNodes(nodes, "b", "c");
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
  second->reset();
  nodes = {first->get()};
  EXPECT_TRUE(absl::IsInvalidArgument(RenameTableOnAllNodes(nodes, "b", "c")));
  EXPECT_THAT(Names(**first), ElementsAre("b"));
}

TEST(CatalogNodesTest, OneManifestWithTheNewNameIsEnough) {
  WithManifestsBehind(
      {Spread("a"), Spread("b")},
      [](DurableCluster& cluster) {
        PutRows(cluster, "a", 100);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
        PutRows(cluster, "b", 300);
      },
      [](DurableCluster& cluster) {
        // "a" and "b" change places: the union of such manifests is no catalog.
        ASSERT_TRUE(Rename(cluster, "a", "c").ok());
        ASSERT_TRUE(Rename(cluster, "b", "a").ok());
        ASSERT_TRUE(Rename(cluster, "c", "b").ok());
      },
      [](DurableCluster& cluster, const Disk&, bool all_behind) {
        EXPECT_THAT(NamesOnAll(cluster), all_behind ? ElementsAre("a", "b") : ElementsAre("b", "a"));
        ExpectRows(cluster, all_behind ? "a" : "b", 100);
        ExpectRows(cluster, all_behind ? "b" : "a", 300);
      });
}

// Opening what was there needs no space, so a manifest may stay behind for long.
TEST(CatalogNodesTest, AFullDiskKeepsAManifestBehind) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    auto cluster = Open(disk, {Spread("a")}, kNodes);
    PutRows(**cluster, "a", 100);
    before = ImageOf(*disk);
    ASSERT_TRUE(Rename(**cluster, "a", "z").ok());
  }
  DiskImage image = ImageOf(*disk);
  for (const int node : {0, 2}) {
    const std::string path = NodeDirectory("/data", node, kNodes) + "/MANIFEST";
    image[path] = before.at(path);
  }
  const Disk crashed = DiskOf(image);
  {
    crashed->SetCapacity(1);
    auto cluster = Open(crashed, {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z"));
    ExpectRows(**cluster, "z", 100);
    EXPECT_EQ(ManifestOf(*crashed, 0).tables[0].name, "a");
    crashed->SetCapacity(uint64_t{1} << 40);
    for (int node = 0; node < kNodes; ++node) {
      while (!(*cluster)->database(node).log_health().ok()) SleepForNanos(1'000'000);  // it tries again every 100 ms
    }
    PutRows(**cluster, "z", 200);
    const Status taken = (*cluster)->database(0).Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
    EXPECT_EQ(ManifestOf(*crashed, 0).tables[0].name, "a");
  }
  auto cluster = Open(crashed, {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z"));
  ExpectRows(**cluster, "z", 200);
}

// The nodes are opened, and the tables change before they start.
TEST(CatalogNodesTest, AChangeAfterOpenIsNoticed) {
  const Disk disk = NewDisk();
  { ASSERT_TRUE(Open(disk, {Spread("a")}, kNodes).ok()); }
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{1} << 28});
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<Database*> nodes;
  for (int node = 0; node < kNodes; ++node) {
    databases.push_back(
        *Database::Open(fabric->get(), static_cast<rdma::NodeId>(node), {.directory = "/data", .files = disk}));
    nodes.push_back(databases.back().get());
  }
  log::Manifest manifest = ManifestOf(*disk, 2);
  manifest.catalog_generation = 1;
  ASSERT_TRUE(log::WriteManifest(*disk, "/data/node-2", manifest).ok());
  const Status refused = OnAllNodes(nodes, [](Database& node) { return node.Start(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("open it again"));
  nodes.clear();
  databases.clear();
  auto cluster = Open(disk, {}, kNodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
}

// The manifest of one node cannot be written, or not for long: nothing has changed on any node, also after a crash.
TEST(CatalogNodesTest, AnErrorOfOneNodesDiskChangesNothing) {
  for (int node = 0; node < kNodes; ++node) {
    const Disk disk = NewDisk();
    const std::string path = absl::StrCat("/data/node-", node, "/MANIFEST");
    {
      auto cluster = Open(disk, {Spread("a")}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      PutRows(**cluster, "a", 100);
      disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = path});
      const Status refused = Rename(**cluster, "a", "z");
      EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
      EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat("when a table is renamed: node ", node, ": ")));
      EXPECT_THAT(Message(refused), HasSubstr("It is not done, on no node"));
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a"));
      PutRows(**cluster, "a", 200);
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto crashed = Open(disk->CrashedCopy(seed), {}, kNodes);
        ASSERT_TRUE(crashed.ok()) << crashed.status();
        EXPECT_THAT(NamesOnAll(**crashed), ElementsAre("a"));
        ExpectRows(**crashed, "a", 200);
      }
      disk->Heal();
      ASSERT_TRUE(Rename(**cluster, "a", "y").ok());
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("y"));
    }
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("y"));
    ExpectRows(**cluster, "y", 200);
  }
}

TEST(CatalogNodesTest, WhereNoDiskWorksTheErrorSaysThatItMayBeEither) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, {Spread("a")}, kNodes);
  disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = "MANIFEST"});
  const Status refused = Rename(**cluster, "a", "z");
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("the directory may have it"));
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a"));
}

// The power goes at every operation of a change.
TEST(CatalogNodesTest, ACrashLeavesTheOldCatalogOrTheNewOne) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {Spread("a"), Spread("b")}, kNodes);
    PutRows(**cluster, "a", 100);
    PutRows(**cluster, "b", 300);
  }
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(testing::Message() << "power cut at operation " << at);
    const Disk disk = DiskOf(image, at);
    std::atomic<uint64_t> operations{0};
    bool renamed = false;
    {
      auto cluster =
          DurableCluster::Open(disk, {}, {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(20)}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      BreakAtManifest(disk, at, /*power_cut=*/true, &operations);
      renamed = Rename(**cluster, "a", "z").ok();
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre(renamed ? "z" : "a", "b"));
      disk->SetOptions({});
    }
    if (operations.load() < at) {
      EXPECT_GT(at, 9u) << "three replacements of a file have more operations than that";
      break;
    }
    disk->Heal();
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      auto cluster = Open(disk->CrashedCopy(at * 10 + seed), {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      const bool has_z = (*cluster)->database().FindTable("z") != nullptr;
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre(has_z ? "z" : "a", "b"));
      EXPECT_TRUE(has_z || !renamed);
      ExpectRows(**cluster, has_z ? "z" : "a", 100);
      ExpectRows(**cluster, "b", 300);
      seen.insert(has_z ? "z" : "a");
    }
  }
  EXPECT_THAT(seen, ElementsAre("a", "z"));
}

}  // namespace
}  // namespace gannet::txn
