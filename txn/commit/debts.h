// Debts: what a session's transactions still owe to other nodes, because a verb or call that was to do it failed though
// the node lives.
//
// An error tells nothing: what failed may have been done (fabric.h, 5). But it tells when: verbs take no effect after
// they completed. Calls do: one that timed out may be served later. So each debt is something that can be tried again
// and again until an answer says that it is done, and that does no harm if it was done before:
//
//   unlock    A CAS of the word from locked-by-us to what it was. Of a lock that was asked for with unknown outcome, or
//             that was given back with unknown outcome. Whatever else it finds: we do not hold the lock.
//   install   After the commit point. READ the word: if it is still locked by us as of the version read, the WRITEs of
//             the record are repeated; else they had been done. (Whoever locks it after the install locks a later
//             version.)
//   call      kTxnFinish or kTxnDecide, which its number makes repeatable (request_ledger.h); or kTxnCancel of a
//             kTxnPrepare of unknown outcome, after which that is undone, or never will be done. The caller's slot
//             belongs to the debt until it is settled, so that numbers do not overtake each other. That of a kTxnDecide
//             stays with the transaction, or its ticket: the decision is noted under it until the caller's next one.
//
// A locked word names the worker, not its transaction. So "locked by us, of version v" might be the lock of another
// transaction of the same session, which an unlock must not take away. Two rules prevent that, both about one record:
//
//   (a) While there is a debt, no transaction of the session asks for the record's lock: it is a conflict (Covers).
//   (b) An unlock waits while a transaction that has asked before, or an install or call, may hold the lock.
//
// When neither (a) nor (b) holds the CAS back, only the debtor can be the holder, and nobody else of this session can
// become it until the CAS has completed. Two unlocks of one record may run side by side: they want the same.
//
// Transactions of this and other nodes meet a debt as a locked record: a conflict, run again after a while. A debt is
// dropped when its node is dead, or was lost and is back by another connection: then it has repaired what this one left
// there, as if this one had died (peers.h). When it has been tried for call_timeout in vain and nothing else runs on
// the worker, it rests until the session's next commit with other nodes (a cut link does not keep a thread from
// stopping). A session that is closed settles its debts first; what remains after call_timeout is taken over by the
// next session with the same channel, that is: the same owner bits.
//
// Belongs to the session's thread. Costs nothing while there are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"

namespace gannet::txn {

struct SessionState;

// What one transaction waits for.
struct DebtTicket {
  size_t open = 0;
  bool lost = false;                 // a node died, or refused: not all has been done
  std::vector<uint16_t> slots = {};  // to be returned when nothing is open any more
};

struct Debt {
  enum class Kind : uint8_t { kUnlock, kInstall, kCall };
  Kind kind = Kind::kUnlock;
  rdma::NodeId node = 0;
  uint64_t connection = 0;  // by which the debtor is known there (peers.h); 0: this node itself
  bool running = false;     // a coroutine is at it
  std::shared_ptr<DebtTicket> ticket = nullptr;

  // kUnlock, kInstall: the record's word while we hold it, and after.
  rdma::GlobalAddress record{};
  uint64_t held = 0;
  uint64_t next = 0;
  std::vector<std::byte> image = {};  // kInstall: the lines to write; empty: the word alone

  // kCall
  rdma::MethodId method = 0;
  uint16_t slot = 0;
  bool returns_slot = true;  // when it is closed. False: its transaction does, or its ticket
  std::vector<std::byte> message = {};
  std::vector<rdma::GlobalAddress> records = {};  // that the message is about
};

class Debts {
 public:
  explicit Debts(SessionState* session) : session_(session) {}
  Debts(const Debts&) = delete;
  Debts& operator=(const Debts&) = delete;

  bool empty() const { return debts_.empty(); }
  // Whether something is owed for `record`: rule (a).
  bool Covers(rdma::GlobalAddress record) const;

  // Dropped at once if its node is dead (and the ticket is lost then).
  void Add(Debt debt);
  // Those that rest are tried again.
  void Awaken();
  // Until the ticket's are settled, at most until `deadline_nanos`. True if all has been done.
  coro::Task<bool> Await(std::shared_ptr<DebtTicket> ticket, uint64_t deadline_nanos);
  // Until there are none, at most until `deadline_nanos`.
  coro::Task<void> AwaitAll(uint64_t deadline_nanos);

  // Names for callers of this session: owner bits | slot.
  uint16_t TakeSlot();
  void ReturnSlot(uint16_t slot) { free_slots_.push_back(slot); }

  // For whoever takes this session's place.
  std::vector<std::shared_ptr<Debt>> Leave();
  void TakeOver(std::vector<std::shared_ptr<Debt>> debts);

 private:
  void Start(const std::shared_ptr<Debt>& debt);
  // The worker has more to do than to settle these.
  bool OthersRun() const;
  // Tries until it is settled, dropped or rests.
  coro::Task<void> Settle(std::shared_ptr<Debt> debt);
  // True if it is settled: by success, or by an answer that no repetition will change (the ticket is lost then).
  coro::Task<bool> Unlock(std::shared_ptr<Debt> debt);
  coro::Task<bool> Install(std::shared_ptr<Debt> debt);
  coro::Task<bool> Call(std::shared_ptr<Debt> debt, uint64_t timeout_nanos);
  // Rule (b).
  bool MustWait(const Debt& debt) const;
  bool NodeLives(const Debt& debt) const;
  void Close(const std::shared_ptr<Debt>& debt, bool lost);

  SessionState* session_;
  std::vector<std::shared_ptr<Debt>> debts_;
  std::vector<uint16_t> free_slots_;
  uint16_t next_slot_ = 0;
};

// Errors after which a verb or call may have been done or not. All others are answers.
bool IsUnknownOutcome(const Status& status);

}  // namespace gannet::txn
