// The caller's side of CALL: the slots of one channel, and the calls that wait for a free one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/shm/process_identity.h"
#include "rdma/shm/region.h"
#include "rdma/statistics.h"

namespace gannet::rdma::shm {

// Not thread-safe: it belongs to a channel.
class CallClient {
 public:
  CallClient(std::shared_ptr<Region> region, NodeId node, uint16_t index, VerbCounters* counters);
  // Gives up the calls that are still in flight; their waiters are not resumed.
  ~CallClient();
  CallClient(const CallClient&) = delete;
  CallClient& operator=(const CallClient&) = delete;

  // True if the call has failed at once; else Poll will complete it.
  bool Submit(const CallRequest& call, Completion* completion);
  size_t Poll() { return idle() ? 0 : PollBusy(); }

 private:
  struct Pending {
    CallRequest call;
    Completion* completion = nullptr;
    uint64_t deadline_ns = 0;
    uint64_t node_word = 0;  // of the server when the call was made
  };
  // The client's state of a slot.
  enum class Use : uint8_t { kFree, kInFlight, kAbandoned };
  struct Slot {
    Use use = Use::kFree;
    NodeId server = 0;
    uint64_t word = 0;  // what the client stored: phase kRequested
    ProcessIdentity server_process;
    Pending pending;
  };

  bool idle() const { return used_slots_ == 0 && waiting_.empty(); }
  size_t PollBusy();

  // Returns a slot for a call to `server`, or -1.
  int FindSlot(NodeId server) const;
  void Start(int slot, const Pending& pending);
  void StartWaiting();
  void Ring(NodeId server, int slot);

  bool ServerStillThere(const Pending& pending) const;
  // Checks one call in flight. True if it has finished (its completion is set, and its slot is free or abandoned).
  bool Advance(int slot, uint64_t now_ns);
  void TakeResponse(int slot);
  void GiveUp(int slot, Status status);
  void Release(int slot);
  // Frees abandoned slots that their server does not use any more.
  void ReclaimAbandoned();
  void FailWaiting(uint64_t now_ns);

  std::shared_ptr<Region> region_;
  ChannelArea* area_;
  int ready_bit_;  // this channel's number in the whole cluster
  VerbCounters* counters_;
  uint64_t sequence_ = 0;
  uint32_t used_slots_ = 0;  // one bit per slot that is not kFree
  uint32_t abandoned_slots_ = 0;
  uint64_t last_reclaim_ns_ = 0;
  std::array<Slot, kCallSlots> slots_;
  std::array<uint8_t, kMaxShmNodes> slots_at_{};  // used slots per server
  std::vector<Pending> waiting_;                  // in the order they were submitted
  std::vector<Completion*> finished_;
};

static_assert(kCallSlots <= 32);

}  // namespace gannet::rdma::shm
