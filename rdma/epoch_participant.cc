#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/epoch_internal.h"

namespace gannet::rdma {
namespace {

// Each Leave frees twice what was retired since the previous one. So the backlog does not grow while part of it is
// free, and no transaction pays for all of a long grace period. A Leave frees at least this many items.
constexpr size_t kLeastPerLeave = 64;
constexpr size_t kAtOnce = 32;

// A round costs microseconds and a wake-up. Writing this many bytes takes longer than that.
constexpr size_t kBytesPerRound = size_t{1} << 20;

}  // namespace

namespace internal {

void Backlog::NoteOldest() {
  uint64_t oldest = blocks_.empty() ? kNothing : blocks_.front().round;
  if (!functions_.empty()) oldest = std::min(oldest, functions_.front().round);
  oldest_.store(oldest, std::memory_order_relaxed);
}

void Backlog::Add(Retired block) {
  std::lock_guard lock(lock_);
  // Taking stops at the first block that is not free, so an earlier round behind a later one would stay.
  GANNET_CHECK(blocks_.empty() || blocks_.at(blocks_.size() - 1).round <= block.round,
               "a block is retired in round %d, after one in round %d", block.round,
               blocks_.at(blocks_.size() - 1).round);
  blocks_.push_back(block);
  NoteOldest();
}

void Backlog::Add(RetiredFunction function) {
  std::lock_guard lock(lock_);
  functions_.push_back(std::move(function));
  NoteOldest();
}

size_t Backlog::TakeBlocks(uint64_t freed, std::span<Retired> out) {
  std::lock_guard lock(lock_);
  size_t n = 0;
  while (n < out.size() && !blocks_.empty() && blocks_.front().round <= freed) out[n++] = blocks_.pop_front();
  NoteOldest();
  return n;
}

bool Backlog::TakeFunction(uint64_t freed, RetiredFunction* out) {
  std::lock_guard lock(lock_);
  if (functions_.empty() || functions_.front().round > freed) return false;
  *out = functions_.pop_front();
  NoteOldest();
  return true;
}

size_t Backlog::size() {
  std::lock_guard lock(lock_);
  return blocks_.size() + functions_.size();
}

bool Backlog::TakeOver(uint64_t freed, size_t most, std::vector<Retired>* blocks,
                       std::vector<RetiredFunction>* functions) {
  const OwnerLock::Visit visit(lock_);
  if (!visit.entered()) return false;
  for (size_t n = 0; n < most && !blocks_.empty() && blocks_.front().round <= freed; ++n) {
    blocks->push_back(blocks_.pop_front());
  }
  for (size_t n = 0; n < most && !functions_.empty() && functions_.front().round <= freed; ++n) {
    functions->push_back(functions_.pop_front());
  }
  NoteOldest();
  return !IsDue(freed);
}

}  // namespace internal

EpochManager::Participant::Participant(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<EpochManager::Participant>> EpochManager::Participant::Join(EpochManager* manager) {
  std::lock_guard lock(manager->state_->mutex);
  for (int i = 0; i < kMaxParticipants; ++i) {
    if (manager->state_->taken[i]) continue;
    auto state = std::make_unique<State>(manager->state_.get(), i);
    manager->state_->taken[i] = true;
    manager->state_->backlogs[i] = &state->backlog;
    return std::unique_ptr<Participant>(new Participant(std::move(state)));
  }
  return absl::ResourceExhaustedError(absl::StrCat("node ", manager->state_->node->id(), " has ", kMaxParticipants,
                                                   " participants of its epochs already; use fewer workers"));
}

EpochManager::Participant::~Participant() {
  GANNET_CHECK(state_->inside.empty(), "a participant is destroyed while it is in epoch %d",
               state_->inside.front().epoch);
  EpochManager::State& manager = *state_->manager;
  std::lock_guard lock(manager.mutex);
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max() - 1;
  internal::Retired block;
  while (state_->backlog.TakeBlocks(kAll, {&block, 1}) > 0) manager.orphans.push_back(block);
  internal::RetiredFunction function;
  while (state_->backlog.TakeFunction(kAll, &function)) manager.orphan_functions.push_back(std::move(function));
  manager.backlogs[state_->slot] = nullptr;
  manager.taken[state_->slot] = false;
}

uint64_t EpochManager::Participant::Enter() {
  const uint64_t epoch = state_->manager->epoch.load(std::memory_order_acquire);
  std::vector<State::Cohort>& inside = state_->inside;
  if (!inside.empty() && inside.back().epoch == epoch) {
    ++inside.back().count;
    return epoch;
  }
  // The slot shows the epoch of the first, which must be the oldest.
  GANNET_CHECK(inside.empty() || inside.back().epoch < epoch, "epoch %d is entered after epoch %d", epoch,
               inside.back().epoch);
  inside.push_back({epoch, 1});
  PreemptionPoint();
  // A full barrier: the transaction's reads come after the slot shows the epoch.
  if (inside.size() == 1) state_->word.exchange(epoch);
  return epoch;
}

void EpochManager::Participant::Leave(uint64_t entered) {
  for (auto cohort = state_->inside.begin(); cohort != state_->inside.end(); ++cohort) {
    if (cohort->epoch == entered) return state_->LeaveCohort(cohort);
  }
  GANNET_CHECK(false, "no transaction is in epoch %d", entered);
}

void EpochManager::Participant::Leave() {
  GANNET_CHECK(!state_->inside.empty(), "Leave without Enter in slot %d", state_->slot);
  state_->LeaveCohort(state_->inside.end() - 1);
}

void EpochManager::Participant::State::LeaveCohort(std::vector<Cohort>::iterator cohort) {
  if (--cohort->count == 0) {
    const bool oldest = cohort == inside.begin();
    inside.erase(cohort);
    // A release: the reads inside come before the slot is cleared.
    if (oldest) word.store(inside.empty() ? internal::kIdle : inside.front().epoch, std::memory_order_release);
  }
  CollectShare();
}

void EpochManager::Participant::Retire(std::byte* block, size_t bytes, SlabCache* cache) {
  ++state_->blocks;
  state_->block_bytes += bytes;
  state_->backlog.Add(internal::Retired{state_->RoundOfRetirement(), block, bytes, cache});
}

void EpochManager::Participant::RetireWith(std::function<void()> free) {
  ++state_->functions;
  state_->backlog.Add(internal::RetiredFunction{state_->RoundOfRetirement(), std::move(free)});
}

size_t EpochManager::Participant::Collect() {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  state_->CollectSome(kAll, kAll, kAll);
  return state_->backlog.size();
}

void EpochManager::Participant::State::CollectShare() {
  // After a transaction that retired nothing there is usually nothing to do.
  if (blocks == 0 && functions == 0 && !backlog.IsDue(manager->freed_round.load(std::memory_order_relaxed))) return;
  bytes_since_round += block_bytes;
  if (bytes_since_round >= kBytesPerRound) [[unlikely]] {
    bytes_since_round = 0;
    manager->Hurry();
  }
  const size_t least_blocks = std::max(kLeastPerLeave, 2 * std::exchange(blocks, 0));
  const size_t least_bytes = 2 * std::exchange(block_bytes, 0);
  const size_t least_functions = std::max(kLeastPerLeave, 2 * std::exchange(functions, 0));
  CollectSome(least_blocks, least_bytes, least_functions);
}

// Frees outside of the backlog's lock, so that the manager never waits for it.
void EpochManager::Participant::State::CollectSome(size_t least_blocks, size_t least_bytes, size_t least_functions) {
  const uint64_t freed = manager->freed_round.load(std::memory_order_acquire);
  if (!backlog.IsDue(freed)) [[likely]]
    return;
  std::array<internal::Retired, kAtOnce> some;
  for (size_t n = 0, bytes = 0; n < least_blocks || bytes < least_bytes;) {
    const size_t taken = backlog.TakeBlocks(freed, some);
    for (size_t i = 0; i < taken; ++i) {
      some[i].cache->Free(some[i].block, some[i].bytes);
      bytes += some[i].bytes;
    }
    n += taken;
    if (taken < some.size()) break;
  }
  internal::RetiredFunction function;
  for (size_t n = 0; n < least_functions && backlog.TakeFunction(freed, &function); ++n) function.free();
}

}  // namespace gannet::rdma
