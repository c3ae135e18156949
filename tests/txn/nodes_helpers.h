// Clusters of three nodes in one process whose tables change while they run, and what a crash leaves of such a change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "log/checkpoint.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/data_directory.h"

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

// The same on all nodes.
inline std::vector<std::string> NamesOnAll(DurableCluster& cluster) {
  const std::vector<std::string> names = Names(cluster.database(0));
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
