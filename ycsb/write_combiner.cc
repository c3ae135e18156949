#include "ycsb/write_combiner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace gannet::ycsb {

using index::dolphin::LeafLook;
using index::dolphin::Part;

namespace {

// Queues to which one change comes: leaves are split meanwhile, or their clients go away.
constexpr int kMostTurns = 4;
// Changes of one stay. Each takes up to three verbs.
constexpr size_t kMostTogether = 32;

}  // namespace

struct WriteCombiner::Request : LeafQueues::Waiter {
  Request(coro::Worker* worker, const Write& of) : Waiter(worker), write(of) {}

  const Write write;
  bool goes_alone = false;
  Status status;
};

// The changes of one stay, with the leader's own as the first. The others are answered when this goes, also if the
// leader's coroutine is destroyed while it waits for the posting.
struct WriteCombiner::Batch {
  Batch(LeafQueues::Leader* of, const Request& own) : lead(of) {
    Add(own.write);
    lead->Take(kMostTogether - 1,
               [this](const LeafQueues::Waiter& waiter) { Add(static_cast<const Request&>(waiter).write); });
  }
  ~Batch() {
    lead->Answer([this](size_t number, LeafQueues::Waiter& waiter) -> std::optional<LeafQueues::Turn> {
      auto& request = static_cast<Request&>(waiter);
      request.status = outcome;
      if (!outcome.ok() || IsMade(number + 1)) return LeafQueues::Turn::kAnswered;
      request.goes_alone = true;
      return LeafQueues::Turn::kAgain;
    });
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Add(const Write& write) {
    const auto same = std::ranges::find(writes, write.key, &Write::key);
    if (same == writes.end()) {
      made_by.push_back(writes.size());
      writes.push_back(write);
    } else if (same->is_update && write.is_update) {
      made_by.push_back(static_cast<size_t>(same - writes.begin()));
      same->word = write.word;
    } else {
      made_by.push_back(std::nullopt);
    }
  }
  bool IsMade(size_t number) const {
    return made_by[number].has_value() && writes[*made_by[number]].result.outcome == Changer::Outcome::kDone;
  }

  LeafQueues::Leader* lead;
  std::vector<Write> writes;                   // of different keys
  std::vector<std::optional<size_t>> made_by;  // the one of `writes` that makes a change
  Status outcome = absl::UnavailableError("the client that was making this change has been stopped");
};

coro::Task<StatusOr<bool>> WriteCombiner::Make(Write write) {
  const Status ready = co_await index_->Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  Request request(worker_, write);
  for (int turns = 0; turns < kMostTurns && !request.goes_alone; ++turns) {
    const rdma::GlobalAddress leaf = index_->ExpectLeaf(write.key);
    if (leaf.is_null()) break;
    const LeafQueues::Turn turn = co_await queues_->Enter(leaf, &request);
    if (turn == LeafQueues::Turn::kLeads) {
      LeafQueues::Leader lead(queues_, leaf);
      const StatusOr<bool> made = co_await MakeAll(&lead, &request);
      co_return made;
    }
    if (turn == LeafQueues::Turn::kAnswered) {
      GANNET_CO_RETURN_IF_ERROR(request.status);
      co_return true;
    }
  }
  co_return false;
}

coro::Task<StatusOr<bool>> WriteCombiner::MakeAll(LeafQueues::Leader* lead, Request* own) {
  index::dolphin::TernaryLock<Keys>::Stay stay;
  const StatusOr<LeafLook> look = co_await index_->editor().lock().Enter(lead->leaf(), Part::kKeys, &stay);
  // A wrong address is what a stale or hostile hint may have.
  if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
  if (!look.ok() || *look != LeafLook::kWhole) co_return false;
  lead->SendAway([&stay](const LeafQueues::Waiter& waiter) {
    return stay.image.Covers(static_cast<const Request&>(waiter).write.key);
  });
  bool is_made = false;
  std::optional<Changer::Result> full;
  {
    Batch batch(lead, *own);
    batch.outcome = co_await index_->editor().changer().ChangeTogether(stay, batch.writes);
    GANNET_CO_RETURN_IF_ERROR(batch.outcome);
    is_made = batch.IsMade(0);
    if (batch.writes[0].result.outcome == Changer::Outcome::kFull) full = batch.writes[0].result;
  }
  if (!full.has_value()) {
    lead->Pass([](LeafQueues::Waiter&) {});
    co_return is_made;
  }
  lead->Disperse();  // many of them belong to the new leaf soon
  const StatusOr<index::Change> inserted =
      co_await index_->editor().Insert(own->write.key, rdma::GlobalAddress::FromBits(own->write.word),
                                       /*existing=*/nullptr, index::dolphin::Editor<Keys>::FullLeaf{stay.leaf, *full});
  if (!inserted.ok()) co_return inserted.status();
  co_return true;
}

}  // namespace gannet::ycsb
