// The nodes of a cluster with a log begin together or not at all: if one refuses, all refuse with its reason, and no
// directory is changed.
#include "txn/durable/start_together.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/format/crc32c.h"
#include "log/format/segment_format.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace start_together_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Disk = std::shared_ptr<log::FaultyFileSystem>;

constexpr uint64_t kRows = 40;

std::vector<TableOptions> Tables() {
  return {HashTable("rows", Placement::ByHash()), OrderedTable("ordered", Placement::ByHash())};
}

std::string Message(const Status& status) {
  return std::string(status.message());
}

// Nodes that can be started one by one, with the result of each Start.
class Nodes {
 public:
  Nodes(const Disk& disk, int nodes, const DatabaseOptions& options = {}) {
    fabric_ = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = uint64_t{256} << 20}).value();
    databases_.resize(static_cast<size_t>(nodes));
    for (int node = 0; node < nodes; ++node) {
      DatabaseOptions with_directory = options;
      with_directory.directory = "/data";
      with_directory.files = disk;
      Open(node, with_directory);
    }
  }
  ~Nodes() {
    std::vector<std::thread> threads;
    for (auto& database : databases_) threads.emplace_back([&database] { database.reset(); });
    for (std::thread& thread : threads) thread.join();
  }

  void Open(int node, const DatabaseOptions& options, const std::vector<TableOptions>& tables = Tables()) {
    std::unique_ptr<Database>& database = databases_[static_cast<size_t>(node)];
    database.reset();
    auto opened = Database::Open(fabric_.get(), static_cast<rdma::NodeId>(node), options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    database = *std::move(opened);
    for (const TableOptions& table : tables) {
      ASSERT_TRUE(database->CreateTable(table).ok());
    }
  }
  void Leave(int node) { databases_[static_cast<size_t>(node)].reset(); }

  // Starts all nodes; returns the result of each Start.
  std::vector<Status> StartAll() {
    std::vector<Status> started(databases_.size());
    std::vector<std::thread> threads;
    for (size_t node = 0; node < started.size(); ++node) {
      threads.emplace_back([&, node] { started[node] = databases_[node]->Start(); });
    }
    for (std::thread& thread : threads) thread.join();
    return started;
  }

  Database& database(int node) { return *databases_[static_cast<size_t>(node)]; }
  rdma::ShmFabric& fabric() { return *fabric_; }

 private:
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<Database>> databases_;
};

uint64_t CountRows(DurableCluster& cluster) {
  uint64_t rows = 0;
  for (uint64_t key = 1; key <= kRows; ++key) {
    uint64_t value = 0;
    const Status status =
        cluster.database().Run([&](BlockingTransaction& t) { return t.Get(cluster.table("rows"), key, &value); });
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    rows += status.ok() && value == key ? 1 : 0;
  }
  return rows;
}

// Only node 0 takes checkpoints, so it does not need its first segments any more. The other nodes need all of them.
DiskImage CheckpointedByOneNode(int nodes) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  auto cluster = DurableCluster::Open(disk, Tables(), {.nodes = nodes});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  for (uint64_t key = 1; key <= kRows; ++key) {
    const Status done = (*cluster)->database().Run(
        [&](BlockingTransaction& t) { return t.Insert((*cluster)->table("rows"), key, key); });
    EXPECT_TRUE(done.ok()) << done;
    if (key % 10 != 0) continue;
    EXPECT_TRUE((*cluster)->database(0).Checkpoint().ok());
  }
  EXPECT_TRUE((*cluster)->Close().ok());
  return ImageOf(*disk);
}

void ExpectAllRows(const DiskImage& image, int nodes) {
  auto cluster = DurableCluster::Open(DiskOf(image), Tables(), {.nodes = nodes, .create = false});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(CountRows(**cluster), kRows);
}

// All nodes refuse with the reason of one of `refusing`, which names `file`, and nothing changes.
void ExpectAllRefuse(const DiskImage& image, int nodes, const std::string& file, const std::vector<int>& refusing) {
  const Disk disk = DiskOf(image);
  Nodes opened(disk, nodes);
  const std::vector<Status> started = opened.StartAll();
  for (int node = 0; node < nodes; ++node) {
    const Status& status = started[static_cast<size_t>(node)];
    EXPECT_TRUE(absl::IsDataLoss(status)) << "node " << node << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr(file));
    if (std::ranges::find(refusing, node) == refusing.end()) {
      EXPECT_THAT(Message(status), HasSubstr("refuses to start, and so does this node: "));
      EXPECT_THAT(refusing, testing::Contains(Message(status)[std::string("node ").size()] - '0')) << status;
    } else {
      EXPECT_THAT(Message(status), Not(HasSubstr("refuses to start")));
    }
    EXPECT_TRUE(opened.database(node).Close().ok());
  }
  EXPECT_TRUE(ImageOf(*disk) == image) << "a database that was refused was changed";
}

