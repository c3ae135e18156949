// The grace period: memory is reused only when no reader on any node can still access it.
//
// Every worker has a slot in its node's registered memory, so that other nodes can READ it. The slot holds the epoch in
// which the worker's current transaction began, or says that the worker is idle. The node's copy of the epoch lies next
// to the slots. Copies may lag; the largest one is the cluster's epoch, and the live node with the lowest id advances
// it. Let a node read all copies after a block was retired, and all slots of live nodes after that. The block is free
// once each of these slots is idle or shows a later epoch than all of these copies (proof: epoch_internal.h). Dead
// nodes do not count, and no node is special.
//
//   EpochManager manager(...);             // one per node, before anything else is allocated from its slab
//   EpochManager::Participant p = ...;     // one per worker
//   p.Enter(); ... transaction ... p.Leave();
//   p.Retire(block, bytes, cache);         // SlabCache::Free gets it after the grace period
//
// The bound. A participant frees its own blocks when it leaves: at least twice as many blocks, and twice as many bytes,
// as it has retired since it left before. So its backlog grows only while none of it is free. The backlog is never
// larger, in blocks and in bytes, than what the participant retired within the longest grace period so far. The thread
// that advances frees blocks that a participant has left free for 20 ms (because it idles, stays inside, or works off a
// burst). A round begins every few milliseconds, and earlier for each MiB that a participant has retired, so that a
// fast load does not fill the memory with retired blocks. A thread that finds the memory full frees all free blocks of
// the node's participants. If blocks still wait for their grace period, the thread first waits for some rounds, at most
// 20 ms.
//
// A retired block must already be unreachable for readers that start from shared memory. Addresses that a reader keeps
// across transactions (location caches) are not protected: the reader checks them by key, version and incarnation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "rdma/statistics.h"

namespace gannet::rdma {

class EpochManager {
 public:
  // Number of slots of one node. Each session needs one, and each call that the node serves at a time needs one (server
  // threads and waiting sessions serve calls). So it is more than twice the number of channels of a node.
  static constexpr int kMaxParticipants = 320;

  // Puts this node's slots at the start of its heap, where every node finds them. FailedPrecondition: another
  // object lies there. All three arguments must outlive the manager, and the manager must outlive its participants.
  static StatusOr<std::unique_ptr<EpochManager>> Create(Fabric* fabric, Node* node, SlabAllocator* slab);
  ~EpochManager();
  EpochManager(const EpochManager&) = delete;
  EpochManager& operator=(const EpochManager&) = delete;

  // Advances the epoch and finds out from all nodes' slots which blocks have become free, by one READ per node on
  // `channel`. One thread per node calls it every few milliseconds: Start() creates such a thread, which calls it
  // earlier if there is much to free. Unavailable: a node died during the call (the next round leaves it out), or this
  // node has died. Not for coroutines: it blocks.
  Status Advance(Channel* channel);
  Status Start();
  void Stop();
  // Result of the last Advance.
  Status health() const;

  // Has the thread that advances run `chore` after every round, until RemoveChore, which waits for a running chore. A
  // chore is short and neither adds nor removes chores. For work that possibly no other thread ever does.
  uint64_t AddChore(std::function<void()> chore);
  void RemoveChore(uint64_t id);

  // Announcements: one word per node. Every other node knows it after its own next round, because a round READs it
  // together with the slots. For agreements that may take some milliseconds (txn/peer/precedence.h).
  //
  // Announce replaces this node's word, which is initially 0. Thread-safe.
  void Announce(uint64_t word);
  // Has the thread that advances call `look` after each round, also after a failed one. `look` gets the words by node:
  // 0 for a dead node and for this node; the previous word for a node that the round could not READ. Call OnRound once,
  // before the first round.
  void OnRound(std::function<void(std::span<const uint64_t> words)> look);

  // The load that `node` announced last, as of this node's last round. Nodes announce theirs in the same READs, every
  // few milliseconds; this node's own is known, too. Nothing is known of a node before its first announcement, and of a
  // dead node. Thread-safe; one load of memory.
  NodeLoad LoadOf(NodeId node) const;

  const Fabric& fabric() const;

  // This node's copy of the cluster's epoch: transactions begin in it. Monotonic.
  uint64_t current_epoch() const;

  // Belongs to one thread.
  class Participant {
   public:
    // ResourceExhausted if kMaxParticipants are taken.
    static StatusOr<std::unique_ptr<Participant>> Join(EpochManager* manager);
    // Passes blocks that still wait to the manager.
    ~Participant();
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    // Enter and Leave may nest and overlap (several coroutines of one worker): the slot shows the oldest epoch that is
    // inside. Enter returns its epoch. A Leave with that epoch lets the slot advance while others are still inside; a
    // Leave without an argument ends the youngest Enter.
    uint64_t Enter();
    void Leave(uint64_t entered);
    void Leave();

    // Retire frees a block, and RetireWith runs `free`, after the grace period. Normally this participant's thread does
    // so, in a later Leave() or Collect(). If the participant does not leave for long, or has been destroyed, the
    // thread that advances does so, or a thread that finds the memory full (which may hold locks of an index, and is in
    // the middle of allocating). RetireWith: `free` also runs when the manager is destroyed. `cache` names the
    // allocator; the block may go to another thread's cache.
    void Retire(std::byte* block, size_t bytes, SlabCache* cache);
    void RetireWith(std::function<void()> free);
    // Frees and runs what has become safe; returns the number of items that still wait.
    size_t Collect();

   private:
    struct State;
    explicit Participant(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

 private:
  struct State;
  explicit EpochManager(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet::rdma
