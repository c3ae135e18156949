// Clusters of three nodes in one process whose tables change while they run, and what a crash leaves of such a change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/all_nodes.h"
#include "txn/durable/data_directory.h"
#include "txn/run/manual_transaction.h"

namespace gannet::txn {

inline constexpr int kNodes = 3;

inline std::vector<Database*> NodesOf(DurableCluster& cluster) {
  std::vector<Database*> nodes;
  for (int node = 0; node < kNodes; ++node) nodes.push_back(&cluster.database(node));
  return nodes;
}

inline TableOptions Spread(const std::string& name) {
  return HashTable(name, Placement::ByHash());
}

// Rows of every node.
inline void PutRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < 12; ++key) {
    const Status put = Put(cluster, table, key, value + key, static_cast<int>(key % kNodes));
    ASSERT_TRUE(put.ok()) << put;
  }
}

inline void ExpectRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < 12; ++key) {
    const StatusOr<uint64_t> got = Get(cluster, table, key, static_cast<int>((key + 1) % kNodes));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, value + key) << table << ", key " << key;
  }
}

// Repeats a change that waits for older transactions for a short time only: a slow machine may need longer.
inline Status Patiently(const std::function<Status()>& change) {
  Status done = change();
  for (int i = 0; i < 100 && absl::IsDeadlineExceeded(done); ++i) done = change();
  return done;
}

// While `change` waits for an older transaction, table "a" has this life on all nodes, and each node's accesses to the
// rows of every node return `code`, with `message`.
inline void ExpectNobodyUsesItDuring(const std::function<Status(const std::vector<Database*>&)>& change,
                                     Table::Life life, absl::StatusCode code, const std::string& message) {
  auto cluster = Open(NewDisk(), {Spread("a"), Spread("b")}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutRows(**cluster, "a", 100);
  const std::vector<Database*> nodes = NodesOf(**cluster);
  std::vector<const Table*> tables;
  for (Database* const node : nodes) tables.push_back(node->FindTable("a"));
  auto open = nodes[1]->Begin();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->Insert((*cluster)->table("b", 1), 1, uint64_t{1}).ok());
  std::jthread changes([&] {
    const Status done = change(nodes);
    EXPECT_TRUE(done.ok()) << done;
  });
  while (tables[0]->life() != life) SleepForNanos(1'000'000);
  SleepForNanos(20'000'000);
  for (size_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(tables[node]->life(), life) << node;
    for (uint64_t key = 0; key < 12; ++key) {
      auto late = nodes[node]->Begin();
      ASSERT_TRUE(late.ok()) << late.status();
      uint64_t value = 0;
      const Status got = (*late)->Get(*tables[node], key, &value);
      EXPECT_EQ(got.code(), code) << got;
      EXPECT_THAT(Message(got), testing::HasSubstr(message));
    }
  }
  EXPECT_TRUE(open->Commit().ok());
}

// Nodes without a directory. The last one is a client: it owns no rows, and may come back.
class NodesWithClient {
 public:
  NodesWithClient() {
    for (int node = 0; node < kNodes; ++node) {
      databases_.push_back(OpenNode(node));
      nodes_.push_back(databases_.back().get());
    }
  }

  const std::vector<Database*>& all() const { return nodes_; }
  Database& client() { return *nodes_.back(); }
  Status Start() {
    return OnAllNodes(nodes_, [](Database& node) { return node.Start(); });
  }
  // The client ends and comes back, without tables, and not started.
  Database& Reopen() {
    databases_.back().reset();
    databases_.back() = OpenNode(kNodes - 1);
    nodes_.back() = databases_.back().get();
    return client();
  }

 private:
  std::unique_ptr<Database> OpenNode(int node) {
    return *Database::Open(fabric_.get(), static_cast<rdma::NodeId>(node), {.data_nodes = kNodes - 1});
  }

  std::unique_ptr<rdma::ShmFabric> fabric_ =
      *rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{1} << 28});
  std::vector<std::unique_ptr<Database>> databases_;
  std::vector<Database*> nodes_;
};

// The names of the tables, which are the same on all nodes.
inline std::vector<std::string> NamesOnAll(DurableCluster& cluster) {
  std::vector<std::string> names = Names(cluster.database(0));
  for (int node = 1; node < kNodes; ++node) EXPECT_EQ(Names(cluster.database(node)), names) << node;
  return names;
}

inline log::Manifest ManifestOf(log::FileSystem& disk, int node) {
  return log::ReadManifest(disk, NodeDirectory("/data", node, kNodes)).value();
}

// What a crash leaves of a change that some nodes have noted: for each set of nodes, `after` with their manifests from
// `before`. The change itself is `change`, on a database that `make` has made.
using ChangeOfCluster = std::function<void(DurableCluster&)>;
inline void WithManifestsBehind(const std::vector<TableOptions>& tables, const ChangeOfCluster& make,
                                const ChangeOfCluster& change,
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

}  // namespace gannet::txn
