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
#include "rdma/epoch.h"

#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma/base/cache_line.h"
#include "rdma/base/check.h"
#include "rdma/base/ring_queue.h"
#include "rdma/coro/worker.h"

namespace gannet::rdma {
namespace {

constexpr auto kAdvanceInterval = std::chrono::milliseconds(5);
constexpr uint64_t kIdle = 0;
constexpr uint64_t kFirstEpoch = 1;
constexpr size_t kFreedPerLeave = 64;  // so that no transaction pays for all of a long grace period

// The area that every node has at the start of its heap: a line with the node's head, then one line per slot, of which
// the first word is used. A READ may see any of these words change at any time; each is whole by itself.
constexpr size_t kAreaBytes = (1 + EpochManager::kMaxParticipants) * kLineBytes;
constexpr size_t SlotOffset(int slot) {
  return (1 + static_cast<size_t>(slot)) * kLineBytes;
}

// The smallest epoch that the slots of an area (live, or an image of one) show.
uint64_t OldestIn(const std::byte* area) {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < EpochManager::kMaxParticipants; ++i) {
    const uint64_t epoch = LoadWord(area + SlotOffset(i));
    if (epoch != kIdle) oldest = std::min(oldest, epoch);
  }
  return oldest;
}

struct Retired {
  uint64_t round = 0;
  std::byte* block = nullptr;  // null: `free` says what to do
  size_t bytes = 0;
  SlabCache* cache = nullptr;
};

struct RetiredFunction {
  uint64_t round = 0;
  std::function<void()> free;
};

}  // namespace

struct EpochManager::State {
  Fabric* fabric = nullptr;
  Node* node = nullptr;
  SlabAllocator* slab = nullptr;
  std::byte* area = nullptr;
  uint64_t area_offset = 0;

  // Read by every Enter and Leave, written once per Advance.
  alignas(kLineBytes) std::atomic<uint64_t> epoch = kFirstEpoch;
  std::atomic<uint64_t> round = 1;
  std::atomic<uint64_t> freed_round = 0;  // what was retired in a round <= this is free

  alignas(kLineBytes) std::mutex advance_mutex;               // guards what follows
  RingQueue<std::pair<uint64_t, uint64_t>> epochs_of_rounds;  // (round, g[round]), not yet freed up to that round
  std::vector<std::byte> images;
  std::vector<Operation> reads;
  coro::Worker worker;

  mutable std::mutex mutex;  // guards what follows
  std::bitset<kMaxParticipants> taken;
  RingQueue<Retired> orphans;
  RingQueue<RetiredFunction> orphan_functions;
  std::unique_ptr<SlabCache> orphan_cache;
  Status health;

  std::mutex thread_mutex;  // guards what follows
  std::condition_variable stopped;
  bool stop = false;
  std::unique_ptr<Channel> channel;
  std::thread thread;

  Status ReadEpoch(Channel* with);
  StatusOr<uint64_t> OldestOfAllNodes(Channel* with);
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
  RingQueue<Retired> retired;
  RingQueue<RetiredFunction> functions;
  std::atomic<uint64_t> barrier = 0;

  State(EpochManager::State* m, int s)
      : manager(m), slot(s), word(*reinterpret_cast<uint64_t*>(m->area + SlotOffset(s))) {
    inside.reserve(16);
  }

  uint64_t RoundOfRetirement() {
    barrier.exchange(0);  // a full barrier, see the top
    return manager->round.load();
  }
  void LeaveCohort(std::vector<Cohort>::iterator cohort);
  size_t CollectSome(size_t limit);
};

namespace {

coro::Task<Status> PostAndWait(Channel* channel, std::span<Operation> operations) {
  co_return co_await channel->Post(operations);
}

}  // namespace

