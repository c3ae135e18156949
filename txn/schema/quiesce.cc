#include "txn/schema/quiesce.h"

#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "rdma/epoch.h"
#include "txn/durable/durability.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kHoldPauseNanos = 1'000'000;
constexpr uint64_t kAwaitPauseNanos = 200'000;

// Waits until everything that sessions of these nodes owed to other nodes before this call is done
// (session/pending_operations.h).
Status AwaitPending(Nodes nodes, absl::Duration wait, absl::string_view not_done) {
  const uint64_t start = NowNanos();
  for (const DatabaseState* const node : nodes) {
    while (node->pending->open().since <= start) {
      GANNET_RETURN_IF_ERROR(CheckStop(node->options.stop, "the end of transactions was awaited"));
      if (NowNanos() - start > NanosOf(wait)) {
        return absl::DeadlineExceededError(
            absl::StrCat(not_done, ": node ", node->node->id(), " could not tell another node for ",
                         absl::FormatDuration(wait), " how a transaction ended, and goes on trying; call again later"));
      }
      SleepForNanos(kAwaitPauseNanos);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status AwaitOlderTransactions(DatabaseState& node, absl::Duration wait, absl::string_view not_done) {
  StatusOr<std::unique_ptr<rdma::EpochManager::Participant>> participant =
      rdma::EpochManager::Participant::Join(node.epochs.get());
  if (!participant.ok()) return participant.status();
  // The flag is shared, because it is set even if nobody waits any more.
  const auto passed = std::make_shared<std::atomic<bool>>(false);
  (*participant)->RetireWith([passed] { passed->store(true, std::memory_order_release); });
  const uint64_t start = NowNanos();
  for (;;) {
    (*participant)->Collect();
    if (passed->load(std::memory_order_acquire)) return absl::OkStatus();
    GANNET_RETURN_IF_ERROR(CheckStop(node.options.stop, "the end of open transactions was awaited"));
    if (NowNanos() - start > NanosOf(wait)) {
      return absl::DeadlineExceededError(
          absl::StrCat(not_done, ": a transaction that began before is still open after ", absl::FormatDuration(wait),
                       "; end it, and do not change tables inside of one"));
    }
    SleepForNanos(kAwaitPauseNanos);
  }
}

Status Hold(Nodes nodes, absl::FunctionRef<StatusOr<bool>()> hold) {
  for (;; SleepForNanos(kHoldPauseNanos)) {
    NodeLocks locks(nodes);
    GANNET_RETURN_IF_ERROR(locks.Take());
    const StatusOr<bool> held = hold();
    if (!held.ok()) return held.status();
    if (*held) return absl::OkStatus();
  }
}

bool TryHoldLoads(Nodes nodes, TableId table) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->durability->loads().TryHold(table)) continue;
    ReleaseLoads(nodes.first(i), table);
    return false;
  }
  return true;
}

void ReleaseLoads(Nodes nodes, TableId table) {
  for (DatabaseState* const node : nodes) node->durability->loads().Release(table);
}

Status ApplyAlone(Nodes nodes, absl::string_view not_done, Awaits awaits, absl::FunctionRef<Status()> apply,
                  absl::FunctionRef<void(const Status&)> release) {
  const absl::Duration wait = nodes.front()->options.durable_within;
  Status done = AwaitOlderTransactions(*nodes.front(), wait, not_done);
  if (done.ok() && awaits == Awaits::kTheirPendingToo) done = AwaitPending(nodes, wait, not_done);
  NodeLocks locks(nodes);
  if (const Status locked = locks.Take(); done.ok()) done = locked;
  if (done.ok()) done = apply();
  release(done);
  return done;
}

}  // namespace gannet::txn
