#include "txn/commit/remote_writes.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/commit/commit_internal.h"
#include "txn/record/record.h"
#include "txn/store/conflict.h"

namespace gannet::txn {
namespace {

// A finish is repeated if its answer does not come, so it has a shorter timeout than other calls.
constexpr absl::Duration kFinishTimeout = absl::Milliseconds(100);

bool IsInstalledByVerbs(const WriteEntry& entry) {
  if (entry.is_direct() || entry.installed) return false;
  return entry.kind == WriteKind::kInsert ? !entry.removed
                                          : entry.kind == WriteKind::kUpdate && entry.moved_to.is_null();
}

}  // namespace

Status RemoteWrites::AppendLocks(std::vector<rdma::Operation>* operations) {
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    if (!session_->pending.empty() && session_->pending.Covers(entry.record)) [[unlikely]] {
      Sometimes<"commit: a record to write is owed by the same session">();
      return Conflict(AbortCause::kLock);
    }
    GANNET_CHECK(!entry.locked && !IsLocked(entry.seen), "record %s, seen in state %x, is locked again (%d)",
                 entry.record.ToString(), entry.seen, entry.locked);
    operations->push_back(
        rdma::Operation::CompareAndSwap(entry.record, entry.seen, Locked(entry.seen, session_->owner_bits)));
    operations->back().connection = entry.connection;
    if (entry.kind == WriteKind::kRemove) {
      session_->paths.Count(AccessKind::kRemove, entry.table->id(), AccessPath::kCall);
    }
  }
  return absl::OkStatus();
}

Status RemoteWrites::TakeLocks(const Status& posted, std::span<const rdma::Operation> operations) {
  if (!posted.ok()) {
    Sometimes<"commit: locks at other nodes may be held or not">();
    for (const WriteEntry& entry : writes_.entries()) {
      if (!entry.is_direct() && ChangesRecord(entry)) pending_.OweUnlock(entry);
    }
    return posted;
  }
  Status conflict;
  size_t i = 0;
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    // The write set must be the one of AppendLocks: the answers come in its order.
    GANNET_CHECK(i < operations.size() && operations[i].remote == entry.record,
                 "lock %d of %d is not that of record %s", i, operations.size(), entry.record.ToString());
    const rdma::Operation& operation = operations[i++];
    entry.locked = operation.result == entry.seen;
    if (entry.locked || !conflict.ok()) continue;
    Sometimes<"commit: a record at another node is locked or was changed">();
    session_->conflict.Note(*entry.table, entry.key);
    conflict = session_->LockedTooLong(operation.result);
  }
  return conflict;
}

void RemoteWrites::BuildImage(WriteEntry& entry) {
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  const size_t old_lines = RecordLines(entry.key, entry.image_payload_bytes);
  if (lines > old_lines) {  // grows within its block
    Sometimes<"commit: a record of another node grows within its block">();
    std::byte* larger = writes_.arena().Allocate(lines * kLineBytes);
    std::memset(larger, 0, lines * kLineBytes);
    std::memcpy(larger, entry.image, old_lines * kLineBytes);
    entry.image = larger;
  }
  ApplyPatches(entry.image, entry);
  // One line is written at one instant, so the lock may be released with it. If there are several lines, the first must
  // not be seen unlocked before the others are there, so it stays locked until the following WRITE.
  const uint64_t next = NextState(entry.seen, false);
  rdma::StampImage(entry.image, lines, lines == 1 ? next : Locked(entry.seen, session_->owner_bits), next);
}

coro::Task<void> RemoteWrites::Install(Where where) {
  operations_.clear();
  const auto write = [&](const std::byte* source, const WriteEntry& entry, size_t bytes) {
    operations_.push_back(rdma::Operation::Write(source, entry.record, static_cast<uint32_t>(bytes)));
    operations_.back().connection = entry.connection;
  };
  const auto unlock = [&](const WriteEntry& entry) {
    const uint64_t value = NextState(entry.seen, false);
    std::byte* source = writes_.arena().Allocate(sizeof value);
    std::memcpy(source, &value, sizeof value);
    write(source, entry, sizeof value);
  };
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || entry.installed || !Is(where, entry.record.node())) continue;
    GANNET_CHECK(entry.locked || !IsInstalledByVerbs(entry),
                 "record %s, seen in state %x, is installed without its lock", entry.record.ToString(), entry.seen);
    if (entry.kind == WriteKind::kInsert && !entry.removed) {
      unlock(entry);
    } else if (entry.kind == WriteKind::kUpdate && entry.moved_to.is_null()) {
      BuildImage(entry);
      if (GANNET_MUTANT(kUnlockBeforeInstall)) unlock(entry);
      const size_t lines = RecordLines(entry.key, entry.payload_bytes);
      write(entry.image, entry, lines * kLineBytes);
      if (lines > 1) unlock(entry);
    }
  }
  if (operations_.empty()) co_return;
  const Status status = co_await session_->channel->Post(operations_);
  if (!status.ok()) Sometimes<"commit: an install fails after the commit point">();
  if (!status.ok()) pending_.OpenGroup();
  for (WriteEntry& entry : writes_.entries()) {
    if (!IsInstalledByVerbs(entry) || !Is(where, entry.record.node())) continue;
    if (!status.ok()) pending_.OweInstall(entry);
    entry.locked = false;
  }
}

