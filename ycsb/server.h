// Server: a node that lends its memory and answers calls. It owns the keys of one range: their records and their index.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "index/index.h"
#include "index/registry.h"
#include "index/service.h"
#include "index/xstore/xstore.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "rdma/slab.h"
#include "ycsb/key_space.h"
#include "ycsb/location_cache.h"

namespace gannet::ycsb {

using index::IndexKind;

struct ServerOptions {
  IndexKind index = IndexKind::kXStore;
  uint64_t expected_keys = 0;
  size_t value_bytes = 8;
  double fill = 0.5;        // of the leaves that are loaded
  uint32_t sub_models = 0;  // of learned kinds; 0: as many as its own rule gives
};

// Registered and private memory that a server with these keys takes, about, without what is inserted.
uint64_t BytesNeeded(const ServerOptions& options);
// While it loads, it takes this much more.
inline constexpr uint64_t kLoadBytesPerKey = sizeof(index::Entry);

class Server {
 public:
  // Attaches node `id`. `fabric` must outlive this.
  static StatusOr<std::unique_ptr<Server>> Create(rdma::Fabric* fabric, rdma::NodeId id, const ServerOptions& options);
  // Stops serving. All channels to this node are idle by then.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Once, before Start: loads the keys of ranks [first, end). `progress`, if not null, is called now and then with how
  // many are loaded. Cancelled soon after *stop (may be null) has become true.
  Status Load(const KeySpace& space, uint64_t first, uint64_t end, const std::function<void(uint64_t)>& progress,
              const std::atomic<bool>* stop);

  // After all nodes are attached. Answers calls by `threads` threads.
  Status Start(int threads);

  rdma::Node& node() { return *node_; }
  index::LocalIndex& index() { return *index_; }
  // Null if the index is not a learned one.
  index::XStore* xstore() { return xstore_; }
  rdma::SlabStatistics memory() const { return slab_->statistics(); }

  // From now on clients lock records by CAS, or this server's CPU does for them: where NICs' atomics are not atomic
  // with those of CPUs (fabric.h), only one of them may. An update that comes as a call in the first case is refused
  // there.
  void set_locked_by_clients(bool by_clients) { locked_by_clients_.store(by_clients, std::memory_order_relaxed); }

  // Puts the places of all records into *cache; nobody writes meanwhile.
  void FillLocations(LocationCache* cache);

  // What a walk over all records found; nobody writes meanwhile. DataLoss if a value is not its key's.
  struct Contents {
    uint64_t records = 0;
    uint64_t updates = 0;  // sum of what their versions say
  };
  StatusOr<Contents> Check();

 private:
  explicit Server(const ServerOptions& options) : options_(options) {}

  using Call = Status (Server::*)(index::Context&, rdma::WireReader&, rdma::WireWriter&);

  Status Open(rdma::Fabric* fabric, rdma::NodeId id);
  std::byte* At(rdma::GlobalAddress address) { return node_->memory().data() + address.offset(); }
  // A record that is locked and absent: *state is what NextState makes it present from.
  StatusOr<rdma::GlobalAddress> MakeRecord(index::Context& context, uint64_t key, std::span<const std::byte> value,
                                           uint64_t* state);

  // In server_calls.cc.
  void RegisterCalls();
  // False: another writer kept it locked.
  bool ReadRecord(const std::byte* record, std::span<std::byte> value) const;
  Status ServeGet(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeUpdate(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeInsert(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);
  Status ServeScan(index::Context& context, rdma::WireReader& request, rdma::WireWriter& response);

  const ServerOptions options_;
  std::unique_ptr<rdma::Node> node_;
  std::unique_ptr<rdma::SlabAllocator> slab_;
  std::unique_ptr<rdma::EpochManager> epochs_;
  std::unique_ptr<index::IndexService> service_;
  std::unique_ptr<index::LocalIndex> index_;
  index::XStore* xstore_ = nullptr;
  bool cpu_atomics_ = false;  // of the fabric
  std::atomic<bool> locked_by_clients_{false};
};

}  // namespace gannet::ycsb
