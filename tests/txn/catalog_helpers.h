// Short forms of what tests of the catalog do often.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/forwarding.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {

// A single node whose CPU may not lock its own records: it takes the path to another node.
class NicAtomics : public rdma::ForwardingFabric {
 public:
  explicit NicAtomics(rdma::Fabric* inner) : ForwardingFabric(inner), capabilities_(inner->capabilities()) {
    capabilities_.cpu_coherent_atomics = false;
  }
  const rdma::Capabilities& capabilities() const override { return capabilities_; }

 private:
  rdma::Capabilities capabilities_;
};

using Disk = std::shared_ptr<log::FaultyFileSystem>;

inline Disk NewDisk(uint64_t seed = 1) {
  return std::make_shared<log::FaultyFileSystem>(seed);
}

// Breaks the disk at the `at`-th operation on a manifest from now on, by a power cut or by one error. Counts these
// operations. SetOptions({}) ends it.
inline void BreakAtManifest(const Disk& disk, uint64_t at, bool power_cut, std::atomic<uint64_t>* operations) {
  disk->SetOptions(
      {.before = [disk = disk.get(), at, power_cut, operations](log::DiskOperation operation, const std::string& path) {
        const bool is_directory = path == "/data" || (path.starts_with("/data/node-") && path.rfind('/') == 5);
        if (path.find("MANIFEST") == std::string::npos && !is_directory) return;
        if (operations->fetch_add(1) + 1 != at) return;
        if (power_cut) {
          disk->PowerOff();
        } else {
          disk->Schedule({.operation = operation, .path_contains = path});
        }
      }});
}

inline std::string Message(const Status& status) {
  return std::string(status.message());
}

inline StatusOr<std::unique_ptr<DurableCluster>> Open(const Disk& disk, const std::vector<TableOptions>& tables = {},
                                                      int nodes = 1) {
  return DurableCluster::Open(disk, tables, {.nodes = nodes});
}

inline Status Put(DurableCluster& cluster, const std::string& table, uint64_t key, uint64_t value, int node = 0) {
  return cluster.database(node).Run(
      [&](BlockingTransaction& t) { return t.Upsert(cluster.table(table, node), key, value); });
}

// Rows [0, rows) with their keys as values, many in a transaction.
inline Status PutMany(DurableCluster& cluster, const std::string& table, uint64_t rows, int node = 0) {
  constexpr uint64_t kAtATime = 100;
  for (uint64_t from = 0; from < rows; from += kAtATime) {
    const Status put = cluster.database(node).Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = from; key < std::min(rows, from + kAtATime); ++key) {
        GANNET_RETURN_IF_ERROR(t.Upsert(cluster.table(table, node), key, key));
      }
      return absl::OkStatus();
    });
    GANNET_RETURN_IF_ERROR(put);
  }
  return absl::OkStatus();
}

// The number at the begin of a row, which may be longer.
inline StatusOr<uint64_t> Get(DurableCluster& cluster, const std::string& table, uint64_t key, int node = 0) {
  uint64_t value = 0;
  const Status status = cluster.database(node).Run(
      [&](BlockingTransaction& t) { return t.Get(cluster.table(table, node), key, &value, 0); });
  if (!status.ok()) return status;
  return value;
}

inline void ExpectMany(DurableCluster& cluster, const std::string& table, uint64_t rows, int node = 0) {
  const Status read = cluster.database(node).Run([&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < rows; ++key) {
      uint64_t value = 0;
      GANNET_RETURN_IF_ERROR(t.Get(cluster.table(table, node), key, &value, 0));
      EXPECT_EQ(value, key) << "node " << node;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
}

inline std::vector<std::string> Names(const Database& database) {
  std::vector<std::string> names;
  for (const Table* table : database.tables()) names.push_back(table->name());
  return names;
}

}  // namespace gannet::txn
