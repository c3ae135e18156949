// What an owner remembers of the requests that change something for transactions of other nodes, so that each is
// carried out at most once, however often it arrives, and none after it was cancelled.
//
// A request carries its caller (a worker's owner bits and a slot, wire.h) and a number. A caller has one request at a
// time under way to one owner: it asks for the next only when it knows the outcome of the one before, or has made it
// known (a repeated kTxnFinish, a kTxnCancel). Its numbers only grow. So one number per caller tells everything:
//
//   greater than the last   new: it is carried out, and that the caller knows the outcome of the last is known too
//   the last                a repetition; or it is still being carried out, and must be asked for again
//   less                    it was under way for long, and nobody waits for its answer: it is refused
//
// Callers are few (two for each transaction at a time: its steps and its decision), so nothing is ever forgotten.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/key.h"
#include "txn/owner/wire.h"

namespace gannet::txn {

// What a kTxnPrepare made, as it takes to unmake it.
struct Unmaking {
  FinishKind kind;
  TableId table;
  index::OwnedKey key;
  rdma::GlobalAddress record;
  uint64_t state;
};

// What an owner has to do for a transaction to end (wire.h).
struct DecidedWork {
  rdma::NodeId node;
  std::vector<std::byte> message;  // of a kTxnFinishFor
};

// Thread-safe.
class RequestLedger {
 public:
  enum class Turn : uint8_t {
    kRun,   // carry it out
    kDone,  // it has been: result() is what came of it
    kBusy,  // another thread is at it
    kLate,  // newer ones of this caller have been served
  };

  struct Entry {
    uint64_t number = 0;
    bool busy = false;
    Status result;
    std::vector<Unmaking> made;  // by the last request
    // Of the last transaction that this node is to decide (repair.h). Kept until the caller's next one, for until then
    // nobody knows that it has come to its end.
    std::vector<DecidedWork> decided;
    bool all_decided = false;
  };

  // A request's stay in the ledger. Of one caller, at most one thread has a claim that is kRun or kDone.
  class Claim {
   public:
    Claim(RequestLedger* ledger, const Caller& caller);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Turn turn() const { return turn_; }
    // If kRun: to be set; it is Ok until then. If kDone: of the request, when it was carried out.
    Status& result() { return entry_->result; }
    // Not if kBusy or kLate.
    std::vector<Unmaking>& made() { return entry_->made; }
    Entry& entry() { return *entry_; }

   private:
    RequestLedger* ledger_;
    Entry* entry_ = nullptr;
    Turn turn_ = Turn::kRun;
  };

  // Of all callers that are workers of `node`. None of their requests may be under way.
  std::vector<DecidedWork> DecidedBy(rdma::NodeId node);
  // Likewise. What their requests made and decided is over: only their numbers are remembered.
  void CloseAllOf(rdma::NodeId node);

 private:
  Mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;  // by caller; their addresses are stable
};

}  // namespace gannet::txn