EpochManager::EpochManager(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<EpochManager>> EpochManager::Create(Fabric* fabric, Node* node, SlabAllocator* slab) {
  StatusOr<std::byte*> area = slab->AllocatePermanent(kAreaBytes);
  if (!area.ok()) return area.status();
  auto state = std::make_unique<State>();
  state->fabric = fabric;
  state->node = node;
  state->slab = slab;
  state->area = *area;
  state->area_offset = node->AddressOf(*area).offset();
  if (state->area_offset != RoundUp(node->heap_offset(), kLineBytes)) {
    return absl::FailedPreconditionError(absl::StrCat("node ", node->id(), ": the epoch manager must be the first to ",
                                                      "allocate from the slab, and there can be only one"));
  }
  state->Publish(kFirstEpoch);
  return std::unique_ptr<EpochManager>(new EpochManager(std::move(state)));
}

EpochManager::~EpochManager() {
  Stop();
  GANNET_CHECK(state_->taken.none(), "%d participants outlive their epoch manager", state_->taken.count());
  // No reader of this process is left, so what the functions free (process memory) is free. Blocks of registered memory
  // may still be read from elsewhere: they stay taken.
  while (!state_->orphan_functions.empty()) state_->orphan_functions.pop_front().free();
}

Status EpochManager::Advance(Channel* channel) {
  return state_->Advance(channel);
}

Status EpochManager::State::Advance(Channel* with) {
  Status status;
  {
    std::lock_guard lock(advance_mutex);
    status = AdvanceLocked(with);
  }
  FreeOrphans();
  std::lock_guard lock(mutex);
  health = status;
  return status;
}

Status EpochManager::State::AdvanceLocked(Channel* with) {
  const uint64_t new_round = round.fetch_add(1) + 1;
  StatusOr<size_t> others = ReadAreas(with);
  if (!others.ok()) return others.status();  // a node died just now; the next round leaves it out
  uint64_t newest = epoch.load();
  uint64_t oldest = OldestIn(area);
  for (size_t i = 0; i < *others; ++i) {
    const std::byte* image = images.data() + i * kAreaBytes;
    newest = std::max(newest, LoadWord(image));
    oldest = std::min(oldest, OldestIn(image));
  }
  epochs_of_rounds.push_back({new_round, newest});
  // Any live node may move the epoch on; that the lowest does is enough. Two that both think so do no harm.
  Publish(IsLowestAlive() ? newest + 1 : newest);
  FreeUpTo(oldest);
  return absl::OkStatus();
}

StatusOr<size_t> EpochManager::State::ReadAreas(Channel* with) {
  reads.clear();
  images.resize(static_cast<size_t>(fabric->num_nodes()) * kAreaBytes);
  for (int i = 0; i < fabric->num_nodes(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (id == node->id() || !fabric->Alive(id)) continue;
    reads.push_back(Operation::Read(GlobalAddress(id, area_offset), images.data() + reads.size() * kAreaBytes,
                                    static_cast<uint32_t>(kAreaBytes)));
  }
  if (reads.empty()) return size_t{0};
  const int poller = worker.AddPoller([with] { return with->Poll(); });
  Status status = worker.BlockOn(PostAndWait(with, reads));
  worker.RemovePoller(poller);
  if (!status.ok()) return status;
  return reads.size();
}

bool EpochManager::State::IsLowestAlive() const {
  for (NodeId id = 0; id < node->id(); ++id) {
    if (fabric->Alive(id)) return false;
  }
  return true;
}

void EpochManager::State::Publish(uint64_t new_epoch) {
  StoreWord(area, new_epoch);
  epoch.store(new_epoch);
}

void EpochManager::State::FreeUpTo(uint64_t oldest) {
  while (!epochs_of_rounds.empty() && epochs_of_rounds.front().second < oldest) {
    freed_round.store(epochs_of_rounds.pop_front().first - 1);
  }
}

void EpochManager::State::FreeOrphans() {
  std::vector<std::function<void()>> functions;
  {
    std::lock_guard lock(mutex);
    const uint64_t freed = freed_round.load();
    while (!orphans.empty() && orphans.front().round <= freed) {
      if (orphan_cache == nullptr) orphan_cache = std::make_unique<SlabCache>(slab);
      const Retired retired = orphans.pop_front();
      orphan_cache->Free(retired.block, retired.bytes);
    }
    while (!orphan_functions.empty() && orphan_functions.front().round <= freed) {
      functions.push_back(orphan_functions.pop_front().free);
    }
  }
  for (auto& free : functions) free();
}

Status EpochManager::Start() {
  std::lock_guard lock(state_->thread_mutex);
  if (state_->thread.joinable()) return absl::FailedPreconditionError("the epoch manager runs already");
  StatusOr<std::unique_ptr<Channel>> channel = state_->node->OpenChannel();
  if (!channel.ok()) return channel.status();
  state_->channel = *std::move(channel);
  state_->stop = false;
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
  return absl::OkStatus();
}

void EpochManager::State::Loop() {
  std::unique_lock lock(thread_mutex);
  while (!stopped.wait_for(lock, kAdvanceInterval, [this] { return stop; })) {
    lock.unlock();
    (void)Advance(channel.get());  // health() tells; the next round tries again
    lock.lock();
  }
}

void EpochManager::Stop() {
  {
    std::lock_guard lock(state_->thread_mutex);
    state_->stop = true;
  }
  state_->stopped.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
  state_->channel.reset();
}

Status EpochManager::health() const {
  std::lock_guard lock(state_->mutex);
  return state_->health;
}

uint64_t EpochManager::current_epoch() const {
  return state_->epoch.load();
}

EpochManager::Participant::Participant(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<EpochManager::Participant>> EpochManager::Participant::Join(EpochManager* manager) {
  std::lock_guard lock(manager->state_->mutex);
  for (int i = 0; i < kMaxParticipants; ++i) {
    if (manager->state_->taken[i]) continue;
    manager->state_->taken[i] = true;
    return std::unique_ptr<Participant>(new Participant(std::make_unique<State>(manager->state_.get(), i)));
  }
  return absl::ResourceExhaustedError(absl::StrCat("node ", manager->state_->node->id(), " has ", kMaxParticipants,
                                                   " participants of its epochs already; use fewer workers"));
}

EpochManager::Participant::~Participant() {
  GANNET_CHECK(state_->inside.empty(), "a participant is destroyed while it is in epoch %d",
               state_->inside.front().epoch);
  EpochManager::State& manager = *state_->manager;
  std::lock_guard lock(manager.mutex);
  while (!state_->retired.empty()) manager.orphans.push_back(state_->retired.pop_front());
  while (!state_->functions.empty()) manager.orphan_functions.push_back(state_->functions.pop_front());
  manager.taken[state_->slot] = false;
}

uint64_t EpochManager::Participant::Enter() {
  const uint64_t epoch = state_->manager->epoch.load(std::memory_order_acquire);
  std::vector<State::Cohort>& inside = state_->inside;
  if (!inside.empty() && inside.back().epoch == epoch) {
    ++inside.back().count;
    return epoch;
  }
  inside.push_back({epoch, 1});
  // A full barrier: what this transaction reads, it reads after the slot shows it.
  if (inside.size() == 1) state_->word.exchange(epoch);
  return epoch;
}

void EpochManager::Participant::Leave(uint64_t entered) {
  for (auto cohort = state_->inside.begin(); cohort != state_->inside.end(); ++cohort) {
    if (cohort->epoch == entered) return state_->LeaveCohort(cohort);
  }
  GANNET_CHECK(false, "nobody is in epoch %d", entered);
}

void EpochManager::Participant::Leave() {
  GANNET_CHECK(!state_->inside.empty(), "Leave without Enter in slot %d", state_->slot);
  state_->LeaveCohort(state_->inside.end() - 1);
}

void EpochManager::Participant::State::LeaveCohort(std::vector<Cohort>::iterator cohort) {
  if (--cohort->count > 0) return;
  const bool oldest = cohort == inside.begin();
  inside.erase(cohort);
  // A release: what was read inside was read before the slot says so.
  if (oldest) word.store(inside.empty() ? kIdle : inside.front().epoch, std::memory_order_release);
  CollectSome(kFreedPerLeave);
}

void EpochManager::Participant::Retire(std::byte* block, size_t bytes, SlabCache* cache) {
  state_->retired.push_back({state_->RoundOfRetirement(), block, bytes, cache});
}

void EpochManager::Participant::RetireWith(std::function<void()> free) {
  state_->functions.push_back({state_->RoundOfRetirement(), std::move(free)});
}

size_t EpochManager::Participant::Collect() {
  return state_->CollectSome(std::numeric_limits<size_t>::max());
}

size_t EpochManager::Participant::State::CollectSome(size_t limit) {
  const uint64_t freed = manager->freed_round.load(std::memory_order_acquire);
  for (; limit > 0 && !retired.empty() && retired.front().round <= freed; --limit) {
    const Retired item = retired.pop_front();
    item.cache->Free(item.block, item.bytes);
  }
  for (; limit > 0 && !functions.empty() && functions.front().round <= freed; --limit) functions.pop_front().free();
  return retired.size() + functions.size();
}

}  // namespace gannet::rdma
