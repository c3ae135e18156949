// RequestLedger: an owner's notes on the requests that change something for transactions of other nodes. With them each
// request is carried out at most once, however often it arrives, and never after it was cancelled.
//
// A request carries its caller (a worker's owner bits and a slot, wire.h) and a number. A caller has at most one
// request to one owner in flight: it sends the next only when it knows the outcome of the one before, or has ensured it
// (a repeated kTxnFinish, a kTxnCancel). Its numbers only grow. So one number per caller is enough:
//
//   greater than the last   new: carried out. It also shows that the caller knows the outcome of the last
//   the last                a repetition; or it is still being carried out, and the caller must ask again
//   less                    it was in flight for long, and no caller waits for its answer: refused
//
// Callers are few (two for each transaction at a time: its steps and its decision), so no caller is ever forgotten.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/key.h"
#include "txn/peer/wire.h"

namespace gannet::txn {

// Something that a kTxnPrepare made, with the data needed to unmake it.
struct Unmaking {
  FinishKind kind;
  TableId table;
  index::OwnedKey key;
  rdma::GlobalAddress record;
  uint64_t state;
};

// The work of an owner that completes a transaction (wire.h).
struct DecidedWork {
  rdma::NodeId node;
  std::vector<std::byte> message;  // of a kTxnFinishFor
};

// Thread-safe.
class RequestLedger {
 public:
  enum class Turn : uint8_t {
    kRun,   // carry it out
    kDone,  // it has been carried out: result() is its result
    kBusy,  // another thread is carrying it out
    kLate,  // newer requests of this caller have been served
  };

  struct Entry {
    uint64_t number = 0;
    bool busy = false;
    Status result;
    std::vector<Unmaking> made;  // by the last request
    // The last transaction that this node decides (repair.h). Kept until the caller's next one, because until then no
    // node knows that the transaction is complete.
    std::vector<DecidedWork> decided;
    bool all_decided = false;
  };

  // A request's stay in the ledger. For each caller, at most one thread has a claim that is kRun or kDone.
  class Claim {
   public:
    Claim(RequestLedger* ledger, const Caller& caller);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Turn turn() const { return turn_; }
    // kRun: set by the handler; Ok until then. kDone: the result of the request when it was carried out.
    Status& result() { return entry_->result; }
    // The list must not be asked for with kBusy or kLate.
    std::vector<Unmaking>& made() { return entry_->made; }
    Entry& entry() { return *entry_; }

   private:
    RequestLedger* ledger_;
    Entry* entry_ = nullptr;
    Turn turn_ = Turn::kRun;
  };

  // The decided work of all callers that are workers of `node`. None of their requests may be in progress.
  std::vector<DecidedWork> DecidedBy(rdma::NodeId node);
  // Forgets what their requests made and decided; only their numbers are kept. None of them may be in progress.
  void CloseAllOf(rdma::NodeId node);

 private:
  Mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;  // by caller; their addresses are stable
};

}  // namespace gannet::txn
