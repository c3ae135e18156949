#include "tests/model/cluster.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "txn/all_nodes.h"

namespace gannet::model {
namespace {

constexpr uint64_t kPatienceNanos = 60'000'000'000;

Status Named(const std::string& what, const Status& status) {
  return status.ok() ? status : Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

Cluster::~Cluster() {
  sessions_.clear();
  Destroy();
}

Status Cluster::InParallel(const char* what, const std::function<Status(size_t node)>& action) {
  std::vector<Status> results(databases_.size());
  {
    std::vector<Thread> threads;
    for (size_t node = 0; node < results.size(); ++node) {
      threads.emplace_back("node", [&results, &action, node] { results[node] = action(node); });
    }
    for (Thread& thread : threads) thread.join();
  }
  for (size_t node = 0; node < results.size(); ++node) {
    GANNET_RETURN_IF_ERROR(Named(absl::StrCat(what, " of node ", node), results[node]));
  }
  return absl::OkStatus();
}

Status Cluster::Open() {
  ++opened_;
  bed_ = std::make_unique<TestBed>(world_.fabric, world_.nodes, Mix64(world_.seed) + opened_);
  if (world_.directory && disk_ == nullptr) disk_ = std::make_shared<log::FaultyFileSystem>(world_.seed);
  for (int node = 0; node < world_.nodes; ++node) {
    txn::DatabaseOptions options{.data_nodes = world_.data_nodes,
                                 .read_path = world_.read_path,
                                 .call_timeout = bed_->call_timeout(),
                                 .run_sessions = world_.run_sessions,
                                 .seed = world_.seed};
    if (world_.directory) {
      options.directory = "/data";
      options.create_if_missing = opened_ == 1;
      options.files = disk_;
      options.durability = world_.durability;
      options.durable_within = absl::Nanoseconds(kPatienceNanos);
      options.log_segment_bytes = uint64_t{8} << 20;
      if (world_.log_bytes != 0) {
        options.log_buffer_bytes = txn::kMinLogBuffer;
        options.log_large_buffer_bytes = world_.log_bytes;
      }
    }
    auto database = txn::Database::Open(bed_->fabric(), static_cast<rdma::NodeId>(node), options);
    GANNET_RETURN_IF_ERROR(Named("Open", database.status()));
    GANNET_RETURN_IF_ERROR(CheckKnown(**database));
    std::vector<const txn::Table*> tables;
    for (const TableSpec& spec : world_.tables) {
      const auto table = (*database)->CreateTable(spec.options);
      GANNET_RETURN_IF_ERROR(Named("CreateTable", table.status()));
      tables.push_back(*table);
    }
    std::vector<const txn::SecondaryIndex*> indexes;
    for (const IndexSpec& spec : world_.indexes) {
      const auto index = (*database)->CreateIndex(spec.options);
      GANNET_RETURN_IF_ERROR(Named("CreateIndex", index.status()));
      indexes.push_back(*index);
    }
    indexes_.push_back(std::move(indexes));
    databases_.push_back(*std::move(database));
    tables_.push_back(std::move(tables));
  }
  GANNET_RETURN_IF_ERROR(InParallel("Start", [this](size_t node) { return databases_[node]->Start(); }));
  for (const auto& database : databases_) {
    auto& sessions = sessions_.emplace_back();
    for (size_t i = 0; i < kSessionsPerNode; ++i) {
      auto session = database->OpenSession();
      GANNET_RETURN_IF_ERROR(Named("OpenSession", session.status()));
      sessions.push_back(*std::move(session));
    }
  }
  return absl::OkStatus();
}

// Called after the directory was opened: it has no table that was dropped.
Status Cluster::CheckKnown(const txn::Database& database) const {
  for (const txn::Table* const table : database.tables()) {
    const auto is_it = [table](const auto& spec) { return spec.options.name == table->name(); };
    if (std::ranges::any_of(world_.tables, is_it) || std::ranges::any_of(world_.indexes, is_it)) continue;
    return absl::InternalError(absl::StrCat("the directory has a table or index '", table->name(), "'"));
  }
  return absl::OkStatus();
}

// Nodes also wait for each other when they are destroyed.
void Cluster::Destroy() {
  InParallel("destroy", [this](size_t node) {
    databases_[node].reset();
    return absl::OkStatus();
  }).IgnoreError();
  databases_.clear();
  tables_.clear();
  indexes_.clear();
}

Status Cluster::Close() {
  sessions_.clear();
  Status closed = InParallel("Close", [this](size_t node) { return databases_[node]->Close(); });
  Destroy();
  return closed;
}

void Cluster::Crash() {
  disk_->PowerOff();
  sessions_.clear();
  Destroy();
  disk_->PowerOn();
}

void Cluster::AwaitDurable() {
  const uint64_t deadline = NowNanos() + kPatienceNanos;
  for (const auto& database : databases_) {
    const uint64_t logged = database->logged_epoch();
    while (database->durable_epoch() < logged && NowNanos() < deadline) SleepForNanos(100'000);
  }
}

std::vector<txn::Database*> Cluster::AllNodes() const {
  std::vector<txn::Database*> nodes;
  for (const auto& database : databases_) nodes.push_back(database.get());
  return nodes;
}

Status Cluster::Create(const txn::TableOptions& options) {
  return Named("CreateTable", is_alone() ? databases_.front()->CreateTable(options).status()
                                         : txn::CreateTableOnAllNodes(AllNodes(), options));
}

Status Cluster::CreateIndex(const txn::SecondaryIndexOptions& options) {
  return Named("CreateIndex", is_alone() ? databases_.front()->CreateIndex(options).status()
                                         : txn::CreateIndexOnAllNodes(AllNodes(), options));
}

Status Cluster::Rename(const std::string& from, const std::string& to) {
  return Named("RenameTable", is_alone() ? databases_.front()->RenameTable(from, to)
                                         : txn::RenameTableOnAllNodes(AllNodes(), from, to));
}

Status Cluster::Widen(const std::string& name, size_t payload_bytes) {
  return Named("WidenTable", is_alone() ? databases_.front()->WidenTable(name, payload_bytes)
                                        : txn::WidenTableOnAllNodes(AllNodes(), name, payload_bytes));
}

Status Cluster::Arrange(const std::string& name) {
  return Named("ArrangeTable", databases_.front()->ArrangeTable(name));
}

Status Cluster::Drop(const std::string& name) {
  return Named("DropTable",
               is_alone() ? databases_.front()->DropTable(name) : txn::DropTableOnAllNodes(AllNodes(), name));
}

Status Cluster::Adopt() {
  for (size_t node = 0; node < databases_.size(); ++node) {
    tables_[node].clear();
    indexes_[node].clear();
    for (const TableSpec& spec : world_.tables) {
      tables_[node].push_back(databases_[node]->FindTable(spec.options.name));
      const txn::Table* const table = tables_[node].back();
      if (table == nullptr) return absl::InternalError("a node does not find a table");
      if (table->key_form() != spec.options.key_form) return absl::InternalError("a table has another form of keys");
    }
    for (const IndexSpec& spec : world_.indexes) {
      indexes_[node].push_back(databases_[node]->FindIndex(spec.options.name));
      if (indexes_[node].back() == nullptr) return absl::InternalError("a node does not find an index");
    }
  }
  return absl::OkStatus();
}

Status Cluster::Recreate(size_t table) {
  const TableSpec& spec = world_.tables[table];
  GANNET_RETURN_IF_ERROR(DropIndexes(table));
  GANNET_RETURN_IF_ERROR(Drop(spec.options.name));
  for (const auto& tables : tables_) {
    if (tables[table]->state() != txn::Table::State::kDropped) return absl::InternalError("a table was not dropped");
  }
  GANNET_RETURN_IF_ERROR(Create(spec.options));
  return CreateIndexes(table);
}

Status Cluster::RecreateIndexes(size_t table) {
  GANNET_RETURN_IF_ERROR(DropIndexes(table));
  return CreateIndexes(table);
}

Status Cluster::DropIndexes(size_t table) {
  for (const IndexSpec& spec : world_.indexes) {
    if (spec.table == table) GANNET_RETURN_IF_ERROR(Drop(spec.options.name));
  }
  return absl::OkStatus();
}

Status Cluster::CreateIndexes(size_t table) {
  for (const IndexSpec& spec : world_.indexes) {
    if (spec.table == table) GANNET_RETURN_IF_ERROR(CreateIndex(spec.options));
  }
  return Adopt();
}

Status Cluster::Checkpoint() {
  return InParallel("Checkpoint", [this](size_t node) { return databases_[node]->Checkpoint(); });
}

}  // namespace gannet::model
