// A pending operation: an operation at another node that a transaction still has to complete
// (txn/session/pending_operations.h says why and when).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "txn/node/local_node.h"

namespace gannet::txn {

// A connection of this node to another one.
struct Link {
  rdma::NodeId node = 0;
  uint64_t connection = 0;
};

// The pending operations that one transaction waits for.
struct PendingGroup {
  size_t open = 0;
  bool lost = false;                  // a node died, or refused: not everything was done
  std::vector<Link> lost_links = {};  // over which something was not done
  std::vector<uint16_t> slots = {};   // to be returned when none of the pending operations is open
};

struct PendingOperation {
  enum class Kind : uint8_t { kUnlock, kInstall, kCall };
  // Settled: by success. Lost: the node died, or gave an answer that no repetition will change.
  enum class Outcome : uint8_t { kOpen, kSettled, kLost };

  // These do not change.
  Kind kind = Kind::kUnlock;
  rdma::NodeId node = 0;
  uint64_t connection = 0;  // over which the node knows this session (peers.h); 0: this node itself
  uint64_t owner_bits = 0;  // of the session
  uint64_t since = 0;       // NowNanos

  // kUnlock, kInstall: the record's word while we hold the lock, and after that.
  rdma::GlobalAddress record{};
  uint64_t held = 0;
  uint64_t next = 0;
  std::vector<std::byte> image = {};  // kInstall: the lines to write; empty: the word alone

  // The members of kCall.
  rdma::MethodId method = 0;
  uint16_t slot = 0;
  std::vector<std::byte> message = {};
  std::vector<rdma::GlobalAddress> records = {};  // the records of the message

  // The members below are for the session alone.
  std::shared_ptr<PendingGroup> group = nullptr;
  bool returns_slot = true;  // when it is settled. False: its transaction or group returns it
  bool held_back = false;    // an unlock that waits for a transaction of the session

  // Written once, by the completer, after everything else that it does for this pending operation.
  std::atomic<Outcome> outcome{Outcome::kOpen};

  bool IsOf(rdma::GlobalAddress which) const {
    return record == which || std::ranges::find(records, which) != records.end();
  }
};

// False if the pending operation's node is dead, or has lost the connection over which it knows the session.
bool NodeLives(const PendingOperation& pending, const LocalNode& local);

// True for errors after which a verb or call may or may not have taken effect. All other errors are answers.
bool IsUnknownOutcome(const Status& status);

}  // namespace gannet::txn
