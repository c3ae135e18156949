#include "ycsb/read_delegation.h"

#include <optional>
#include <utility>
#include <vector>

namespace gannet::ycsb {

struct ReadDelegation::Request : LeafQueues::Waiter {
  Request(coro::Worker* worker, uint64_t of) : Waiter(worker), key(of) {}

  const index::Key key;
  StatusOr<index::FindResult> found = absl::UnavailableError("the lookup has no result");
};

// The lookups of one READ, with the leader's own as the first. The others are answered when this goes. If the leader's
// coroutine is destroyed while it waits for the READ, they ask again.
struct ReadDelegation::Batch {
  Batch(LeafQueues::Leader* of, const Request& own) : lead(of), keys{own.key} {
    // Nobody waits for one that leads at once.
    if (own.has_waited()) {
      lead->Take(kMostTogether - 1,
                 [this](const LeafQueues::Waiter& waiter) { keys.push_back(static_cast<const Request&>(waiter).key); });
    }
    results.resize(keys.size());
  }
  ~Batch() {
    lead->Answer([this](size_t number, LeafQueues::Waiter& waiter) -> std::optional<LeafQueues::Turn> {
      if (!outcome.has_value()) return LeafQueues::Turn::kAgain;
      static_cast<Request&>(waiter).found = Result(number + 1);
      return LeafQueues::Turn::kAnswered;
    });
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  StatusOr<index::FindResult> Result(size_t number) const {
    if (!outcome->ok()) return *outcome;
    return results[number];
  }

  LeafQueues::Leader* lead;
  std::vector<index::Key> keys;
  std::vector<index::FindResult> results;
  std::optional<Status> outcome;
};

coro::Task<StatusOr<index::FindResult>> ReadDelegation::Find(uint64_t key) {
  const Status ready = co_await index_->Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  Request request(worker_, key);
  for (int turns = 0; turns < kMostTurns; ++turns) {
    const rdma::GlobalAddress leaf = index_->ExpectLeaf(key);
    if (leaf.is_null()) break;
    const LeafQueues::Turn turn = co_await queues_->Enter(leaf, &request);
    if (turn == LeafQueues::Turn::kAnswered) co_return std::move(request.found);
    if (turn == LeafQueues::Turn::kAgain) continue;
    LeafQueues::Leader lead(queues_, leaf);
    StatusOr<index::FindResult> found = index::FindResult();
    {
      Batch batch(&lead, request);
      batch.outcome = co_await index_->FindIn(leaf, batch.keys, batch.results);
      found = batch.Result(0);
    }
    lead.Pass([](LeafQueues::Waiter&) {});
    co_return found;
  }
  coro::Async<StatusOr<index::FindResult>> find = index_->Find(index::Key(key));
  StatusOr<index::FindResult> found = co_await find;
  co_return found;
}

}  // namespace gannet::ycsb
