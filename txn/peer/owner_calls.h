// Internal to txn/: the calls by which one step of a commit reaches all owners that take part in it.
//
// The calls of a step are issued together and then awaited together, so that the step takes as long as its slowest
// owner and not as long as all owners one after the other. An owner whose part does not fit one message gets the next
// message in the next round, after its answer to the one before: a caller has at most one request in flight
// (request_ledger.h), and each round begins when nothing is in flight.
//
// If a call fails while others are in flight:
//   - The others are awaited, and each answer is taken. It is then known what each owner has made, and the release
//     unmakes it. So nothing of the transaction is in flight when the step returns.
//   - Each call of unknown outcome becomes a pending operation. The pending operation takes the slot under which the
//     call was made (pending_operations.h); that is why calls of one step do not share a slot. A later call to that
//     owner is made under another slot, so it does not overtake the repetition of the first.
//   - Answers are taken in the order of nodes, not of arrival, and the first error in that order is the result. So a
//     step's effects on the transaction do not depend on timing.
//
// The order of effects between owners is free within a step. A placeholder, a log part or a finish at one owner does
// not depend on that at another: placeholders are locked; a part counts only with the decision, which is appended after
// the last answer; a finish comes after the commit point, or undoes what no transaction saw. Calls whose order matters
// (the decision: first the second owner, then the decider) are not issued here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "rdma/message_buffer.h"

namespace gannet::txn {

// One owner's call in a step, and its memory. Kept by the transaction for the capacity of its buffers.
struct OwnerCall {
  rdma::NodeId node = 0;
  std::optional<uint16_t> slot = {};    // under which this owner's requests are sent; taken at the first of them
  size_t next = 0;                      // the first write entry that is not processed yet
  std::vector<uint32_t> prepared = {};  // entries of the prepare in flight
  std::vector<rdma::GlobalAddress> finished = {};  // records of the finish in flight
  rdma::MessageBuffer message = {};
  std::span<const std::byte> request = {};  // in message
  rdma::MessageBuffer response = {};
  coro::Started<StatusOr<size_t>> answer = {};  // bytes of the response
};

// One step. `start(call)` encodes the owner's next message and returns the task that sends it, or an invalid task if
// nothing is left for that owner. `take(call, answer)` returns an error to end the step after this round.
template <class Start, class Take>
coro::Task<Status> CallOwners(std::span<OwnerCall> calls, const Start& start, const Take& take) {
  for (OwnerCall& call : calls) call.next = 0;
  while (true) {
    bool any = false;
    for (OwnerCall& call : calls) {
      coro::Task<StatusOr<size_t>> task = start(call);
      if (!task.valid()) continue;
      call.answer = coro::Started<StatusOr<size_t>>(std::move(task));
      any = true;
    }
    if (!any) co_return absl::OkStatus();
    Status first_error;
    for (OwnerCall& call : calls) {
      if (!call.answer.valid()) continue;
      StatusOr<size_t> answer = co_await call.answer;
      call.answer = {};
      Status taken = take(call, std::move(answer));
      if (first_error.ok()) first_error = std::move(taken);
    }
    if (!first_error.ok()) co_return first_error;
  }
}

}  // namespace gannet::txn
