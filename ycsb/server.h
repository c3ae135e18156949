// Server: a node that lends its memory and answers calls. It owns the keys of one range, with their records and their
// index.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"
#include "index/xstore/xstore.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "rdma/slab.h"
#include "txn/database.h"
#include "ycsb/key_space.h"
#include "ycsb/location_cache.h"
#include "ycsb/server_report.h"
#include "ycsb/write_log.h"

namespace gannet::ycsb {

using index::IndexKind;
using index::IndexRights;
using txn::DurabilityMode;

struct ServerOptions {
  IndexKind index = IndexKind::kXStore;
  IndexRights index_rights = IndexRights::kClients;  // as in ClusterOptions
  uint64_t expected_keys = 0;
  size_t value_bytes = 8;
  bool values_in_entries = false;                     // as in ClusterOptions
  double fill = 0.5;                                  // of loaded leaves
  uint32_t sub_models = 0;                            // of learned kinds; 0: chosen by the kind's own rule
  int trainers = 1;                                   // of learned kinds: threads that retrain sub-models
  std::string index_options = {};                     // as in ClusterOptions
  DurabilityMode durability = DurabilityMode::kNone;  // as in ClusterOptions, as is `disk`
  std::shared_ptr<log::FileSystem> disk = {};
};

// Approximate registered and private memory of a server with these keys, without inserted keys.
uint64_t BytesNeeded(const ServerOptions& options);
// Additional memory during the load.
inline constexpr uint64_t kLoadBytesPerKey = sizeof(index::Entry);

class Server {
 public:
  // Attaches node `id`. `fabric` must outlive the server. FailedPrecondition if the fabric's device is made of
  // software: it has no speed to measure.
  static StatusOr<std::unique_ptr<Server>> Create(rdma::Fabric* fabric, rdma::NodeId id, const ServerOptions& options);
  // Stops serving. All channels to this node must be idle.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Loads the keys of ranks [first, end); once, before any client uses the server. `progress`, if not null, is called
  // sometimes with the number of keys loaded so far. Cancelled soon after *stop (may be null) has become true.
  Status Load(const KeySpace& space, uint64_t first, uint64_t end, const std::function<void(uint64_t)>& progress,
              const std::atomic<bool>* stop);

  // Called when all nodes are attached. Answers calls with `threads` threads.
  Status Start(int threads);

  rdma::Node& node() { return *node_; }
  rdma::EpochManager& epochs() { return *epochs_; }
  index::LocalIndex& index() { return *index_; }
  // Null if the index is not a learned one.
  index::XStore* xstore() { return xstore_; }
  rdma::SlabStatistics memory() const { return slab_->statistics(); }
  rdma::SlabAllocator* slab() { return slab_.get(); }
  // The load that it announced last. Thread-safe.
  rdma::NodeLoad load() const { return epochs_->LoadOf(node_->id()); }
  // Walks over the index: slow. Thread-safe.
  ServerReport Report();

  // Says whether clients lock records by CAS, or this server's CPU does: where atomics of NICs are not atomic with
  // those of CPUs (fabric.h), only one of them may. There, an update by call is refused in the first case.
  void set_locked_by_clients(bool by_clients) { locked_by_clients_.store(by_clients, std::memory_order_relaxed); }

  // The place of the newest epoch that is durable, if writes are logged; else null.
  rdma::GlobalAddress durable_epoch() const { return durable_epoch_; }
  // Null if writes are not logged.
  log::Log* log() { return write_log_ == nullptr ? nullptr : &write_log_->log(); }

  // Puts the addresses of all records into *cache. No one may write at the same time.
  void FillLocations(LocationCache* cache);

  // Walks over all records, while no one writes. DataLoss if a value does not belong to its key.
  struct Contents {
    uint64_t records = 0;
    uint64_t updates = 0;  // sum of the records' versions; 0 if there are no records
  };
  StatusOr<Contents> Check();

 private:
  explicit Server(const ServerOptions& options) : options_(options) {}

  using Call = Status (Server::*)(index::Context&, rdma::WireReader&, rdma::WireWriter&);

  Status Open(rdma::Fabric* fabric, rdma::NodeId id);
  Status OpenLog();
  StatusOr<Contents> CheckEntries();
  std::byte* At(rdma::GlobalAddress address) { return node_->memory().data() + address.offset(); }
  // Makes a locked, absent record. *state is the state from which NextState makes it present.
  StatusOr<rdma::GlobalAddress> MakeRecord(index::Context& context, uint64_t key, std::span<const std::byte> value,
                                           uint64_t* state);

  // Defined in server_calls.cc.
  void RegisterCalls();
  // Returns false if another writer kept the record locked.
  bool ReadRecord(const std::byte* record, std::span<std::byte> value) const;
  // Puts a value into *value that a Find or a scan led to. False if another writer kept the record locked.
  bool ReadFound(rdma::GlobalAddress found, std::span<std::byte> value);
  Status UpdateEntry(uint64_t key, std::span<const std::byte> value);
  // What the client of a write waits for, if it waits.
  void PutEpoch(const WriteLog::Write& write, rdma::WireWriter& response) const;
  Status ServeGet(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeUpdate(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeInsert(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeScan(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeReport(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeModel(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeReserve(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);

  const ServerOptions options_;
  std::unique_ptr<rdma::Node> node_;
  std::unique_ptr<rdma::SlabAllocator> slab_;
  std::unique_ptr<rdma::EpochManager> epochs_;
  std::unique_ptr<index::IndexService> service_;
  std::unique_ptr<index::LocalIndex> index_;
  index::XStore* xstore_ = nullptr;
  std::unique_ptr<WriteLog> write_log_;  // null: writes are not logged
  rdma::GlobalAddress durable_epoch_;
  bool cpu_atomics_ = false;  // as the fabric says
  std::atomic<bool> locked_by_clients_{false};
  // Clients in other processes use these: the reserved numbers of keys to insert, and how many there are.
  std::atomic<uint64_t> reserved_inserts_{0};
  std::atomic<uint64_t> max_inserts_{0};
};

}  // namespace gannet::ycsb
