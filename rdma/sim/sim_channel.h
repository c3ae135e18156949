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
  // Operations in flight are forgotten: their completions are never resumed.
  ~SimChannel() override;

  size_t Poll() override;

  // State of this channel's connection to a node.
  struct Route {
    // The times when the operations posted so far will have taken effect: later atomics act after the first time, later
    // verbs of other kinds after the second.
    uint64_t atomics_after = 0;
    uint64_t others_after = 0;
    uint32_t connection = 0;  // incremented when the connection breaks
  };
  Route& route(NodeId node) { return routes_[node]; }

  // A verb has returned; the CPU sees its completion at `visible_at`.
  void Returned(Flight* flight, uint64_t visible_at);
  // A response has returned; its completion is already filled in.
  void Returned(CallFlight* call, uint64_t visible_at);
  void CountResponse(size_t bytes) { counters_.bytes_in += bytes; }
  void FailCallsTo(const Attachment* gone);
  // Fails the calls whose deadline has passed.
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
  // Called at the first poll by a thread: from now on completions wake it.
  void AdoptPoller(uint64_t fiber);
  void Complete(Completion* completion, uint64_t visible_at);
  void ArmTimer(uint64_t deadline);
  // The caller gets `status`; the call itself continues.
  void GiveUp(CallFlight* call, Status status);

  static constexpr uint64_t kNobody = UINT64_MAX;

  FabricCore* core_;
  Attachment* own_;
  uint64_t poller_ = kNobody;
  std::vector<Route> routes_;  // by node
  Flight* flights_ = nullptr;  // in flight, linked
  CallFlight* calls_ = nullptr;
  DeadlineTimer* timer_ = nullptr;
  RingQueue<Done> done_;  // by visible_at
  std::vector<Completion*> delivering_;
};

}  // namespace gannet::rdma::sim
