// OwnerLinks: how a commit reaches the owners of its records at other nodes: the connections over which they know this
// node, and the calls of its steps (owner_calls.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "txn/access/write_buffer.h"
#include "txn/peer/owner_calls.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

struct SessionState;

// Used by the session's thread. It keeps its buffers from one commit to the next.
class OwnerLinks {
 public:
  // All must outlive this.
  OwnerLinks(SessionState* session, WriteBuffer* writes) : session_(session), writes_(*writes) {}
  OwnerLinks(const OwnerLinks&) = delete;
  OwnerLinks& operator=(const OwnerLinks&) = delete;

  // A node must know the caller (peers.h) before it is asked for the first lock or placeholder. Sets the connections of
  // all entries. Errors: an owner does not let this node join.
  coro::Task<Status> JoinAll();
  rdma::NodeId OwnerOf(const WriteEntry& entry) const;
  // Returns the connection of the entries at `node`.
  uint64_t ConnectionOf(rdma::NodeId node) const;

  // Returns the calls of a step, one for each data node.
  std::span<OwnerCall> Calls();
  // Writes the begin of a request: the name of `slot`, which is taken if there is none, and a new number.
  void PutCaller(std::span<std::byte> place, std::optional<uint16_t>* slot);
  // Sends call->request.
  coro::Task<StatusOr<size_t>> Send(OwnerCall* call, rdma::MethodId method, std::span<std::byte> response,
                                    absl::Duration timeout);

 private:
  // Returns the connection over which the owner knows this node now.
  coro::Task<StatusOr<uint64_t>> Join(rdma::NodeId owner);

  SessionState* const session_;
  WriteBuffer& writes_;
  rdma::MessageBuffer message_;   // of Join
  std::vector<OwnerCall> calls_;  // by node; empty until a commit calls owners
};

}  // namespace gannet::txn
