#include "txn/session/pending_operations.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "txn/peer/incarnation.h"
#include "txn/peer/pending_completer.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kLookAgainNanos = 50'000;

}  // namespace

bool PendingOperations::Covers(rdma::GlobalAddress record) const {
  return std::ranges::any_of(
      pending_, [record](const std::shared_ptr<PendingOperation>& pending) { return pending->IsOf(record); });
}

bool PendingOperations::MustWait(const PendingOperation& pending) const {
  return pending.kind == PendingOperation::Kind::kUnlock &&
         std::ranges::any_of(session_->transactions, [&pending](const OpenTransaction* transaction) {
           return transaction->MayHold(pending.record);
         });
}

void PendingOperations::Add(std::shared_ptr<PendingOperation> pending) {
  pending->owner_bits = session_->owner_bits;
  pending->since = NowNanos();
  if (pending->group != nullptr) ++pending->group->open;
  if (!NodeLives(*pending, *session_->local)) return Close(*pending, /*lost=*/true);
  pending_.push_back(pending);
  pending->held_back = MustWait(*pending);
  if (!pending->held_back) return session_->collector->Take(std::move(pending));
  Sometimes<"pending operations: an unlock waits for a transaction that may hold the lock">();
  ++held_back_;
}

void PendingOperations::HandOver() {
  for (const std::shared_ptr<PendingOperation>& pending : pending_) {
    if (!pending->held_back || MustWait(*pending)) continue;
    pending->held_back = false;
    --held_back_;
    session_->collector->Take(pending);
  }
}

void PendingOperations::Forget() {
  std::erase_if(pending_, [this](const std::shared_ptr<PendingOperation>& pending) {
    // Acquire: what the completer did for this pending operation is complete.
    const PendingOperation::Outcome outcome = pending->outcome.load(std::memory_order_acquire);
    if (outcome == PendingOperation::Outcome::kOpen) return false;
    Close(*pending, /*lost=*/outcome == PendingOperation::Outcome::kLost);
    return true;
  });
}

void PendingOperations::Close(PendingOperation& pending, bool lost) {
  if (pending.group != nullptr) {
    --pending.group->open;
    pending.group->lost = pending.group->lost || lost;
    if (lost && pending.connection != 0) pending.group->lost_links.push_back({pending.node, pending.connection});
    if (pending.group->open == 0) ReturnSlots(pending.group.get());
  }
  if (pending.kind == PendingOperation::Kind::kCall && pending.returns_slot) ReturnSlot(pending.slot);
}

void PendingOperations::ReturnSlots(PendingGroup* group) {
  for (const uint16_t slot : std::exchange(group->slots, {})) {
    if (group->lost_links.empty()) {
      ReturnSlot(slot);
    } else {
      Sometimes<"pending operations: a decision stays noted for an owner that is lost">();
      noted_.push_back({.slot = slot, .links = group->lost_links});
    }
  }
}

void PendingOperations::KeepNoted(PendingGroup* group, uint16_t slot) {
  group->slots.push_back(slot);
  if (group->open == 0) ReturnSlots(group);
}

coro::Task<bool> PendingOperations::Await(std::shared_ptr<PendingGroup> group, uint64_t deadline_nanos) {
  for (Forget(); group->open > 0 && NowNanos() < deadline_nanos; Forget()) {
    co_await session_->worker.SleepUntil(NowNanos() + kLookAgainNanos);
  }
  co_return group->open == 0 && !group->lost;
}

uint16_t PendingOperations::TakeSlot() {
  // An owner lets this node join again when it has repaired what it left there.
  const auto is_needed = [this](const Link& link) {
    return session_->incarnation->JoinedBy(link.node) == link.connection;
  };
  std::erase_if(noted_, [&](const NotedSlot& noted) {
    if (std::ranges::any_of(noted.links, is_needed)) return false;
    ReturnSlot(noted.slot);
    return true;
  });
  if (free_slots_.empty()) {
    GANNET_CHECK(next_slot_ != UINT16_MAX, "a session has %d requests open", next_slot_);
    return next_slot_++;
  }
  const uint16_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

std::vector<std::shared_ptr<PendingOperation>> PendingOperations::Leave() {
  HandOver();
  Forget();
  for (const std::shared_ptr<PendingOperation>& pending : pending_) {
    GANNET_CHECK(!pending->held_back, "a session was closed before its transactions");
    Sometimes<"pending operations: a session leaves one to the next">();
  }
  std::vector<std::shared_ptr<PendingOperation>> left = std::exchange(pending_, {});
  for (const NotedSlot& noted : std::exchange(noted_, {})) {
    auto only_slot = std::make_shared<PendingOperation>();
    only_slot->kind = PendingOperation::Kind::kCall;
    only_slot->slot = noted.slot;
    only_slot->group = std::make_shared<PendingGroup>(PendingGroup{.lost_links = noted.links});
    left.push_back(std::move(only_slot));
  }
  return left;
}

void PendingOperations::TakeOver(std::vector<std::shared_ptr<PendingOperation>> left) {
  pending_ = std::move(left);
  std::vector<uint16_t> used;
  for (const std::shared_ptr<PendingOperation>& pending : pending_) {
    if (pending->kind == PendingOperation::Kind::kCall) used.push_back(pending->slot);
    if (pending->group != nullptr) used.insert(used.end(), pending->group->slots.begin(), pending->group->slots.end());
  }
  if (used.empty()) return;
  next_slot_ = static_cast<uint16_t>(std::ranges::max(used) + 1);
  for (uint16_t slot = 0; slot < next_slot_; ++slot) {
    if (std::ranges::find(used, slot) == used.end()) free_slots_.push_back(slot);
  }
  std::erase_if(pending_, [this](const std::shared_ptr<PendingOperation>& pending) {
    if (pending->kind != PendingOperation::Kind::kCall || pending->method != 0) return false;
    noted_.push_back({.slot = pending->slot, .links = pending->group->lost_links});  // no more than its slot is left
    return true;
  });
}

}  // namespace gannet::txn