TEST(StartTogetherTest, WhatOneNodeMissesAllRefuse) {
  for (const int nodes : {2, 3}) {
    const DiskImage image = CheckpointedByOneNode(nodes);
    std::vector<int> others;
    for (int node = 1; node < nodes; ++node) others.push_back(node);
    for (const uint64_t segment : {1, 2}) {
      const std::string file = "/data/node-0/" + log::SegmentName(segment);
      ASSERT_TRUE(image.contains(file));
      ExpectAllRefuse(Without(image, file), nodes, file, others);
      DiskImage damaged = image;
      (*damaged[file])[100] ^= 1;
      ExpectAllRefuse(damaged, nodes, file, others);
    }
    ExpectAllRows(image, nodes);
  }
}

TEST(StartTogetherTest, WhatIsRefusedForOtherReasonsKeepsItsCode) {
  const DiskImage good = CheckpointedByOneNode(2);
  // A file that only node 0 reads, of a newer version of the format.
  DiskImage image = good;
  const auto file = std::ranges::find_if(std::views::reverse(image), [](const auto& entry) {
    return entry.second.has_value() && entry.first.starts_with("/data/node-0/checkpoint-");
  });
  ASSERT_NE(file, image.rend()) << "the newest checkpoint's";
  std::string& bytes = *file->second;
  bytes[12] = 99;
  const uint32_t crc = log::Crc32c(std::as_bytes(std::span(bytes)).subspan(12, 4096 - 12));
  std::memcpy(bytes.data() + 8, &crc, sizeof(crc));
  const Disk disk = DiskOf(image);
  Nodes nodes(disk, 2);
  const std::vector<Status> started = nodes.StartAll();
  for (const Status& status : started) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(file->first));
  }
  EXPECT_THAT(Message(started[1]), HasSubstr("node 0 refuses to start"));
  EXPECT_TRUE(ImageOf(*disk) == image);
  EXPECT_TRUE(absl::IsFailedPrecondition(nodes.database(0).Start())) << "it is to be opened again";
  ExpectAllRows(good, 2);
}

// A program may create more tables than a directory has, but on all nodes.
TEST(StartTogetherTest, OtherTablesOnOneNodeAreRefusedByAll) {
  const DiskImage image = CheckpointedByOneNode(2);
  const Disk disk = DiskOf(image);
  Nodes nodes(disk, 2);
  std::vector<TableOptions> more = Tables();
  more.push_back({.name = "more", .payload_bytes = 8});
  nodes.Open(1, {.directory = "/data", .files = disk}, more);
  for (const Status& status : nodes.StartAll()) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("has other tables than this node"));
  }
  EXPECT_TRUE(ImageOf(*disk) == image);
  ExpectAllRows(image, 2);
}

