// State shared by the nodes and channels of a sim fabric and by the operations in flight between them. It lives as long
// as the simulation, because events point to it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/random.h"
#include "base/ring_queue.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "rdma/sim/nic.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/spread.h"
#include "rdma/verb_check.h"

namespace gannet::rdma::sim {

class SimChannel;
class Flight;
class CallFlight;
struct Batch;
class FabricCore;

inline constexpr int kMaxSimChannelsPerNode = 127;  // lock words have another use for number 127
inline constexpr uint64_t kSimHeapOffset = 4096;

// Anonymous memory pages, initially zero.
class Mapping {
 public:
  explicit Mapping(uint64_t bytes);  // data() is null if the address space of the process is exhausted
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  uint64_t bytes_;
};

// A node from Attach until it leaves or dies. Never freed, because operations in flight may point to it.
struct Attachment {
  enum class Phase : uint8_t { kAttached, kLeft, kDead };

  Attachment(NodeId the_id, uint64_t the_number, uint64_t bytes) : id(the_id), number(the_number), memory(bytes) {}

  bool there() const { return phase == Phase::kAttached; }
  // True if the other nodes know that it is gone.
  bool known_gone(uint64_t now) const { return !there() && now >= known_at; }

  const NodeId id;
  // Of connections to it. Different from those of all fabrics of the process: what the threads of a dead node have left
  // may outlive their fabric, and must not take a later connection for their own.
  const uint64_t number;
  const Mapping memory;
  Phase phase = Phase::kAttached;
  uint64_t gone_at = UINT64_MAX;
  uint64_t known_at = UINT64_MAX;
  uint64_t verbs_to_live = 0;  // it dies with the last of them; 0: unlimited
  std::bitset<kMaxSimChannelsPerNode> used_channels;
  std::array<SimChannel*, kMaxSimChannelsPerNode> channels{};
  // Calls that wait to be served here.
  const std::unordered_map<MethodId, Handler>* handlers = nullptr;  // the node's
  RingQueue<CallFlight*> requests;
  std::vector<Runtime::Thread*> servers;
  size_t parked_servers = 0;
  // Used with Serving::kPolling and kEvents: the calls for each server thread, by its number; and the thread of each
  // connection, by the caller's node and channel. A thread without a connection has nothing to poll.
  struct ServerQueue {
    RingQueue<CallFlight*> requests;
    bool connected = false;
  };
  std::vector<std::unique_ptr<ServerQueue>> queues;
  absl::flat_hash_map<uint32_t, size_t> connections;
  std::vector<uint64_t> serving_workers;  // fibers that call ServePending
  size_t next_worker = 0;
  bool observer_serves = false;  // the observer is one of serving_workers
};

// Reusable records of one type. All are freed with the pool.
template <class T>
class Pool {
 public:
  template <class... Args>
  T* Take(Args&&... args) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
      return all_.back().get();
    }
    T* taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void Return(T* record) { free_.push_back(record); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

// Wakes a channel at the earliest deadline of its calls.
struct DeadlineTimer final : Happening {
  explicit DeadlineTimer(FabricCore* the_core) : Happening(4), core(the_core) {}
  void Happen() override;

  FabricCore* core;
  SimChannel* channel = nullptr;  // null: the channel does not need it any more
  uint64_t at = 0;
};

class FabricCore final : public Happening {
 public:
  FabricCore(Simulation* simulation, const SimFabricOptions& options);
  ~FabricCore();

  Simulation& simulation() { return *simulation_; }
  const SimFabricOptions& options() const { return options_; }
  const VerbRange& range() const { return range_; }
  const Capabilities& capabilities() const { return capabilities_; }
  const Faults& faults() const { return simulation_->faults(); }
  Nic& nic(NodeId node) { return nics_[node]; }
  uint64_t now() const { return simulation_->now(); }

  // The latest attachment of a node, or null.
  Attachment* current(NodeId node) const { return current_[node]; }
  bool Alive(NodeId node) const {
    return node < options_.num_nodes && current_[node] != nullptr && !current_[node]->known_gone(now());
  }
  // Number of the attachment that the others hold to be alive; 0: none.
  uint64_t ConnectionTo(NodeId node) const { return Alive(node) ? current_[node]->number : 0; }
  bool IsConnected(NodeId node, uint64_t connection) const {
    return connection == 0 || ConnectionTo(node) == connection;
  }
  StatusOr<Attachment*> Attach(NodeId node);
  void Kill(NodeId node);
  // A verb or call of `from` leaves its NIC at `departed`.
  void CountDeparture(Attachment* from, uint64_t departed);
  // An orderly leave: every node knows at once.
  void Leave(Attachment* attachment);

  bool cut(NodeId from, NodeId to) const { return cuts_[from][to]; }
  void Cut(NodeId from, NodeId to, bool cut);
  void MendAll() { cuts_ = {}; }
  void FaultsChanged();
  uint64_t WireNanos(NodeId from, NodeId to) const { return from == to ? 0 : options_.nic.wire_nanos; }
  // Draws how late a fault makes a completion or message, in nanoseconds.
  uint64_t DrawDelay();
  // Draws the luck of a posting or call, if round trips have a spread.
  uint64_t DrawLuck() { return options_.spread ? simulation_->random()() : 0; }
  // How late the answers of one node are to a posting or call with this luck. Different nodes are late independently.
  uint64_t SpreadNanosOf(NodeId from, NodeId to, uint64_t luck) const {
    return options_.spread && from != to ? SpreadNanos(Mix64(luck + to)) : 0;
  }

  // Cuts a random link, and schedules the next cut.
  void Happen() override;

  Pool<Flight> flights;
  Pool<CallFlight> calls;
  Pool<Batch> batches;
  Pool<DeadlineTimer> timers;
  Pool<MessageBuffer> scratch;  // handlers write their responses there

 private:
  // Fails all calls to `gone` that wait for a response.
  void FailCallsTo(Attachment* gone);
  void ScheduleCut();

  Simulation* simulation_;
  const SimFabricOptions options_;
  const VerbRange range_;
  const Capabilities capabilities_;
  std::vector<Nic> nics_;
  std::vector<Attachment*> current_;
  std::vector<std::unique_ptr<Attachment>> attachments_;  // every attachment ever made
  std::array<std::array<bool, kMaxSimNodes>, kMaxSimNodes> cuts_{};
  bool cut_is_scheduled_ = false;
};

}  // namespace gannet::rdma::sim
