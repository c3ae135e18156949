// The grace period: memory that a reader might still look at is reused only when no such reader is left, on any node.
//
// Every worker has a slot in its node's registered memory (so that other nodes can READ it) that says in which epoch
// its current transaction began, or that it is idle. Beside the slots lies the node's copy of the epoch; copies may
// lag, the largest is the cluster's, and the lowest live node moves it on. What was retired before a node looked at all
// copies is free once every slot of every live node, looked at after that, is idle or shows a later epoch than any of
// those copies (epoch_internal.h argues why). A node that died does not count, and none is special.
//
//   EpochManager manager(...);             // one per node, before anything else is allocated from its slab
//   EpochManager::Participant p = ...;     // one per worker
//   p.Enter(); ... transaction ... p.Leave();
//   p.Retire(block, bytes, cache);         // given to SlabCache::Free after the grace period
//
// The bound. A participant frees its own blocks when it leaves: at least twice as many, and twice as many bytes, as it
// has retired since it left before. So its backlog grows only while none of it is free, and is never larger, in blocks
// and in bytes, than what it retired within the longest grace period so far. Blocks that a participant leaves free for
// 20 ms (it idles, stays inside, or works off a burst) are freed by the thread that advances. A round begins every few
// milliseconds, and earlier for each MiB that a participant has retired: a fast load does not fill the memory with what
// waits. A thread that finds the memory full frees all that is free on the node, whichever participant retired it. If
// something still waits for its grace period, the thread waits for some rounds first, at most 20 ms.
//
// What is retired must be unreachable already for readers that start from shared memory. Addresses that a reader keeps
// across transactions (location caches) are not covered: those it checks by key, version and incarnation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::rdma {

class EpochManager {
 public:
  // Slots of one node: sessions, and the calls that it serves at a time, by server threads and by sessions that wait.
  // So more than twice as many as a node has channels.
  static constexpr int kMaxParticipants = 320;

  // Puts this node's slots at a place of its registered memory that every node knows: the first of the heap.
  // FailedPrecondition if something else lies there. All three must outlive the manager, and it its participants.
  static StatusOr<std::unique_ptr<EpochManager>> Create(Fabric* fabric, Node* node, SlabAllocator* slab);
  ~EpochManager();
  EpochManager(const EpochManager&) = delete;
  EpochManager& operator=(const EpochManager&) = delete;

  // Moves the epoch on, and finds out what has become free from all nodes' slots, by one READ per node on `channel`.
  // Called every few milliseconds by one thread per node: Start() does so in a thread of its own, and earlier if there
  // is much to free. Unavailable if a node dies meanwhile (the next round leaves it out) or this one has. Not from a
  // coroutine: it blocks.
  Status Advance(Channel* channel);
  Status Start();
  void Stop();
  // How the last Advance went.
  Status health() const;

  // `chore` is run after every round, by the thread that advances, until RemoveChore, which waits for one that runs.
  // Chores are short, and neither add nor remove chores. For work that no other thread may ever come by to do.
  uint64_t AddChore(std::function<void()> chore);
  void RemoveChore(uint64_t id);

  // Announcements: one word per node, which every other node knows after its next round, because it lies beside what a
  // round READs anyway. For agreements that may take some milliseconds (txn/commit/precedence.h).
  //
  // Announce replaces this node's word; 0 at first. Thread-safe.
  void Announce(uint64_t word);
  // `look` is called after each round, also a failed one, on the thread that advances. It gets the words by node: 0 for
  // a dead node and for this one; for a node that the round could not READ, the word that it had before. Once, before
  // the first round.
  void OnRound(std::function<void(std::span<const uint64_t> words)> look);

  // This node's copy of the cluster's epoch: transactions begin in it. Monotonic.
  uint64_t current_epoch() const;

  // Belongs to one thread.
  class Participant {
   public:
    // ResourceExhausted if kMaxParticipants are taken.
    static StatusOr<std::unique_ptr<Participant>> Join(EpochManager* manager);
    // What is still waiting passes to the manager.
    ~Participant();
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    // Enter and Leave may nest and overlap (several coroutines of one worker): the slot shows the oldest that is in.
    // Enter returns the epoch; a Leave that is given it back lets the slot move on although others are still in, a
    // Leave without is taken for the youngest's.
    uint64_t Enter();
    void Leave(uint64_t entered);
    void Leave();

    // `free` runs after the grace period: on this participant's thread, from a later Leave() or Collect(); or, if the
    // participant leaves nothing for long or is gone by then, on the thread that advances, or one that finds the memory
    // full (which may hold locks of an index, and is in the middle of allocating; RetireWith: also when the manager is
    // destroyed). `cache` tells the allocator; the block may go to another thread's cache.
    void Retire(std::byte* block, size_t bytes, SlabCache* cache);
    void RetireWith(std::function<void()> free);
    // Runs what has become safe; returns how much is still waiting.
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
