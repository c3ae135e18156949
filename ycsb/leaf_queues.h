// LeafQueues: the clients of an index in this process that want to change the same leaf at the same time, in any of its
// threads (ROLEX, FAST'23, 3.4: threads of a machine share a lock; Sherman, SIGMOD'22, has queues of local locks); or
// that want to READ it (read_delegation.h).
//
// The first client that comes to a leaf leads. (Of queues of READs, the first few do.) Others that come meanwhile wait,
// and send nothing. When the leader has
// the leaf's lock, it takes those that wait, makes their changes in the posting of its own, and answers them
// (leaf_combiner.h). Then it passes the lead, with its image of the leaf, to the first of those that have come since.
//
//   comes first          leads ------------------------------> answered by itself
//   comes later          waits --> taken by the leader ------> kAnswered
//                          |`----> passed the lead ----------> kLeads
//                           `----> the leader has failed, or found that its key's leaf is another: kAgain
//
// The queues guard nothing, and nothing of them is in the leaf: its lock names the channel of the leader, which posts
// all verbs of the change. So a change needs nothing but that lock, and a client that is not in the queue (a
// transaction that locks several leaves, a removal, the owner) can only make a leader's CAS fail. A process that dies
// takes its queues with it. The lock is released after every change, and not passed on: so other machines' clients find
// it free as often as if this machine had one client only.
//
// A leader never waits for a client that waits here, so there is no deadlock. It answers within the patience of its
// LeafChannel, as long as its worker runs. A coroutine that waits may be destroyed, but only together with its worker.
//
// Thread-safe.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "base/thread.h"
#include "rdma/global_address.h"

namespace gannet::ycsb {

class LeafQueues {
 public:
  // At most `leaders` clients lead the queue of a leaf at a time.
  explicit LeafQueues(size_t leaders = 1) : most_leaders_(leaders) {}

  // What a client has come to: see above.
  enum class Turn : uint8_t { kLeads, kAnswered, kAgain };

  // A client's place in a queue, in the frame of its coroutine, whose worker is `worker`.
  class Leader;
  class Waiter {
   public:
    explicit Waiter(coro::Worker* worker) : worker_(worker) {}
    ~Waiter() {
      if (waits_in_ != nullptr) waits_in_->Withdraw(this);
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // False: it leads since it came to its last queue.
    bool has_waited() const { return has_waited_; }

   private:
    friend class LeafQueues;
    enum class State : uint8_t { kWaiting, kTaken, kResumed };

    coro::Worker* const worker_;
    coro::Worker::Parked parked_;
    LeafQueues* waits_in_ = nullptr;  // until it is resumed; the coroutine's
    bool has_waited_ = false;         // likewise
    // Guarded by the queue's mutex, until it is resumed.
    rdma::GlobalAddress leaf_;
    State state_ = State::kResumed;
    Turn turn_ = Turn::kLeads;
    Leader* taken_by_ = nullptr;
  };

  // co_await queues.Enter(leaf, &waiter): suspends unless it leads at once.
  class [[nodiscard]] Entering {
   public:
    Entering(LeafQueues* queues, rdma::GlobalAddress leaf, Waiter* waiter)
        : queues_(queues), leaf_(leaf), waiter_(waiter) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) {
      waiter_->parked_.handle = coroutine;
      waiter_->waits_in_ = queues_;
      return queues_->Join(leaf_, waiter_);
    }
    Turn await_resume() const {
      waiter_->waits_in_ = nullptr;
      return waiter_->turn_;
    }

   private:
    LeafQueues* queues_;
    rdma::GlobalAddress leaf_;
    Waiter* waiter_;
  };
  Entering Enter(rdma::GlobalAddress leaf, Waiter* waiter) { return {this, leaf, waiter}; }

  // The lead of a leaf's queue, of a client that kLeads. If it is not passed on, those that wait are told kAgain.
  class Leader {
   public:
    Leader(LeafQueues* queues, rdma::GlobalAddress leaf) : queues_(queues), leaf_(leaf) {}
    ~Leader() {
      if (queues_ != nullptr) Disperse();
    }
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    rdma::GlobalAddress leaf() const { return leaf_; }
    size_t waiting() const;
    // Tells kAgain to those that wait, except where `stays` is true.
    void SendAway(const std::function<bool(const Waiter&)>& stays);
    // Takes at most `most` of those that wait, and calls `visit` for each. It must not keep the waiter: that one may be
    // destroyed afterwards. Once for each Leader.
    void Take(size_t most, const std::function<void(const Waiter&)>& visit);
    // Calls `answer` for those that were taken, with their numbers in the order of Take: what they have come to.
    // nullopt: one waits again, before all others.
    void Answer(const std::function<std::optional<Turn>(size_t number, Waiter&)>& answer);
    // Ends the lead: passes it to the first that waits, after `hand` was called for it; or tells all kAgain. None that
    // was taken is without an answer.
    void Pass(const std::function<void(Waiter&)>& hand);
    void Disperse();

   private:
    friend class LeafQueues;

    LeafQueues* queues_;
    const rdma::GlobalAddress leaf_;
    std::vector<Waiter*> taken_;  // null: withdrawn, or answered; guarded by the queue's mutex
  };

 private:
  struct Queue {
    std::vector<Waiter*> waiting;
    size_t leaders = 1;
  };
  struct alignas(kLineBytes) Part {
    Mutex mutex;
    absl::flat_hash_map<uint64_t, Queue> queues;  // those with a leader, by the leaf's address
  };
  static constexpr size_t kParts = 64;

  Part& PartOf(rdma::GlobalAddress leaf) { return parts_[Mix64(leaf.bits()) % kParts]; }
  // False: it leads. True: it waits.
  bool Join(rdma::GlobalAddress leaf, Waiter* waiter);
  void Withdraw(Waiter* waiter);
  // The part's mutex is held. The waiter may be gone afterwards.
  static void Wake(Waiter* waiter, Turn turn);
  // Tells those that wait kAgain, and ends one lead.
  static void DisperseQueue(Part& part, rdma::GlobalAddress leaf);

  const size_t most_leaders_;
  std::array<Part, kParts> parts_;
};

}  // namespace gannet::ycsb
