// The caller's side of CALL for one channel: the calls in flight, and the calls that wait for the window of message.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ring_queue.h"
#include "rdma/fabric.h"
#include "rdma/statistics.h"
#include "rdma/verbs/lane.h"

namespace gannet::rdma::verbs {

// Used by the channel's thread only.
class CallClient {
 public:
  CallClient(int num_nodes, VerbCounters* counters, std::vector<Completion*>* finished)
      : counters_(counters), finished_(finished), nodes_(static_cast<size_t>(num_nodes)) {}

  bool idle() const { return calls_.size() == free_.size(); }
  // A call that Start will send to its node.
  void Submit(const CallRequest& call, Completion* completion);
  // Passes to the lane the calls that the window allows.
  void Start(Lane* lane);
  bool waits_for(NodeId node) const { return nodes_[node].used > 0; }

  // A fragment of a response. An error means that the server broke the rules.
  Status TakeFragment(NodeId from, std::span<const std::byte> fragment);
  // Ends all calls to `node` and forgets abandoned ones. None of them may be in the node's lane any more.
  void FailAll(NodeId node, const Status& status);
  // Gives up the calls whose deadline has passed.
  void CheckDeadlines(uint64_t now_ns);

 private:
  enum class State : uint8_t { kFree, kWaiting, kInFlight, kAbandoned };
  struct Call {
    State state = State::kFree;
    uint64_t id = 0;  // index in calls_ in the low 16 bits, then how often it was used
    CallRequest request{};
    Completion* completion = nullptr;
    uint64_t deadline_ns = 0;
    uint32_t received = 0;
    Outgoing message;
    std::vector<std::byte> kept_request;  // of an abandoned call that is not sent yet
    uint32_t request_fragments() const { return FragmentsOf(message.header.total_bytes); }
    uint32_t response_fragments() const { return FragmentsOf(message.header.room_or_code); }
  };
  struct PerNode {
    RingQueue<uint64_t> waiting;  // ids; those whose call is over are skipped
    uint32_t used = 0;            // calls that are not free
    uint32_t request_fragments = 0;
    uint32_t response_fragments = 0;
  };

  Call* Find(uint64_t id);
  Call* Make();
  void TakeResponse(Call* call, const FragmentHeader& header, std::span<const std::byte> payload);
  void End(Call* call, Status status);
  void Free(Call* call);

  VerbCounters* counters_;
  std::vector<Completion*>* finished_;
  std::vector<PerNode> nodes_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<uint32_t> free_;
};

}  // namespace gannet::rdma::verbs
