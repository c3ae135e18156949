// Internals shared by epoch.cc (the manager) and epoch_participant.cc.
//
// Why the rule is safe.
//
// Each node publishes its copy of the epoch, its head, before its transactions begin in it. Each Advance is a round: it
// (1) increments `round`, (2) reads the heads and the slots of all live nodes. g[round] is the largest head that it
// found, m the smallest epoch in a slot. A retired block carries the round r in which it was retired. It is freed after
// a round k > r in which m > g[r + 1].
//
// Let a reader hold a block that was retired in round r. When it entered, it stored its node's epoch s in its slot, by
// an instruction that all its later loads and READs wait for. Only then did it look for the block.
//  - If s > g[r + 1], its node's head became s after round r + 1 read it, and the reader entered still later. So the
//    reader entered after `round` became r + 1, and therefore after the block was unlinked: Retire puts a full barrier
//    between its caller's unlinking and its own load of `round`, which still returned r. Such a reader cannot find the
//    block. The same holds if its node had not joined yet when round r + 1 read the heads.
//  - Otherwise s <= g[r + 1] < m, so round k did not see s in the slot. Either the slot was stored after round k read
//    it, which is again after the unlinking, or it was cleared before, and the reader has left.
// If a node's head lags behind others, s is smaller, so blocks are only freed later.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "base/owner_lock.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "rdma/statistics.h"

namespace gannet::rdma {
namespace internal {

inline constexpr uint64_t kIdle = 0;
inline constexpr uint64_t kFirstEpoch = 1;

// Layout of the area at the start of every node's heap: a line with the node's head, the word that it announces and its
// load (statistics.h), then one line per slot, of which only the first word is used. Each of these words may change at
// any time during a READ; each is read atomically.
inline constexpr size_t kEpochAreaBytes = (1 + EpochManager::kMaxParticipants) * kLineBytes;
inline constexpr size_t kAnnouncedOffset = kWordBytes;
inline constexpr size_t kLoadOffset = 2 * kWordBytes;
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

// The blocks and functions that one participant has retired and that are not freed yet, in the order of the rounds. The
// participant's thread adds and takes; the manager takes what that thread leaves.
class Backlog {
 public:
  // Called by the participant's thread.
  void Add(Retired block);
  void Add(RetiredFunction function);
  // Takes at most `out.size()` blocks that were retired in rounds up to `freed`; returns their number.
  size_t TakeBlocks(uint64_t freed, std::span<Retired> out);
  bool TakeFunction(uint64_t freed, RetiredFunction* out);
  size_t size();

  // True if something was retired in a round up to `freed`. Any thread.
  bool IsDue(uint64_t freed) const { return oldest_.load(std::memory_order_relaxed) <= freed; }
  bool empty() const { return oldest_.load(std::memory_order_relaxed) == kNothing; }

  // Called by the manager: moves up to `most` of each to the ends of *blocks and *functions. False if there is more, or
  // if the participant's thread holds the lock.
  bool TakeOver(uint64_t freed, size_t most, std::vector<Retired>* blocks, std::vector<RetiredFunction>* functions);

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};
  void NoteOldest();

  OwnerLock lock_;  // guards the members below; owned by the participant's thread
  RingQueue<Retired> blocks_;
  RingQueue<RetiredFunction> functions_;
  std::atomic<uint64_t> oldest_ = kNothing;  // the smallest round in them
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
  std::atomic<uint64_t> freed_round = 0;  // blocks retired in a round <= this are free

  alignas(kLineBytes) Mutex advance_mutex;                    // guards the members below
  RingQueue<std::pair<uint64_t, uint64_t>> epochs_of_rounds;  // (round, g[round]), not yet freed up to that round
  std::vector<std::byte> images;
  std::vector<Operation> reads;
  std::vector<uint64_t> announced;  // by node
  ServedTime served;                // when this node last announced its load
  uint64_t served_at = 0;
  std::function<void(std::span<const uint64_t>)> look;
  coro::Worker worker;
  RingQueue<uint64_t> freed_rounds;  // freed_round after each of the last rounds

  // The announced loads by node; written once per round, read by every choice of a way (txn/access).
  alignas(kLineBytes) std::vector<std::atomic<uint64_t>> loads;

  mutable Mutex mutex;  // guards the members below
  std::bitset<kMaxParticipants> taken;
  std::array<internal::Backlog*, kMaxParticipants> backlogs{};  // of the taken slots
  RingQueue<internal::Retired> orphans;
  RingQueue<internal::RetiredFunction> orphan_functions;
  std::unique_ptr<SlabCache> orphan_cache;
  Status health;

  Mutex chores_mutex;  // guards the members below, and is held while the chores run
  uint64_t next_chore = 1;
  std::vector<std::pair<uint64_t, std::function<void()>>> chores;

  Mutex thread_mutex;  // guards the members below
  CondVar wake;
  bool stop = false;
  // Read without the mutex, too.
  std::atomic<bool> hurry = false;
  std::atomic<bool> advances = false;  // a thread advances
  std::unique_ptr<Channel> channel;
  Thread thread;

  Status Advance(Channel* with);
  Status AdvanceLocked(Channel* with);
  // READs the areas of all other live nodes into `images`, one after the other; returns their number.
  StatusOr<size_t> ReadAreas(Channel* with);
  // `images_of`: number of `reads` that brought an image.
  void LookAtAnnouncements(size_t images_of);
  void LookAtLoads(size_t images_of);
  void AnnounceLoad();
  bool IsLowestAlive() const;
  void Publish(uint64_t new_epoch);
  void FreeUpTo(uint64_t oldest);
  // Returns a round: blocks retired up to it have been free for long and were not taken.
  uint64_t LeftSince();
  // Frees the free blocks of destroyed participants, and of participants that have left some free since `left_since`.
  void FreeForOthers(uint64_t left_since);
  void FreeBlocks(std::vector<internal::Retired>* blocks);
  // Called by a thread that finds the memory full: frees all blocks that are free or become free within a few rounds.
  void CollectAll();
  bool SomethingWaits();
  // Makes the next round begin soon, if there is a thread that advances.
  void Hurry();
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
  internal::Backlog backlog;
  std::atomic<uint64_t> barrier = 0;
  // These count what was retired since the last Leave that collected.
  size_t blocks = 0;
  size_t block_bytes = 0;
  size_t functions = 0;
  // This counts what was retired since this participant last asked for a round.
  size_t bytes_since_round = 0;

  State(EpochManager::State* m, int s)
      : manager(m), slot(s), word(*reinterpret_cast<uint64_t*>(m->area + internal::SlotOffset(s))) {
    inside.reserve(16);
  }

  uint64_t RoundOfRetirement() {
    barrier.exchange(0);  // a full barrier, see the top
    return manager->round.load();
  }
  void LeaveCohort(std::vector<Cohort>::iterator cohort);
  // Frees at least the given numbers of free items and not many more; fewer only if fewer are free.
  void CollectSome(size_t least_blocks, size_t least_bytes, size_t least_functions);
  void CollectShare();
};

}  // namespace gannet::rdma
