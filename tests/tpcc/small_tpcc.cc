#include "tests/tpcc/small_tpcc.h"

#include <thread>

#include "gtest/gtest.h"
#include "tpcc/table_scan.h"
#include "txn/all_nodes.h"

namespace gannet::tpcc {
namespace {

using txn::Transaction;

coro::Task<Status> DoRead(Transaction& transaction, const txn::Table& table, uint64_t key, std::span<std::byte> out) {
  Status status = co_await transaction.Get(table, key, out, 0);
  co_return status;
}

coro::Task<Status> DoWrite(Transaction& transaction, const txn::Table& table, uint64_t key,
                           std::span<const std::byte> payload) {
  Status status = co_await transaction.Update(table, key, payload);
  co_return status;
}

coro::Task<Status> DoInsert(Transaction& transaction, const txn::Table& table, uint64_t key,
                            std::span<const std::byte> payload) {
  co_return transaction.Insert(table, key, payload);
}

coro::Task<Status> DoRemove(Transaction& transaction, const txn::Table& table, uint64_t key) {
  Status status = co_await transaction.Remove(table, key);
  co_return status;
}

}  // namespace

std::unique_ptr<SmallTpcc> SmallTpcc::Make(const Options& options) {
  std::unique_ptr<SmallTpcc> small(new SmallTpcc);
  const Status status = small->Start(options);
  if (status.ok()) return small;
  ADD_FAILURE() << status;
  return nullptr;
}

Status SmallTpcc::Start(const Options& options) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = options.nodes,
                                            .bytes_per_node = uint64_t{256} << 20,
                                            .adversarial = options.adversarial,
                                            .seed = options.seed});
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  txn::DatabaseOptions database_options = options.database;
  database_options.data_nodes = options.data_nodes;
  for (int n = 0; n < options.nodes; ++n) {
    auto database = txn::Database::Open(fabric_.get(), static_cast<rdma::NodeId>(n), database_options);
    if (!database.ok()) return database.status();
    databases_.push_back(*std::move(database));
    nodes_.push_back(databases_.back().get());
    StatusOr<Tables> tables = Tables::Create(*nodes_.back(), {.warehouses = options.warehouses,
                                                              .scale = options.scale,
                                                              .ordered_index = options.ordered_index,
                                                              .index_rights = options.index_rights});
    if (!tables.ok()) return tables.status();
    all_tables_.push_back(*tables);
  }
  std::vector<Status> started(nodes_.size());
  std::vector<std::thread> threads;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    threads.emplace_back([this, n, &started] { started[n] = nodes_[n]->Start(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : started) GANNET_RETURN_IF_ERROR(status);
  if (options.load) {
    GANNET_RETURN_IF_ERROR(Load(nodes_, all_tables_, {.threads = 2, .seed = options.seed, .date = kLoadDate}, nullptr));
    for (txn::Database* node : nodes_) {
      if (!options.database.directory.empty()) GANNET_RETURN_IF_ERROR(node->Checkpoint());
    }
  }
  auto session = nodes_[0]->OpenSession();
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  return absl::OkStatus();
}

SmallTpcc::~SmallTpcc() {
  session_.reset();
  if (nodes_.size() > 1)
    txn::OnAllNodes(nodes_, [](txn::Database& database) { return database.Close(); }).IgnoreError();
  databases_.clear();
}

Status SmallTpcc::ReadBytes(const txn::Table& table, uint64_t key, std::span<std::byte> out) {
  return session_->RunBlocking([&](Transaction& transaction) { return DoRead(transaction, table, key, out); });
}

Status SmallTpcc::WriteBytes(const txn::Table& table, uint64_t key, std::span<const std::byte> payload) {
  return session_->RunBlocking([&](Transaction& transaction) { return DoWrite(transaction, table, key, payload); });
}

Status SmallTpcc::InsertBytes(const txn::Table& table, uint64_t key, std::span<const std::byte> payload) {
  return session_->RunBlocking([&](Transaction& transaction) { return DoInsert(transaction, table, key, payload); });
}

Status SmallTpcc::Remove(const txn::Table* table, uint64_t key) {
  return session_->RunBlocking([&](Transaction& transaction) { return DoRemove(transaction, *table, key); });
}

std::vector<uint64_t> SmallTpcc::Keys(const txn::Table* table, uint64_t from, uint64_t to) {
  std::vector<uint64_t> keys;
  txn::ScanRows rows;
  const Status status =
      ForEachRow(*session_, *table, from, to, &rows, {.keys_only = true},
                 [&](const txn::ScanRows& found, size_t i) { keys.push_back(found.key(i).integer()); });
  EXPECT_TRUE(status.ok()) << status;
  return keys;
}

std::set<int> SmallTpcc::FailingConditions() {
  StatusOr<std::vector<ConditionResult>> results = CheckConsistency(nodes_, all_tables_);
  if (!results.ok()) {
    ADD_FAILURE() << results.status();
    return {-1};
  }
  EXPECT_EQ(results->size(), static_cast<size_t>(kConditions));
  std::set<int> failing;
  for (const ConditionResult& result : *results) {
    if (!result.holds) failing.insert(result.condition);
  }
  return failing;
}

}  // namespace gannet::tpcc
