// Helpers for tests in which the tables of one node, or of several nodes of one process, change while they run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/table_kinds.h"
#include "txn/all_nodes.h"
#include "txn/durable/data_directory.h"
#include "txn/run/session.h"

namespace gannet::txn {

inline constexpr int kNodes = 3;

// A suite that one node passes, and several nodes pass together. Instantiate it with testing::Values(1, kNodes) and
// NameOfNodes.
class NodesTest : public testing::TestWithParam<int> {
 protected:
  static int nodes() { return GetParam(); }
  // A node that is not the first one, if there is one.
  static int last() { return GetParam() - 1; }
};
inline std::string NameOfNodes(const testing::TestParamInfo<int>& info) {
  return info.param == 1 ? "OneNode" : "SeveralNodes";
}

using Databases = std::vector<Database*>;  // by node

// Changes of the tables of all nodes: functions of Database for one node, and of all_nodes.h for several.
inline Status Create(const Databases& nodes, const TableOptions& options) {
  return nodes.size() == 1 ? nodes[0]->CreateTable(options).status() : CreateTableOnAllNodes(nodes, options);
}
inline Status Rename(const Databases& nodes, std::string_view from, const std::string& to) {
  return nodes.size() == 1 ? nodes[0]->RenameTable(from, to) : RenameTableOnAllNodes(nodes, from, to);
}
inline Status Drop(const Databases& nodes, std::string_view name) {
  return nodes.size() == 1 ? nodes[0]->DropTable(name) : DropTableOnAllNodes(nodes, name);
}
inline Status Widen(const Databases& nodes, std::string_view name, size_t payload_bytes) {
  return nodes.size() == 1 ? nodes[0]->WidenTable(name, payload_bytes)
                           : WidenTableOnAllNodes(nodes, name, payload_bytes);
}
inline Status CreateIndex(const Databases& nodes, const SecondaryIndexOptions& options) {
  return nodes.size() == 1 ? nodes[0]->CreateIndex(options).status() : CreateIndexOnAllNodes(nodes, options);
}

inline Status CheckpointOf(const Databases& nodes) {
  return OnAllNodes(nodes, [](Database& node) { return node.Checkpoint(); });
}

// Repeats a change that waits for older transactions for a short time only: a slow machine may need longer.
inline Status Patiently(const std::function<Status()>& change) {
  Status done = change();
  for (int i = 0; i < 100 && absl::IsDeadlineExceeded(done); ++i) done = change();
  return done;
}

// Opens and starts the nodes. The test fails, and ends, if that is not possible.
inline std::unique_ptr<DurableCluster> OpenNodes(const Disk& disk, int nodes,
                                                 const std::vector<TableOptions>& tables = {},
                                                 DurableOptions options = {}) {
  options.nodes = nodes;
  options.bytes_per_node = std::min(options.bytes_per_node, uint64_t{1} << 28);
  auto cluster = DurableCluster::Open(disk, tables, options);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return std::move(cluster).value();
}
// Opens the nodes with what a crash at this moment would leave on the disk.
inline std::unique_ptr<DurableCluster> OpenAfterCrash(const Disk& disk, int nodes, uint64_t seed = 1) {
  return OpenNodes(disk->CrashedCopy(seed), nodes);
}

// Tables whose rows are spread over the nodes.
inline TableOptions Spread(const std::string& name) {
  return HashTable(name, Placement::ByHash());
}
inline TableOptions SpreadOrdered(const std::string& name) {
  return OrderedTable(name, Placement::ByHash());
}
inline std::vector<TableOptions> SpreadKinds(size_t payload_bytes, bool variable_length) {
  std::vector<TableOptions> kinds = AllKinds(payload_bytes, variable_length);
  for (TableOptions& options : kinds) options.placement = Placement::ByHash();
  return kinds;
}

inline constexpr uint64_t kRows = 12;

// Writes rows of every node, from every node. The value of row `key` is value + key.
inline void PutRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < kRows; ++key) {
    const Status put = Put(cluster, table, key, value + key, static_cast<int>(key % cluster.nodes().size()));
    ASSERT_TRUE(put.ok()) << put;
  }
}
// Writes such rows with checkpoints of all nodes in the middle. Half of the rows are newer than the checkpoints.
inline void PutRowsWithCheckpoints(DurableCluster& cluster, const std::string& table, uint64_t value) {
  PutRows(cluster, table, value);
  for (uint64_t key = 0; key < kRows; key += 2) ASSERT_TRUE(Put(cluster, table, key, 1'000'000 + key).ok());
  const Status taken = CheckpointOf(cluster.nodes());
  ASSERT_TRUE(taken.ok()) << taken;
  for (uint64_t key = 0; key < kRows; key += 2) ASSERT_TRUE(Put(cluster, table, key, value + key).ok());
}
// Expects these rows. Each row is read by another node than the one that wrote it, if there are several.
inline void ExpectRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < kRows; ++key) {
    const StatusOr<uint64_t> got = Get(cluster, table, key, static_cast<int>((key + 1) % cluster.nodes().size()));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, value + key) << table << ", key " << key;
  }
}