TEST(StartTogetherTest, ANodeThatDoesNotComeIsNamed) {
  const DiskImage image = CheckpointedByOneNode(3);
  for (const bool attached : {true, false}) {
    const Disk disk = DiskOf(image);
    Nodes nodes(disk, 3);
    if (!attached) nodes.Leave(2);
    std::vector<Status> started(2);
    std::vector<std::thread> threads;
    for (size_t node = 0; node < 2; ++node) {
      threads.emplace_back(
          [&, node] { started[node] = nodes.database(static_cast<int>(node)).Start(absl::Milliseconds(50)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : started) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_THAT(Message(status), HasSubstr("these nodes have not been started: 2."));
    }
    EXPECT_TRUE(ImageOf(*disk) == image);
  }
  ExpectAllRows(image, 3);
}

// The thread that recovers node 1 stops before it reads, for longer than node 0 waits for absent nodes. Then the node
// dies.
TEST(StartTogetherTest, ANodeThatRecoversIsWaitedForUntilItDies) {
  thread_local bool of_node_1 = false;
  for (const bool dies : {false, true}) {
    const DiskImage image = CheckpointedByOneNode(2);
    const Disk disk = DiskOf(image);
    Nodes nodes(disk, 2);
    std::atomic<bool> stands{false};
    std::atomic<bool> may_go_on{false};
    disk->SetOptions({.before = [&](log::DiskOperation, const std::string&) {
      if (!of_node_1 || may_go_on) return;
      stands = true;
      while (!may_go_on) std::this_thread::yield();
    }});
    Status started_1;
    std::thread node_1([&] {
      of_node_1 = true;
      started_1 = nodes.database(1).Start(absl::Milliseconds(10));
    });
    while (!stands) std::this_thread::yield();
    std::atomic<bool> ended{false};
    Status started_0;
    std::thread node_0([&] {
      started_0 = nodes.database(0).Start(absl::Milliseconds(10));
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(ended);
    EXPECT_TRUE(ImageOf(*disk) == image);
    if (dies) {
      nodes.fabric().Kill(1);
      node_0.join();
      EXPECT_TRUE(absl::IsDeadlineExceeded(started_0)) << started_0;
      EXPECT_THAT(Message(started_0), HasSubstr("these nodes have not been started: 1."));
      EXPECT_TRUE(ImageOf(*disk) == image);
      may_go_on = true;
      node_1.join();
      EXPECT_FALSE(started_1.ok());
      EXPECT_TRUE(ImageOf(*disk) == image);
    } else {
      may_go_on = true;
      node_0.join();
      node_1.join();
      EXPECT_TRUE(started_0.ok()) << started_0;
      EXPECT_TRUE(started_1.ok()) << started_1;
    }
  }
}

TEST(StartTogetherTest, ANodeWithoutADirectoryIsNoPartOfACluster) {
  const DiskImage image = CheckpointedByOneNode(2);
  const Disk disk = DiskOf(image);
  Nodes nodes(disk, 2);
  nodes.Open(1, {});
  ASSERT_TRUE(nodes.database(1).Start().ok());
  const Status started = nodes.database(0).Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(started)) << started;
  EXPECT_THAT(Message(started), HasSubstr("node 1 was opened without a directory"));
  EXPECT_TRUE(ImageOf(*disk) == image);
}

// The disk of one node fails when all have accepted. The others have begun by then: they learn why none of their
// transactions becomes durable, and do not wait for it.
TEST(StartTogetherTest, AFailureAfterAllAcceptedIsToldToTheOthers) {
  const DiskImage image = CheckpointedByOneNode(2);
  for (const char* at : {"/data/node-1/MANIFEST", "/data/node-1/new-segment-"}) {
    const Disk disk = DiskOf(image);
    DatabaseOptions options;
    options.durable_within = absl::Milliseconds(200);
    options.application = "a change of the manifest";
    Nodes nodes(disk, 2, options);
    std::atomic<bool> begun_0{false};
    disk->SetOptions({.before = [&](log::DiskOperation operation, const std::string& path) {
      const bool fails = operation == log::DiskOperation::kRename && path.find(at) != std::string::npos;
      while (fails && !begun_0) std::this_thread::yield();
    }});
    disk->Schedule({.operation = log::DiskOperation::kRename, .path_contains = at});
    std::vector<Status> started(2);
    std::thread node_1([&] { started[1] = nodes.database(1).Start(); });
    started[0] = nodes.database(0).Start();
    begun_0 = true;
    node_1.join();
    ASSERT_TRUE(started[0].ok()) << started[0];
    ASSERT_FALSE(started[1].ok()) << at;
    const Status done = nodes.database(0).Run([&](BlockingTransaction& t) {
      uint64_t key = kRows + 1;
      while (nodes.database(0).FindTable("rows")->OwnerOf(key, 0) != 0) ++key;
      return t.Insert(*nodes.database(0).FindTable("rows"), key, key);
    });
    EXPECT_THAT(Message(done), HasSubstr("the start of node 1 failed, so nothing becomes durable: "));
    EXPECT_THAT(Message(done), HasSubstr(Message(started[1])));
    const Status closed = nodes.database(0).Close();  // with node 1 open
    EXPECT_TRUE(closed.ok() || Message(closed).find("the start of node 1 failed") != std::string::npos) << closed;
    EXPECT_TRUE(nodes.database(1).Close().ok());
  }
}

}  // namespace start_together_test
}  // namespace gannet::txn
