// A call under way: its request goes to the server's queue, a thread there runs the handler, the response comes back.
//
// The caller may give up before (its time is up, the server is gone): then the rest runs, and nobody hears of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/sim/fabric_core.h"

namespace gannet::rdma::sim {

class CallFlight final : public Happening {
 public:
  explicit CallFlight(FabricCore* core) : core_(core) {}

  void Depart(SimChannel* channel, const CallRequest& call, Completion* completion, Attachment* from, Attachment* to);
  // The caller waits no more. The record may be another call's from then on.
  void Forget();
  void Happen() override;

  // On a thread of the server.
  void Run();

  Completion* completion() const { return completion_; }
  Attachment* server() const { return to_; }
  NodeId caller() const { return from_->id; }
  MethodId method() const { return call_.method; }
  uint64_t deadline() const { return deadline_; }
  const CallRequest& call() const { return call_; }

  // In the channel's list.
  CallFlight* next = nullptr;
  CallFlight* previous = nullptr;

 private:
  enum class Stage : uint8_t { kArrive, kDeliver, kReturn };

  void Post(uint64_t at, Stage stage);
  void Arrive();
  void Deliver();
  void WakeServer();
  StatusOr<size_t> RunHandler(std::span<std::byte> response);
  void Respond();
  void Return();
  // What the caller is to have, in its buffers.
  void HandOver();
  // It goes no further. A caller that still waits will hear of its deadline, or that the server is gone.
  void Vanish();

  FabricCore* core_;
  SimChannel* channel_ = nullptr;
  Attachment* from_ = nullptr;
  Attachment* to_ = nullptr;
  Completion* completion_ = nullptr;
  CallRequest call_{};
  uint64_t departed_ = 0;
  uint64_t deadline_ = 0;
  Stage stage_ = Stage::kArrive;
  bool vanished_ = false;
  absl::StatusCode code_ = absl::StatusCode::kOk;
  std::vector<std::byte> request_;
  std::vector<std::byte> response_;  // or the message of an error
};

}  // namespace gannet::rdma::sim
