// Cluster: all nodes of the bench in this process, on any fabric: servers that hold the keys (nodes 0, 1, ...), and
// machines on which the client threads run (the nodes after them), as in XStore's evaluation (OSDI'20, section 7).
//
//   auto cluster = Cluster::Create(fabric, options);
//   (*cluster)->Load(progress);
//   (*cluster)->Start();
//   ... driver.h ...
//
// The object may also be one client machine in this process, whose servers are other processes: Attach instead of
// Create and Load.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "ycsb/key_space.h"
#include "ycsb/leaf_queues.h"
#include "ycsb/location_cache.h"
#include "ycsb/server.h"
#include "ycsb/value.h"

namespace gannet::ycsb {

inline constexpr int64_t kMaxKeys = 4'000'000'000;  // of all servers together

struct ClusterOptions {
  int servers = 1;
  int server_threads = 1;  // per server, for calls
  int machines = 1;
  // Machine i works on the node of server i, as in DEX (VLDB'24, section 8): there are as many of both.
  bool colocated = false;
  // Machine i works on a part of the keys that is its own (KeyPart), and claims its leaves if the kind of index has
  // claims. With servers in this process.
  bool partitioned = false;
  // Machines of partitioned keys keep leaves instead (index/shared_leaf/claim/claim.h), and hand them back at the end
  // of a run. With values in the entries.
  index::shared_leaf::Keeping keeping = index::shared_leaf::Keeping::kNone;
  KeyForm key_form = KeyForm::kLinear;
  uint64_t keys = 1'000'000;  // loaded, on all servers together
  IndexKind index = IndexKind::kXStore;
  std::string index_options = {};  // of this kind only (index/registry.h, read_options)
  // Rights of kinds that clients can change; for others they have no effect. With kOwnerOnly, inserts, and updates of
  // values in entries, are by calls.
  IndexRights index_rights = IndexRights::kClients;
  size_t value_bytes = kMinValueBytes;
  // Values lie in the entries of the index, in the place of a record's address; there are no records. Needs values of 8
  // bytes, and an index that holds values (index/registry.h).
  bool values_in_entries = false;
  double fill = 0.5;        // fill of loaded leaves; XStore's trees are half full
  uint32_t sub_models = 0;  // of each server's XStore; 0: chosen by its own rule
  int trainers = 1;         // of each server's XStore
  // Trains XStore's models before the first run. Otherwise a server trains no model until a client reads one-sided, so
  // training takes no time from a run by calls.
  bool train_models = true;
  // The durability of writes by calls, to records: each server logs them (write_log.h) on `disk`. kAsync: a write is
  // answered when it is in the log's buffer. kSync: its client then waits until it is durable. Reads do not wait.
  DurabilityMode durability = DurabilityMode::kNone;
  std::shared_ptr<log::FileSystem> disk = {};  // set if writes are logged; every server has a directory in it

  index::IndexTraits index_traits() const { return index::TraitsOf(index::EntryOf(index), index_rights); }
};

// The part of server `server`.
ServerOptions ServerOptionsOf(const ClusterOptions& options, const KeySpace& keys, int server);

// A machine for client threads: on a server's node, or on one of its own, which lends only the memory that the grace
// period needs.
struct Machine {
  ~Machine();
  // Caches that its threads share, one for each server; none if they do not share. See CacheOptions.
  std::vector<std::shared_ptr<index::xstore::CachedModel>> xcaches;
  std::vector<std::shared_ptr<index::SharedCache>> caches;  // of kinds whose clients change the index
  std::shared_ptr<index::CachePool> pool;                   // of these caches, if they have their memory in common
  std::shared_ptr<LeafQueues> queues;                       // of their leaves; null if its threads do not share
  std::shared_ptr<LeafQueues> read_queues;                  // the same for lookups
  std::shared_ptr<LocationCache> locations;
  std::unique_ptr<index::shared_leaf::ClaimHolder> claims;  // of partitioned keys; null: it claims nothing
  std::atomic<int> running = 0;                             // threads of the present run that have not ended
  rdma::Node* node = nullptr;
  rdma::EpochManager* epochs = nullptr;
  // Null on a server's node.
  std::unique_ptr<rdma::Node> own_node;
  std::unique_ptr<rdma::SlabAllocator> own_slab;
  std::unique_ptr<rdma::EpochManager> own_epochs;
};

class Cluster {
 public:
  // `fabric` has servers + machines nodes (colocated: as many as servers) and must outlive the cluster. InvalidArgument
  // says which option is wrong.
  static StatusOr<std::unique_ptr<Cluster>> Create(rdma::Fabric* fabric, const ClusterOptions& options);
  // The client machine at node `node`. The servers are other processes with the data of `options` (whose machines and
  // server_threads do not count). FailedPrecondition if `node` is taken.
  static StatusOr<std::unique_ptr<Cluster>> Attach(rdma::Fabric* fabric, rdma::NodeId node,
                                                   const ClusterOptions& options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // `progress` (may be null) gets the number of keys loaded so far on all servers. Cancelled soon after *stop (may be
  // null) has become true; the cluster is unusable then.
  Status Load(const std::function<void(uint64_t)>& progress, const std::atomic<bool>* stop = nullptr);
  // Begins to serve, and waits until the servers' models are trained (if train_models). Cancelled as in Load.
  Status Start(const std::atomic<bool>* stop = nullptr);

  const ClusterOptions& options() const { return options_; }
  const KeySpace& keys() const { return keys_; }
  rdma::Fabric& fabric() { return *fabric_; }
  // True if the servers are in this process. If not, there is one machine.
  bool has_servers() const { return !servers_.empty(); }
  // Valid only if has_servers().
  Server& server(int i) { return *servers_[static_cast<size_t>(i)]; }
  Machine& machine(int i) { return *machines_[static_cast<size_t>(i)]; }

  // The reports of all servers. Walks over their indexes: slow. Unavailable if one is gone.
  StatusOr<std::vector<ServerReport>> Report();

  // End of the numbers of inserted keys (KeySpace::InsertedKey) used so far: the next run continues from here.
  uint64_t inserts_end() const { return inserts_end_; }
  void set_inserts_end(uint64_t end) { inserts_end_ = end; }

 private:
  Cluster(rdma::Fabric* fabric, const ClusterOptions& options);
  Status OpenServers();
  Status OpenMachine(rdma::NodeId node);
  void AddMachine(Server* server);
  // For claims, if the keys are partitioned and the kind of index has claims.
  Status GiveBoard(Machine* machine, rdma::SlabAllocator* slab) const;
  Status TrainModels(const std::atomic<bool>* stop);

  rdma::Fabric* fabric_;
  const ClusterOptions options_;
  KeySpace keys_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Machine>> machines_;  // destroyed before the servers
  uint64_t inserts_end_ = 0;
};

}  // namespace gannet::ycsb
