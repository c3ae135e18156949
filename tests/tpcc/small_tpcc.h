// A small loaded TPC-C in this process, with blocking access to single rows.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "rdma/shm/shm_fabric.h"
#include "tpcc/consistency.h"
#include "tpcc/loader.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

class SmallTpcc {
 public:
  struct Options {
    int nodes = 1;
    int data_nodes = 0;
    uint32_t warehouses = 2;
    Scale scale = {.items = 100, .customers_per_district = 30};
    txn::IndexKind ordered_index = txn::IndexKind::kXStore;
    std::optional<txn::IndexRights> index_rights = {};
    uint64_t seed = 1;
    bool adversarial = false;
    bool load = true;
    txn::DatabaseOptions database = {};  // except for data_nodes
  };
  static constexpr Date kLoadDate = 1'600'000'000;

  // Returns null, and fails the current test, if something goes wrong.
  static std::unique_ptr<SmallTpcc> Make(const Options& options);
  ~SmallTpcc();

  std::span<txn::Database* const> nodes() const { return nodes_; }
  std::span<const Tables> tables() const { return all_tables_; }
  const Tables& table() const { return all_tables_[0]; }  // of node 0, whose session is session()
  txn::Session& session() { return *session_; }

  template <class Row>
  std::optional<Row> Read(const txn::Table* table, uint64_t key) {
    Row row;
    const Status status = ReadBytes(*table, key, std::as_writable_bytes(std::span(&row, 1)));
    if (!status.ok()) return std::nullopt;
    return row;
  }
  bool Exists(const txn::Table* table, uint64_t key) { return ReadBytes(*table, key, {}).ok(); }

  template <class Row>
  Status Write(const txn::Table* table, uint64_t key, const Row& row) {
    return WriteBytes(*table, key, std::as_bytes(std::span(&row, 1)));
  }
  template <class Row>
  Status Insert(const txn::Table* table, uint64_t key, const Row& row) {
    return InsertBytes(*table, key, std::as_bytes(std::span(&row, 1)));
  }
  Status InsertBytes(const txn::Table& table, uint64_t key, std::span<const std::byte> payload);
  Status Remove(const txn::Table* table, uint64_t key);

  // The table's keys in [from, to].
  std::vector<uint64_t> Keys(const txn::Table* table, uint64_t from, uint64_t to);

  // The numbers of the conditions that do not hold; {-1} if they could not be evaluated.
  std::set<int> FailingConditions();

 private:
  Status Start(const Options& options);
  Status ReadBytes(const txn::Table& table, uint64_t key, std::span<std::byte> out);
  Status WriteBytes(const txn::Table& table, uint64_t key, std::span<const std::byte> payload);

  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> databases_;
  std::vector<txn::Database*> nodes_;
  std::vector<Tables> all_tables_;
  std::unique_ptr<txn::Session> session_;
};

}  // namespace gannet::tpcc
