// The grace period: memory that a reader might still look at is reused only when no such reader is left, on any node.
//
// Every worker has a slot in its node's registered memory (so that other nodes can READ it) that says in which epoch
// its current transaction began, or that it is idle. The cluster's epoch counter lives in node 0's memory. What is
// retired in epoch e is safe to reuse once every live worker of every live node is idle or began in an epoch > e. A
// node that died does not count.
//
//   EpochManager manager(...);             // one per node
//   EpochManager::Participant p = ...;     // one per worker
//   p.Enter(); ... transaction ... p.Leave();
//   p.Retire(block, bytes);                // given to SlabCache::Free after the grace period
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "rdma/base/status.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::rdma {

class EpochManager {
 public:
  static constexpr int kMaxParticipants = 128;  // workers of one node

  // Puts this node's slots at a place of its registered memory that every node knows.
  static StatusOr<std::unique_ptr<EpochManager>> Create(Fabric* fabric, Node* node, SlabAllocator* slab);
  ~EpochManager();

  // Advances the cluster's epoch (on node 0) and recomputes this node's safe epoch from all nodes' slots by one-sided
  // READs on `channel`. Called every few milliseconds by one thread per node: Start() does so in a thread of its own.
  Status Advance(Channel* channel);
  Status Start();
  void Stop();

  // Everything retired in an epoch <= this is free to reuse. Monotonic.
  uint64_t safe_epoch() const;
  uint64_t current_epoch() const;

  class Participant {
   public:
    // ResourceExhausted if kMaxParticipants are taken.
    static StatusOr<std::unique_ptr<Participant>> Join(EpochManager* manager);
    ~Participant();

    // Not re-entrant; a nested use (several coroutines of one worker) counts: the slot shows the oldest.
    void Enter();
    void Leave();

    // `free` runs on this participant's thread, from a later Leave() or Collect(), after the grace period.
    void Retire(std::byte* block, size_t bytes, SlabCache* cache);
    void RetireWith(std::function<void()> free);
    // Runs what has become safe; returns how much is still waiting.
    size_t Collect();

   private:
    explicit Participant(EpochManager* manager, int slot);
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  EpochManager() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::rdma
