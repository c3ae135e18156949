#include "rdma/epoch.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "rdma/epoch_internal.h"

namespace gannet::rdma {
namespace {

using internal::kEpochAreaBytes;
using internal::kIdle;

constexpr absl::Duration kAdvanceInterval = absl::Milliseconds(5);
constexpr absl::Duration kLongestPause = absl::Milliseconds(100);
constexpr int kPausePerRound = 20;  // multiple of the round's duration, clamped to these two
// A node announces its load for intervals of at least this length: a little less than that of its usual rounds.
constexpr uint64_t kLeastLoadIntervalNanos = 4'000'000;
constexpr size_t kMaxRoundsRemembered = 1024;  // a reader that never leaves must not use unbounded memory
// A participant that leaves free items for this many rounds (20 ms) is idle or too slow; the manager frees them.
constexpr size_t kPatienceRounds = 4;
constexpr size_t kTakenAtOnce = 256;  // bounds how long the participant's thread may have to wait
// Blocks that were retired before a thread found the memory full are free after the third round from then, unless an
// older transaction is still active. The thread may hold locks, so it does not wait for such a transaction.
constexpr uint64_t kRoundsWhenFull = 3;
constexpr uint64_t kWaitWhenFullNanos = 20'000'000;
constexpr uint64_t kLookWhenFullNanos = 50'000;

// This value is less than every epoch in use.
constexpr uint64_t kUnknown = 0;
// Greater than every epoch in use. The head of another node that says so is no epoch.
constexpr uint64_t kBeyondAll = uint64_t{1} << 63;

// The smallest epoch in the slots of an area (live, or an image of one). kUnknown: a slot was changed while it was READ
// (fabric.h, 2). It may have been idle or not.
uint64_t OldestIn(const std::byte* area) {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < EpochManager::kMaxParticipants; ++i) {
    const uint64_t epoch = LoadWord(area + internal::SlotOffset(i));
    if (IsLineBusy(epoch)) return kUnknown;
    if (epoch != kIdle) oldest = std::min(oldest, epoch);
  }
  return oldest;
}

coro::Task<Status> PostAndWait(Channel* channel, std::span<Operation> operations) {
  co_return co_await channel->Post(operations);
}

}  // namespace