bool RemoteWrites::FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item) {
  if (entry.is_direct() || entry.installed) return false;
  *item = {.kind = FinishKind::kRemove,
           .table = entry.table->id(),
           .key = entry.key,
           .record = entry.record,
           .state = entry.seen,
           .moved_to = entry.moved_to,
           .moved_state = entry.moved_state};
  if (!entry.moved_to.is_null()) {
    if (committed) {
      item->kind = FinishKind::kReplace;
    } else {
      item->kind = FinishKind::kUnmake;
      item->record = entry.moved_to;
      item->state = entry.moved_state;
    }
    return true;
  }
  if (entry.kind == WriteKind::kInsert) return entry.locked && (!committed || entry.removed);
  return entry.kind == WriteKind::kRemove && committed;
}

// Writes the request for the owner's entries from call->next on that fit one message, and notes their records in
// call->finished. False if there are none.
bool RemoteWrites::EncodeFinish(OwnerCall* call, bool committed) {
  rdma::WireWriter writer(call->message.room());
  const std::span<std::byte> caller = writer.Reserve(Caller::kBytes);
  const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
  call->finished.clear();
  uint16_t n = 0;
  for (; call->next < writes_.size() && writer.room() >= FinishItemBytes(0); ++call->next) {
    WriteEntry& entry = writes_[call->next];
    FinishItem item;
    if (!FinishItemOf(entry, committed, &item) || item.record.node() != call->node) continue;
    txn::Put(writer, item);
    call->finished.push_back(item.record);
    if (!item.moved_to.is_null()) call->finished.push_back(item.moved_to);
    if (committed || entry.kind == WriteKind::kInsert) entry.locked = false;
    ++n;
  }
  if (n == 0) return false;
  links_.PutCaller(caller, &call->slot);
  std::memcpy(count.data(), &n, sizeof n);
  call->request = writer.written();
  return true;
}

coro::Task<Status> RemoteWrites::Finish(bool committed, Where where) {
  const absl::Duration timeout = std::min(kFinishTimeout, session_->local->options.call_timeout);
  Status first_error;
  const auto start = [this, committed, where, timeout](OwnerCall& call) -> coro::Task<StatusOr<size_t>> {
    if (!Is(where, call.node) || !EncodeFinish(&call, committed)) return {};
    return links_.Send(&call, kTxnFinish, {}, timeout);
  };
  const auto take = [this, committed, &first_error](OwnerCall& call, const StatusOr<size_t>& answer) -> Status {
    if (answer.ok()) return absl::OkStatus();
    if (IsUnknownOutcome(answer.status())) {
      Sometimes<"commit: a finish may have been done or not">();
      if (committed) pending_.OpenGroup();
      pending_.OweCall(&call, kTxnFinish, call.request);
    } else if (first_error.ok()) {
      first_error = answer.status();
    }
    return absl::OkStatus();
  };
  const Status called = co_await CallOwners(links_.Calls(), start, take);
  co_return first_error.ok() ? called : first_error;
}

coro::Task<void> RemoteWrites::Release() {
  // A call that failed is a pending operation; or the owner does not know the placeholder, and it is not there.
  Status status = co_await Finish(/*committed=*/false, Where::kElsewhere);
  status = co_await Finish(/*committed=*/false, Where::kHere);
  operations_.clear();
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !entry.locked || !ChangesRecord(entry)) continue;
    operations_.push_back(rdma::Operation::Write(&entry.seen, entry.record, sizeof entry.seen));
    operations_.back().connection = entry.connection;
  }
  if (operations_.empty()) co_return;
  status = co_await session_->channel->Post(operations_);
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !entry.locked || !ChangesRecord(entry)) continue;
    if (!status.ok()) Sometimes<"commit: the unlocking of an abort fails">();
    if (!status.ok()) pending_.OweUnlock(entry);
    entry.locked = false;
  }
}

}  // namespace gannet::txn
