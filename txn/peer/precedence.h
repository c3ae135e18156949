// Precedence: a transaction that lost against others for too long goes first, so that starvation has a bound.
//
// Optimistic transactions alone have no bound: a scan of 100,000 rows meets a conflict in every attempt if there are
// 2,000 updates per second. A call of Session::Run (or Database::Run) that has lost 16 attempts and 100 ms
// (DatabaseOptions::precedence_after), or 4 attempts and ten times as long, asks for precedence. From then on its node
// announces a ticket, and the writers of all nodes wait for it.
//
// Rules.
//  1. A ticket is (number, node). The number is one more than the greatest that the node has seen, and the smaller
//     ticket goes first (Lamport's bakery). A node has one ticket at a time. Its transactions that ask form a wait
//     queue; the ticket is that of the front, and the next one draws a new number.
//  2. The ticket lies in a word that the node announces beside its epoch (rdma/epoch.h), so other nodes see it after
//     their next round of READs, some milliseconds later. Nothing is sent for it.
//  3. A commit that writes checks one word of its own node before it locks, inserts or logs anything. While the word
//     says that there is a ticket, the commit waits, unless it is the commit of the first ticket's transaction. It
//     holds nothing that another transaction needs. Commits that only read never wait.
//  4. A ticket is valid for its lease: eight times the longest attempt of its transaction, at least 250 ms, and at most
//     DatabaseOptions::precedence_limit. Every node counts the lease from when it first saw the ticket. The ticket of a
//     dead node is void.
//  5. The transaction gives its ticket back when it is over, or has passed its commit point; it does not keep it while
//     it waits for the disk.
//  6. A ticket that expired is followed by a pause of four times its lease, in which no node that saw it draws another.
//     The transaction then lost not against commits but, for example, against a lock that cannot be released before a
//     connection is there again. Such a lock costs all others at most a fifth of their time, however many transactions
//     ask for precedence because of it. The transaction itself counts its conflicts from zero again.
//  7. A body that returns Aborted itself asks for another attempt, probably because it waits for others to do
//     something. That is no conflict: its Run gives up its ticket and its place, and counts from zero again.
//  8. A commit waits at most precedence_limit in all, and then continues even if another transaction has precedence.
//
// The guarantee. Let A be the longest time of an attempt that meets no conflict, C the longest commit that was in
// progress, and S the longest time between two successful rounds of a node's epoch manager (5 ms, or up to 100 ms where
// rounds are slow). All writers have stopped after S + C. If S + C + 2 A is shorter than the lease, the attempt that
// begins then commits before the lease ends. Attempts before that fail only because of commits that had already passed
// rule 3, at most one attempt for each. Two index changes move witnesses without a commit. A split happens only within
// an insert, so splits stop with the commits. An emptied leaf is unlinked once, at any time; no leaf becomes empty
// while the writers wait, so these end, too. Before the ticket is first, it waits for the tickets that were drawn
// before it: if p transactions are ahead of it at its own node, and there are N nodes, for at most (p + 1) N tickets.
//
// There is no guarantee for a transaction that takes longer than precedence_limit; against writers of a node that
// cannot READ this node's memory (a cut link) or is older than this protocol; and for Session::Begin and Commit by
// hand. These honour the precedence of others and never get their own, because it is not known that an attempt is the
// same transaction again. (ManualTransaction::TryAgain says so: its transactions get precedence as those of Run.)
//
// Precedence decides only when commits run. The commit protocol (txn/commit/commit.cc) does not depend on it, so no
// mistake in it can cost serializability; it can only cost time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/cache_line.h"
#include "base/thread.h"
#include "rdma/epoch.h"
#include "rdma/global_address.h"
#include "txn/peer/precedence_claim.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

// One per node. Thread-safe.
class Precedence {
 public:
  // Announces by `epochs`, which must outlive this and must not have started. `after` and `limit` are
  // DatabaseOptions::precedence_after and precedence_limit. With a limit of 0 no transaction of this node gets
  // precedence, and none waits for others'.
  Precedence(rdma::EpochManager* epochs, rdma::NodeId self, int nodes, absl::Duration after, absl::Duration limit);
  Precedence(const Precedence&) = delete;
  Precedence& operator=(const Precedence&) = delete;

  // Rule 3's word. Its cache line is written only when tickets come and go.
  bool somebody_has_it() const { return out_.load(std::memory_order_relaxed); }
  // True if a commit that writes must wait; `claim` is null for a transaction by hand.
  bool MustWait(const PrecedenceClaim* claim, uint64_t now);
  // Counts a commit that has waited.
  void NoteHeldUp(uint64_t nanos);
  uint64_t limit_nanos() const { return limit_nanos_; }
  uint64_t after_nanos() const { return after_nanos_; }

  PrecedenceStatistics statistics() const;

  // Takes the announcements of the other nodes. Called by the epoch manager.
  void Look(std::span<const uint64_t> words, uint64_t now);

 private:
  friend class PrecedenceClaim;
  struct Ticket {
    uint64_t word = 0;     // 0: none
    uint64_t expires = 0;  // 0: it has expired
    bool valid() const { return word != 0 && expires != 0; }
  };

  struct Waiter {
    const PrecedenceClaim* claim;
    uint64_t longest_attempt;  // nanoseconds
  };
  using Queue = std::deque<Waiter>;

  void Enter(const PrecedenceClaim* claim, uint64_t longest_attempt, uint64_t now);
  // Called when it lost again. False: its turn came, and its lease has ended.
  bool IsQueued(const PrecedenceClaim* claim, uint64_t longest_attempt, uint64_t now);
  void Leave(const PrecedenceClaim* claim, uint64_t now);

  // The caller holds mutex_.
  Queue::iterator Find(const PrecedenceClaim* claim);
  void ExpireAndDraw(uint64_t now);
  void Expire(Ticket* ticket, uint64_t now);
  void Draw(uint64_t now);
  void DropOwn();
  // The node whose ticket goes first; the number of nodes if there is none.
  size_t First() const;

  alignas(kLineBytes) std::atomic<bool> out_ = false;
  alignas(kLineBytes) rdma::EpochManager* epochs_;
  rdma::NodeId self_;
  uint64_t after_nanos_;
  uint64_t limit_nanos_;
  mutable Mutex mutex_;          // guards the members below
  std::vector<Ticket> tickets_;  // by node
  Queue queue_;                  // the front has this node's ticket, if there is one
  uint64_t greatest_ = 0;        // number seen
  uint64_t pause_until_ = 0;     // rule 6
  PrecedenceStatistics statistics_;
};

}  // namespace gannet::txn
