// Databases with a directory on a disk in memory (log/file/simulated/faulty_file_system.h), for tests of recovery.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"

namespace gannet::txn {

inline TableOptions HashTable(const std::string& name, Placement placement = Placement::OnFirstNode()) {
  return {.name = name, .payload_bytes = sizeof(uint64_t), .expected_rows = 1000, .placement = std::move(placement)};
}
inline TableOptions OrderedTable(const std::string& name, Placement placement = Placement::OnFirstNode()) {
  return {.name = name,
          .index = IndexKind::kXStore,
          .payload_bytes = sizeof(uint64_t),
          .expected_rows = 1000,
          .placement = std::move(placement)};
}

struct DurableOptions {
  int nodes = 1;
  bool create = true;  // if there is no database yet
  bool start = true;
  uint64_t bytes_per_node = uint64_t{1} << 30;
  DatabaseOptions database = {};
  std::vector<SecondaryIndexOptions> indexes = {};
  // Makes the fabric in front of the cluster's own one. Null: there is none.
  std::function<std::unique_ptr<rdma::Fabric>(rdma::Fabric* inner)> wrap = nullptr;
};

// All nodes of a cluster whose directories are on `disk`. A disk may serve several clusters, one after the other.
class DurableCluster {
 public:
  // Returns the error of Start, if any; the databases are usable only if it succeeded. Without a disk the nodes have no
  // directories.
  static StatusOr<std::unique_ptr<DurableCluster>> Open(const std::shared_ptr<log::FileSystem>& disk,
                                                        const std::vector<TableOptions>& tables,
                                                        const DurableOptions& options = {}) {
    std::unique_ptr<DurableCluster> cluster(new DurableCluster);
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = options.nodes, .bytes_per_node = options.bytes_per_node});
    if (!fabric.ok()) return fabric.status();
    cluster->inner_ = *std::move(fabric);
    if (options.wrap != nullptr) cluster->outer_ = options.wrap(cluster->inner_.get());
    for (int node = 0; node < options.nodes; ++node) {
      DatabaseOptions database_options = options.database;
      if (disk != nullptr) database_options.directory = "/data";
      database_options.create_if_missing = disk != nullptr && options.create;
      database_options.files = disk;
      // Small files, unless the test has its own: it may open a hundred databases, each of which reads them.
      if (database_options.log_segment_bytes == DatabaseOptions().log_segment_bytes) {
        database_options.log_segment_bytes = uint64_t{128} << 10;
      }
      auto database = Database::Open(cluster->fabric(), static_cast<rdma::NodeId>(node), database_options);
      if (!database.ok()) return database.status();
      for (const TableOptions& table : tables) {
        auto created = (*database)->CreateTable(table);
        if (!created.ok()) return created.status();
      }
      for (const SecondaryIndexOptions& index : options.indexes) {
        auto created = (*database)->CreateIndex(index);
        if (!created.ok()) return created.status();
      }
      cluster->nodes_.push_back(database->get());
      cluster->databases_.push_back(*std::move(database));
    }
    if (!options.start) return cluster;
    std::vector<Status> started(cluster->databases_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < started.size(); ++i) {
      threads.emplace_back([&, i] { started[i] = cluster->databases_[i]->Start(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : started) GANNET_RETURN_IF_ERROR(status);
    return cluster;
  }
  ~DurableCluster() { Close().IgnoreError(); }

  Database& database(int node = 0) { return *databases_[static_cast<size_t>(node)]; }
  const Table& table(const std::string& name, int node = 0) { return *database(node).FindTable(name); }
  // The databases, by node.
  const std::vector<Database*>& nodes() const { return nodes_; }
  // The node dies at once.
  void Kill(rdma::NodeId node) { inner_->Kill(node); }
  // Closes all nodes together.
  Status Close() {
    std::vector<Status> closed(databases_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < closed.size(); ++i) {
      threads.emplace_back([&, i] { closed[i] = databases_[i]->Close(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : closed) GANNET_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  DurableCluster() = default;
  rdma::Fabric* fabric() { return outer_ != nullptr ? outer_.get() : inner_.get(); }

  std::unique_ptr<rdma::ShmFabric> inner_;
  std::unique_ptr<rdma::Fabric> outer_;
  std::vector<std::unique_ptr<Database>> databases_;
  std::vector<Database*> nodes_;
};

}  // namespace gannet::txn
