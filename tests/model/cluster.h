// The databases of a world: all nodes in this process, on one fabric and one disk in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "log/file/simulated/faulty_file_system.h"
#include "tests/model/fabrics.h"
#include "tests/model/generator.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::model {

class Cluster {
 public:
  // `world` must outlive it.
  explicit Cluster(const World* world) : world_(*world) {}
  ~Cluster();

  // Opens all nodes, with sessions. After Close or Crash: on another fabric and the same disk.
  Status Open();
  // Closes the sessions, then all nodes together.
  Status Close();
  // Cuts the power; only the current content of the disk stays.
  void Crash();
  // Waits until all that was committed is durable.
  void AwaitDurable();
  // Changes of the tables of all nodes, by the functions of txn/all_nodes.h; half of the worlds of one node use those
  // of Database. Adopt finds the tables and indexes of the world again.
  Status Create(const txn::TableOptions& options);
  Status CreateIndex(const txn::SecondaryIndexOptions& options);
  Status Rename(const std::string& from, const std::string& to);
  Status Widen(const std::string& name, size_t payload_bytes);
  Status Arrange(const std::string& name);  // on the first node
  Status Drop(const std::string& name);
  Status Adopt();
  // Drops a table and creates it again, empty, as the world says now; with its indexes.
  Status Recreate(size_t table);
  // Drops the indexes of a table, and builds them again over its rows.
  Status RecreateIndexes(size_t table);
  Status Checkpoint();
  // Runs `action` for all nodes at once. The error names the node and `what`.
  Status InParallel(const char* what, const std::function<Status(size_t node)>& action);

  TestBed& bed() { return *bed_; }
  // True if there is no data from before the last Open.
  bool fresh() const { return !world_.directory || opened_ == 1; }
  size_t nodes() const { return databases_.size(); }
  txn::Database& database(size_t node) { return *databases_[node]; }
  const txn::Table& table(size_t node, size_t table) const { return *tables_[node][table]; }
  const txn::SecondaryIndex& index(size_t node, size_t index) const { return *indexes_[node][index]; }
  txn::Session& session(size_t node, size_t number) { return *sessions_[node][number]; }

 private:
  std::vector<txn::Database*> AllNodes() const;
  bool is_alone() const { return world_.nodes == 1 && world_.seed % 2 == 0; }
  Status CheckKnown(const txn::Database& database) const;
  void Destroy();
  Status DropIndexes(size_t table);
  Status CreateIndexes(size_t table);

  const World& world_;
  std::shared_ptr<log::FaultyFileSystem> disk_;
  std::unique_ptr<TestBed> bed_;
  std::vector<std::unique_ptr<txn::Database>> databases_;
  std::vector<std::vector<const txn::Table*>> tables_;            // by node
  std::vector<std::vector<const txn::SecondaryIndex*>> indexes_;  // by node
  std::vector<std::vector<std::unique_ptr<txn::Session>>> sessions_;
  uint64_t opened_ = 0;
};

}  // namespace gannet::model
