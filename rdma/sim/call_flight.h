// A call in flight: its request goes to the server's queue, a thread there runs the handler, and the response returns.
//
// The caller may give up earlier, because its deadline has passed or the server is gone. The rest still runs then, and
// its result is dropped.
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
  // The caller has given up. The record may serve another call from then on.
  void Forget();
  void Happen() override;

  // Runs the handler, on a thread of the server.
  void Run();

  Completion* completion() const { return completion_; }
  Attachment* server() const { return to_; }
  NodeId caller() const { return from_->id; }
  MethodId method() const { return call_.method; }
  uint64_t deadline() const { return deadline_; }
  const CallRequest& call() const { return call_; }

  // Neighbours in the channel's list.
  CallFlight* next = nullptr;
  CallFlight* previous = nullptr;

 private:
  enum class Stage : uint8_t { kArrive, kDeliver, kReturn };

  void Post(uint64_t at, Stage stage);
  void Arrive();
  void Deliver();
  void WakeServer();
  // Does what WakeServer does, if each connection has a server thread.
  void DeliverToServerOf(const Attachment& caller);
  StatusOr<size_t> RunHandler(std::span<std::byte> response);
  void Respond();
  void Return();
  // Puts the result into the caller's completion and response buffer.
  void HandOver();
  // Ends the call on the fabric's side. A caller that still waits learns from its deadline or from the server's death.
  void Vanish();

  FabricCore* core_;
  SimChannel* channel_ = nullptr;
  uint16_t connection_ = 0;  // the channel's number
  Attachment* from_ = nullptr;
  Attachment* to_ = nullptr;
  Completion* completion_ = nullptr;
  CallRequest call_{};
  uint64_t late_ = 0;  // by the spread of round trips
  uint64_t departed_ = 0;
  uint64_t deadline_ = 0;
  Stage stage_ = Stage::kArrive;
  bool vanished_ = false;
  absl::StatusCode code_ = absl::StatusCode::kOk;
  std::vector<std::byte> request_;
  std::vector<std::byte> response_;  // the response, or the message of an error
};

}  // namespace gannet::rdma::sim
