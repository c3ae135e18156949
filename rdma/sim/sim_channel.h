// A worker's channel on the sim fabric.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ring_queue.h"
#include "rdma/fabric.h"
#include "rdma/sim/call_flight.h"
#include "rdma/sim/fabric_core.h"
#include "rdma/sim/flight.h"

namespace gannet::rdma::sim {

class SimChannel final : public Channel {
 public:
  SimChannel(FabricCore* core, Attachment* own, uint16_t index);
  // Forgets what is under way.
  ~SimChannel() override;

  size_t Poll() override;

  // What this channel knows of its connection to a node.
  struct Route {
    // When what was posted before will have taken effect: atomics that come now act after the one, other verbs after
    // the other.
    uint64_t atomics_after = 0;
    uint64_t others_after = 0;
    uint32_t connection = 0;  // counts up when it breaks
  };
  Route& route(NodeId node) { return routes_[node]; }

  // A verb is back; the CPU sees it at `visible_at`.
  void Returned(Flight* flight, uint64_t visible_at);
  // A response is; its completion is set.
  void Returned(CallFlight* call, uint64_t visible_at);
  void CountResponse(size_t bytes) { counters_.bytes_in += bytes; }
  void FailCallsTo(const Attachment* gone);
  // Calls whose time is up fail.
  void DeadlineCame(const DeadlineTimer* timer);

 protected:
  bool Submit(std::span<Operation> operations, Completion* completion) override;
  bool SubmitCall(const CallRequest& call, Completion* completion) override;

 private:
  struct Done {
    Completion* completion = nullptr;
    uint64_t visible_at = 0;
  };
  bool Admits(const Operation& operation) const;
  // The first poll by this thread: completions wake it from now on.
  void AdoptPoller(uint64_t fiber);
  void Complete(Completion* completion, uint64_t visible_at);
  void ArmTimer(uint64_t deadline);
  // The caller gets `status`; the call goes on without it.
  void GiveUp(CallFlight* call, Status status);

  static constexpr uint64_t kNobody = UINT64_MAX;

  FabricCore* core_;
  Attachment* own_;
  uint64_t poller_ = kNobody;
  std::vector<Route> routes_;  // by node
  Flight* flights_ = nullptr;  // under way, linked
  CallFlight* calls_ = nullptr;
  DeadlineTimer* timer_ = nullptr;
  RingQueue<Done> done_;  // by visible_at
  std::vector<Completion*> delivering_;
};

}  // namespace gannet::rdma::sim