// Returns what look(database) finds, and expects it to be equal on all nodes.
template <class Look>
auto OnAll(DurableCluster& cluster, const Look& look) {
  const auto first = look(cluster.database(0));
  for (Database* const node : cluster.nodes()) EXPECT_EQ(look(*node), first) << "node " << node->node_id();
  return first;
}
inline std::vector<std::string> NamesOnAll(DurableCluster& cluster) {
  return OnAll(cluster, [](const Database& node) { return Names(node); });
}
inline size_t SizeOnAll(DurableCluster& cluster, const std::string& table) {
  return OnAll(cluster, [&](const Database& node) { return node.FindTable(table)->payload_bytes(); });
}

// Number of keys of a table in the parts of all nodes.
inline uint64_t KeysOnAll(DurableCluster& cluster, const std::string& table) {
  uint64_t keys = 0;
  for (Database* const node : cluster.nodes()) {
    for (const TableStatistics& statistics : node->table_statistics()) {
      if (statistics.table == table) keys += statistics.index.keys;
    }
  }
  return keys;
}

inline std::string DirectoryOf(int node, int nodes) {
  return NodeDirectory("/data", node, nodes);
}
inline std::string PathOfManifest(int node, int nodes) {
  return DirectoryOf(node, nodes) + "/MANIFEST";
}
inline log::Manifest ManifestOf(log::FileSystem& disk, int node, int nodes = kNodes) {
  return log::ReadManifest(disk, DirectoryOf(node, nodes)).value();
}
// No write of a file whose path contains this succeeds any more, after the first `after` of them. Heal ends it.
inline void FailWrites(log::FaultyFileSystem& disk, const std::string& path, uint64_t after = 0) {
  disk.Schedule({.operation = log::DiskOperation::kWrite, .after = after, .times = 1'000'000, .path_contains = path});
}

inline uint64_t TakenBytes(const Database& database) {
  const rdma::SlabStatistics memory = database.memory_statistics();
  return memory.carved_bytes - memory.free_bytes;
}
// Blocks whose grace period is not over are free a little later.
inline void ExpectTakenBytes(const Database& database, uint64_t most) {
  const uint64_t deadline = NowNanos() + 10'000'000'000;
  while (TakenBytes(database) > most && NowNanos() < deadline) SleepForNanos(10'000'000);
  EXPECT_LE(TakenBytes(database), most) << "node " << database.node_id();
}

// How sessions reach rows: a node that is alone may have to take the path to another node.
struct Way {
  ReadPathPolicy path = ReadPathPolicy::kAdaptive;
  bool nic_atomics = false;

  DurableOptions Options() const {
    DurableOptions options{.database = {.read_path = path}};
    if (nic_atomics) options.wrap = [](rdma::Fabric* inner) { return std::make_unique<NicAtomics>(inner); };
    return options;
  }
};
inline std::vector<Way> WaysOf(int nodes) {
  if (nodes == 1) return {{}, {.nic_atomics = true}};
  return {{.path = ReadPathPolicy::kOneSided}, {.path = ReadPathPolicy::kCall}};
}
inline std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << "read path " << static_cast<int>(way.path) << (way.nic_atomics ? ", as from another node" : "");
}

// Opens a session of each node.
inline std::vector<std::unique_ptr<Session>> OpenSessions(DurableCluster& cluster) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (Database* const node : cluster.nodes()) sessions.push_back(node->OpenSession().value());
  return sessions;
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

  const Databases& all() const { return nodes_; }
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
  Databases nodes_;
};

// Calls `check` with what a crash may leave of `change`, which some nodes have noted: for each set of nodes, their
// manifests are those from before the change. `make` prepares the nodes for the change.
using ChangeOfCluster = std::function<void(DurableCluster&)>;
inline void WithManifestsBehind(const std::vector<TableOptions>& tables, const ChangeOfCluster& make,
                                const ChangeOfCluster& change,
                                const std::function<void(DurableCluster&, bool all_behind)>& check) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    const auto cluster = OpenNodes(disk, kNodes, tables);
    make(*cluster);
    before = ImageOf(*disk);
    change(*cluster);
  }
  const DiskImage after = ImageOf(*disk);
  for (unsigned behind = 0; behind < 1U << kNodes; ++behind) {
    SCOPED_TRACE(testing::Message() << "behind: nodes of the bits " << behind);
    DiskImage image = after;
    for (int node = 0; node < kNodes; ++node) {
      const std::string path = PathOfManifest(node, kNodes);
      if ((behind >> node & 1U) != 0) image[path] = before.at(path);
    }
    const Disk crashed = DiskOf(image);
    // The second start reads what the first one has written.
    for (int start = 0; start < 2; ++start) {
      const auto cluster = OpenNodes(crashed, kNodes);
      check(*cluster, behind == (1U << kNodes) - 1);
      ASSERT_TRUE(cluster->Close().ok());
      for (int node = 1; node < kNodes; ++node) {
        EXPECT_EQ(ManifestOf(*crashed, node).catalog_generation, ManifestOf(*crashed, 0).catalog_generation);
        EXPECT_EQ(ManifestOf(*crashed, node).tables, ManifestOf(*crashed, 0).tables);
      }
    }
  }
}

}  // namespace gannet::txn
