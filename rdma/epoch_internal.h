// What epoch.cc (the manager) and epoch_participant.cc share.
//
// Why the rule is safe.
//
// Each node publishes its copy of the epoch, its head, before its transactions begin in it. Each Advance is a round: it
// (1) increments `round`, (2) looks at the heads and the slots of all live nodes. g[round] is the largest head it
// found, m the smallest epoch in a slot. What is retired carries the round of that moment, r. It is freed after a round
// k > r in which m > g[r + 1].
//
// Let a reader hold a block that was retired in round r. When it entered, it stored its node's epoch s in its slot, by
// an instruction that all its later loads and READs wait for; only then did it look for the block.
//  - If s > g[r + 1], its node's head became s after round r + 1 looked at it, and the reader entered later still:
//  after
//    `round` became r + 1, and so after the block was unlinked (Retire puts a full barrier between the unlinking, which
//    its caller did, and its load of `round`, which still gave r). Then the reader could not find the block. The same
//    holds if its node was not there yet when round r + 1 looked.
//  - So s <= g[r + 1] < m, and round k's look at the slot did not see s. Either the slot was stored after that look,
//    which is again after the unlinking; or it was cleared before that look, and the reader has left.
// That a node's head lags behind others makes s smaller, which only frees later.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rdma/base/cache_line.h"
#include "rdma/base/ring_queue.h"
#include "rdma/base/status.h"
#include "rdma/base/thread.h"
#include "rdma/coro/worker.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::rdma {
namespace internal {

inline constexpr uint64_t kIdle = 0;
inline constexpr uint64_t kFirstEpoch = 1;

// The area that every node has at the start of its heap: a line with the node's head, then one line per slot, of which
// the first word is used. A READ may see any of these words change at any time; each is whole by itself.
inline constexpr size_t kEpochAreaBytes = (1 + EpochManager::kMaxParticipants) * kLineBytes;
constexpr size_t SlotOffset(int slot) {
  return (1 + static_cast<size_t>(slot)) * kLineBytes;
}

struct Retired {
  uint64_t round = 0;
  std::byte* block = nullptr;
  size_t bytes = 0;
  SlabCache* cache = nullptr;
};

struct RetiredFunction {
  uint64_t round = 0;
  std::function<void()> free;
};

}  // namespace internal

struct EpochManager::State {
  Fabric* fabric = nullptr;
  Node* node = nullptr;
  SlabAllocator* slab = nullptr;
  std::byte* area = nullptr;
  uint64_t area_offset = 0;

  // Read by every Enter and Leave, written once per Advance.
  alignas(kLineBytes) std::atomic<uint64_t> epoch = internal::kFirstEpoch;
  std::atomic<uint64_t> round = 1;
  std::atomic<uint64_t> freed_round = 0;  // what was retired in a round <= this is free

  alignas(kLineBytes) Mutex advance_mutex;                    // guards what follows
  RingQueue<std::pair<uint64_t, uint64_t>> epochs_of_rounds;  // (round, g[round]), not yet freed up to that round
  std::vector<std::byte> images;
  std::vector<Operation> reads;
  coro::Worker worker;

  mutable Mutex mutex;  // guards what follows
  std::bitset<kMaxParticipants> taken;
  RingQueue<internal::Retired> orphans;
  RingQueue<internal::RetiredFunction> orphan_functions;
  std::unique_ptr<SlabCache> orphan_cache;
  Status health;

  Mutex thread_mutex;  // guards what follows
  CondVar stopped;
  bool stop = false;
  std::unique_ptr<Channel> channel;
  Thread thread;

  Status Advance(Channel* with);
  Status AdvanceLocked(Channel* with);
  // The images of the areas of all other live nodes, one after the other in `images`; returns how many.
  StatusOr<size_t> ReadAreas(Channel* with);
  bool IsLowestAlive() const;
  void Publish(uint64_t new_epoch);
  void FreeUpTo(uint64_t oldest);
  void FreeOrphans();
  void Loop();
};

struct EpochManager::Participant::State {
  struct Cohort {
    uint64_t epoch = 0;
    uint64_t count = 0;
  };

  EpochManager::State* manager = nullptr;
  int slot = 0;
  std::atomic_ref<uint64_t> word;
  std::vector<Cohort> inside;  // oldest first
  RingQueue<internal::Retired> retired;
  RingQueue<internal::RetiredFunction> functions;
  std::atomic<uint64_t> barrier = 0;

  State(EpochManager::State* m, int s)
      : manager(m), slot(s), word(*reinterpret_cast<uint64_t*>(m->area + internal::SlotOffset(s))) {
    inside.reserve(16);
  }

  uint64_t RoundOfRetirement() {
    barrier.exchange(0);  // a full barrier, see the top
    return manager->round.load();
  }
  void LeaveCohort(std::vector<Cohort>::iterator cohort);
  size_t CollectSome(size_t limit);
};

}  // namespace gannet::rdma
