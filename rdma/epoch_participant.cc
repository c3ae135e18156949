#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/check.h"
#include "rdma/epoch_internal.h"

namespace gannet::rdma {
namespace {

constexpr size_t kFreedPerLeave = 64;  // so that no transaction pays for all of a long grace period

}  // namespace

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
  PreemptionPoint();
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
  if (oldest) word.store(inside.empty() ? internal::kIdle : inside.front().epoch, std::memory_order_release);
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
    const internal::Retired item = retired.pop_front();
    item.cache->Free(item.block, item.bytes);
  }
  for (; limit > 0 && !functions.empty() && functions.front().round <= freed; --limit) functions.pop_front().free();
  return retired.size() + functions.size();
}

}  // namespace gannet::rdma