EpochManager::EpochManager(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<EpochManager>> EpochManager::Create(Fabric* fabric, Node* node, SlabAllocator* slab) {
  StatusOr<std::byte*> area = slab->AllocateExtent(kEpochAreaBytes);
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
  state->announced.resize(static_cast<size_t>(fabric->num_nodes()));
  state->loads = std::vector<std::atomic<uint64_t>>(static_cast<size_t>(fabric->num_nodes()));
  state->served = node->served_time();
  state->served_at = NowNanos();
  state->Publish(internal::kFirstEpoch);
  slab->WhenFull([state = state.get()] { state->CollectAll(); });
  return std::unique_ptr<EpochManager>(new EpochManager(std::move(state)));
}

EpochManager::~EpochManager() {
  Stop();
  state_->slab->WhenFull(nullptr);
  GANNET_CHECK(state_->taken.none(), "%d participants outlive their epoch manager", state_->taken.count());
  // No reader of this process is left, so the functions may run: they free process memory. Blocks of registered memory
  // may still be read from other nodes, so they stay allocated.
  while (!state_->orphan_functions.empty()) state_->orphan_functions.pop_front().free();
}

Status EpochManager::Advance(Channel* channel) {
  return state_->Advance(channel);
}

Status EpochManager::State::Advance(Channel* with) {
  Status status;
  uint64_t left_since = 0;
  {
    std::lock_guard lock(advance_mutex);
    status = AdvanceLocked(with);
    left_since = LeftSince();
  }
  FreeForOthers(left_since);
  {
    std::lock_guard lock(chores_mutex);
    for (auto& [id, chore] : chores) chore();
  }
  std::lock_guard lock(mutex);
  health = status;
  return status;
}

Status EpochManager::State::AdvanceLocked(Channel* with) {
  const uint64_t new_round = round.fetch_add(1) + 1;
  AnnounceLoad();
  StatusOr<size_t> others = ReadAreas(with);
  LookAtAnnouncements(others.ok() ? *others : 0);
  LookAtLoads(others.ok() ? *others : 0);
  if (!others.ok()) {  // a node died during the round; the next one leaves it out
    Sometimes<"epoch: a node cannot be asked for its slots">();
    return others.status();
  }
  PreemptionPoint();
  uint64_t newest = epoch.load();
  uint64_t oldest = OldestIn(area);
  bool knows_heads = true;
  for (size_t i = 0; i < *others; ++i) {
    const std::byte* image = images.data() + i * kEpochAreaBytes;
    const uint64_t head = LoadWord(image);
    if (head >= kBeyondAll) {  // it was changed while it was READ: the line is busy
      Sometimes<"epoch: the head of another node changes during the READ">();
      knows_heads = false;
    } else {
      newest = std::max(newest, head);
    }
    oldest = std::min(oldest, OldestIn(image));
  }
  // A round may be left out of the list: a later one frees its blocks.
  if (knows_heads && epochs_of_rounds.size() < kMaxRoundsRemembered) epochs_of_rounds.push_back({new_round, newest});
  // Any live node may advance the epoch; the live node with the lowest number is enough. If two nodes both do it, no
  // harm is done.
  Publish(IsLowestAlive() ? newest + 1 : newest);
  FreeUpTo(oldest);
  return absl::OkStatus();
}

StatusOr<size_t> EpochManager::State::ReadAreas(Channel* with) {
  reads.clear();
  images.resize(static_cast<size_t>(fabric->num_nodes()) * kEpochAreaBytes);
  for (int i = 0; i < fabric->num_nodes(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (id == node->id() || !fabric->Alive(id)) continue;
    reads.push_back(Operation::Read(GlobalAddress(id, area_offset), images.data() + reads.size() * kEpochAreaBytes,
                                    static_cast<uint32_t>(kEpochAreaBytes)));
  }
  if (reads.empty()) return size_t{0};
  const int poller = worker.AddPoller([with] { return with->Poll(); });
  Status status = worker.BlockOn(PostAndWait(with, reads));
  worker.RemovePoller(poller);
  if (!status.ok()) return status;
  return reads.size();
}

void EpochManager::State::LookAtAnnouncements(size_t images_of) {
  if (look == nullptr) return;
  for (size_t i = 0; i < images_of; ++i) {
    announced[reads[i].remote.node()] = LoadWord(images.data() + i * kEpochAreaBytes + internal::kAnnouncedOffset);
  }
  const auto nodes = static_cast<NodeId>(announced.size());
  for (NodeId id = 0; id < nodes; ++id) {
    if (!fabric->Alive(id)) announced[id] = 0;
  }
  look(announced);
}

// A share of too short a time says little: rounds may follow each other quickly when there is much to free.
void EpochManager::State::AnnounceLoad() {
  const uint64_t now = NowNanos();
  const uint64_t nanos = now - served_at;
  if (nanos < kLeastLoadIntervalNanos) return;
  const ServedTime until_now = node->served_time();
  std::atomic<uint64_t>& own = loads[node->id()];
  const uint32_t before = NodeLoad::Unpack(own.load(std::memory_order_relaxed)).number;
  const uint64_t word = NodeLoad::Between(served, until_now, nanos, before).Pack();
  own.store(word, std::memory_order_relaxed);
  StoreWord(area + internal::kLoadOffset, word);
  served = until_now;
  served_at = now;
}

void EpochManager::State::LookAtLoads(size_t images_of) {
  for (size_t i = 0; i < images_of; ++i) {
    const uint64_t word = LoadWord(images.data() + i * kEpochAreaBytes + internal::kLoadOffset);
    loads[reads[i].remote.node()].store(word, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    if (!fabric->Alive(static_cast<NodeId>(i))) loads[i].store(0, std::memory_order_relaxed);
  }
}

NodeLoad EpochManager::LoadOf(NodeId node) const {
  return NodeLoad::Unpack(state_->loads[node].load(std::memory_order_relaxed));
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
    const uint64_t freed = epochs_of_rounds.pop_front().first - 1;
    // Readers may still hold blocks of a round that has not begun, or of one that was free before and is not now.
    GANNET_CHECK(freed >= freed_round.load() && freed < round.load(), "round %d is free after round %d, in round %d",
                 freed, freed_round.load(), round.load());
    freed_round.store(freed);
  }
}

uint64_t EpochManager::State::LeftSince() {
  freed_rounds.push_back(freed_round.load());
  return freed_rounds.size() > kPatienceRounds ? freed_rounds.pop_front() : 0;
}

void EpochManager::State::FreeForOthers(uint64_t left_since) {
  std::vector<internal::RetiredFunction> functions;
  {
    std::lock_guard lock(mutex);
    std::vector<internal::Retired> blocks;
    const uint64_t freed = freed_round.load();
    for (internal::Backlog* backlog : backlogs) {
      if (backlog == nullptr || !backlog->IsDue(left_since)) continue;
      bool more = true;
      while (more) {
        const size_t before = blocks.size() + functions.size();
        more =
            !backlog->TakeOver(freed, kTakenAtOnce, &blocks, &functions) && blocks.size() + functions.size() > before;
      }
      FreeBlocks(&blocks);
    }
    while (!orphans.empty() && orphans.front().round <= freed) blocks.push_back(orphans.pop_front());
    FreeBlocks(&blocks);
    while (!orphan_functions.empty() && orphan_functions.front().round <= freed) {
      functions.push_back(orphan_functions.pop_front());
    }
  }
  for (internal::RetiredFunction& function : functions) function.free();
}

void EpochManager::State::CollectAll() {
  const uint64_t until_round = round.load() + kRoundsWhenFull;
  const uint64_t deadline = NowNanos() + kWaitWhenFullNanos;
  FreeForOthers(freed_round.load());
  if (!advances.load() || !SomethingWaits()) return;
  SometimesInTests<"epoch: a thread that finds the memory full waits for a grace period">();
  // `round` grows when a round begins, so the last round needed has ended when the next one has begun.
  while (round.load() <= until_round && NowNanos() < deadline) {
    Hurry();
    SleepForNanos(kLookWhenFullNanos);
  }
  FreeForOthers(freed_round.load());
}

bool EpochManager::State::SomethingWaits() {
  std::lock_guard lock(mutex);
  return !orphans.empty() || !orphan_functions.empty() || std::ranges::any_of(backlogs, [](internal::Backlog* backlog) {
    return backlog != nullptr && !backlog->empty();
  });
}

// Frees to the allocator, not to the cache of this thread, which allocates nothing.
void EpochManager::State::FreeBlocks(std::vector<internal::Retired>* blocks) {
  if (blocks->empty()) return;
  if (orphan_cache == nullptr) orphan_cache = std::make_unique<SlabCache>(slab);
  for (const internal::Retired& retired : *blocks) orphan_cache->Free(retired.block, retired.bytes);
  orphan_cache->GiveBack();
  blocks->clear();
}

uint64_t EpochManager::AddChore(std::function<void()> chore) {
  std::lock_guard lock(state_->chores_mutex);
  state_->chores.emplace_back(state_->next_chore, std::move(chore));
  return state_->next_chore++;
}

void EpochManager::RemoveChore(uint64_t id) {
  std::lock_guard lock(state_->chores_mutex);
  std::erase_if(state_->chores, [id](const auto& chore) { return chore.first == id; });
}

void EpochManager::Announce(uint64_t word) {
  StoreWord(state_->area + internal::kAnnouncedOffset, word);
}

void EpochManager::OnRound(std::function<void(std::span<const uint64_t> words)> look) {
  std::lock_guard lock(state_->advance_mutex);
  GANNET_CHECK(state_->look == nullptr, "node %d: announcements are looked at already", state_->node->id());
  state_->look = std::move(look);
}

Status EpochManager::Start() {
  std::lock_guard lock(state_->thread_mutex);
  if (state_->thread.joinable()) return absl::FailedPreconditionError("the epoch manager runs already");
  StatusOr<std::unique_ptr<Channel>> channel = state_->node->OpenChannel();
  if (!channel.ok()) return channel.status();
  state_->channel = *std::move(channel);
  state_->stop = false;
  state_->advances = true;
  state_->thread = Thread("epoch", [state = state_.get()] { state->Loop(); });
  return absl::OkStatus();
}

void EpochManager::State::Hurry() {
  if (hurry.load(std::memory_order_relaxed) || hurry.exchange(true)) return;
  { const std::lock_guard lock(thread_mutex); }  // the thread is not between its look at `hurry` and its sleep
  wake.notify_all();
}

void EpochManager::State::Loop() {
  std::unique_lock lock(thread_mutex);
  absl::Duration pause = kAdvanceInterval;
  absl::Duration least_pause = absl::ZeroDuration();
  while (true) {
    // A round may take long (SoftRoCE, many nodes). The pauses leave the CPU to other work.
    wake.wait_for(lock, least_pause, [this] { return stop; });
    wake.wait_for(lock, pause - least_pause, [this] { return stop || hurry.load(); });
    if (stop) return;
    hurry.store(false);
    lock.unlock();
    const uint64_t start = NowNanos();
    (void)Advance(channel.get());  // reported by health(); the next round tries again
    const absl::Duration took = absl::Nanoseconds(NowNanos() - start);
    pause = std::clamp(kPausePerRound * took, kAdvanceInterval, kLongestPause);
    least_pause = std::min(took, kAdvanceInterval);
    lock.lock();
  }
}

void EpochManager::Stop() {
  {
    std::lock_guard lock(state_->thread_mutex);
    state_->stop = true;
    state_->advances = false;
  }
  state_->wake.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
  state_->channel.reset();
}

Status EpochManager::health() const {
  std::lock_guard lock(state_->mutex);
  return state_->health;
}

const Fabric& EpochManager::fabric() const {
  return *state_->fabric;
}

uint64_t EpochManager::current_epoch() const {
  return state_->epoch.load();
}

}  // namespace gannet::rdma
