#include "ycsb/leaf_queues.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/runtime.h"

namespace gannet::ycsb {

bool LeafQueues::Join(rdma::GlobalAddress leaf, Waiter* waiter) {
  Charge(Cost::kIndexStep);
  Part& part = PartOf(leaf);
  const std::lock_guard lock(part.mutex);
  const auto [at, is_first] = part.queues.try_emplace(leaf.bits());
  Queue& queue = at->second;
  const bool leads = is_first || queue.leaders < most_leaders_;
  if (leads && !is_first) ++queue.leaders;
  waiter->leaf_ = leaf;
  waiter->turn_ = Turn::kLeads;
  waiter->has_waited_ = !leads;
  waiter->state_ = leads ? Waiter::State::kResumed : Waiter::State::kWaiting;
  if (!leads) queue.waiting.push_back(waiter);
  return !leads;
}

void LeafQueues::Wake(Waiter* waiter, Turn turn) {
  waiter->turn_ = turn;
  waiter->state_ = Waiter::State::kResumed;
  waiter->worker_->Unpark(&waiter->parked_);
}

void LeafQueues::DisperseQueue(Part& part, rdma::GlobalAddress leaf) {
  const auto at = part.queues.find(leaf.bits());
  Queue& queue = at->second;
  for (Waiter* const waiter : queue.waiting) Wake(waiter, Turn::kAgain);
  queue.waiting.clear();
  if (--queue.leaders == 0) part.queues.erase(at);
}

// Called when its worker ends. A waiter that was passed the lead and will not be resumed passes it on.
void LeafQueues::Withdraw(Waiter* waiter) {
  Part& part = PartOf(waiter->leaf_);
  const std::lock_guard lock(part.mutex);
  switch (waiter->state_) {
    case Waiter::State::kWaiting:
      std::erase(part.queues.find(waiter->leaf_.bits())->second.waiting, waiter);
      return;
    case Waiter::State::kTaken:
      std::ranges::replace(waiter->taken_by_->taken_, waiter, nullptr);
      return;
    case Waiter::State::kResumed:
      if (waiter->turn_ == Turn::kLeads) DisperseQueue(part, waiter->leaf_);
      return;
  }
}

size_t LeafQueues::Leader::waiting() const {
  Part& part = queues_->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  return part.queues.find(leaf_.bits())->second.waiting.size();
}

void LeafQueues::Leader::SendAway(const std::function<bool(const Waiter&)>& stays) {
  Part& part = queues_->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  std::erase_if(part.queues.find(leaf_.bits())->second.waiting, [&stays](Waiter* waiter) {
    if (stays(*waiter)) return false;
    Wake(waiter, Turn::kAgain);
    return true;
  });
}

void LeafQueues::Leader::Take(size_t most, const std::function<void(const Waiter&)>& visit) {
  Charge(Cost::kIndexStep);
  Part& part = queues_->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  Queue& queue = part.queues.find(leaf_.bits())->second;
  const auto end = queue.waiting.begin() + static_cast<ptrdiff_t>(std::min(most, queue.waiting.size()));
  taken_.assign(queue.waiting.begin(), end);
  queue.waiting.erase(queue.waiting.begin(), end);
  for (Waiter* const waiter : taken_) {
    waiter->state_ = Waiter::State::kTaken;
    waiter->taken_by_ = this;
    visit(*waiter);
  }
}

void LeafQueues::Leader::Answer(const std::function<std::optional<Turn>(size_t number, Waiter&)>& answer) {
  Part& part = queues_->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  Queue& queue = part.queues.find(leaf_.bits())->second;
  std::vector<Waiter*> again;
  for (size_t i = 0; i < taken_.size(); ++i) {
    Waiter* const waiter = taken_[i];
    if (waiter == nullptr) continue;
    if (const std::optional<Turn> turn = answer(i, *waiter); turn.has_value()) {
      Wake(waiter, *turn);
    } else {
      waiter->state_ = Waiter::State::kWaiting;
      again.push_back(waiter);
    }
  }
  taken_.clear();
  queue.waiting.insert(queue.waiting.begin(), again.begin(), again.end());
}

void LeafQueues::Leader::Pass(const std::function<void(Waiter&)>& hand) {
  Part& part = std::exchange(queues_, nullptr)->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  const auto at = part.queues.find(leaf_.bits());
  Queue& queue = at->second;
  if (queue.waiting.empty()) {
    if (--queue.leaders == 0) part.queues.erase(at);
    return;
  }
  Waiter* const next = queue.waiting.front();
  queue.waiting.erase(queue.waiting.begin());
  hand(*next);
  Wake(next, Turn::kLeads);
}

void LeafQueues::Leader::Disperse() {
  Part& part = std::exchange(queues_, nullptr)->PartOf(leaf_);
  const std::lock_guard lock(part.mutex);
  DisperseQueue(part, leaf_);
}

}  // namespace gannet::ycsb
