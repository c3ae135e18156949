#include "txn/run/transaction_impl.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "txn/access/failure.h"
#include "txn/store/conflict.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// An attempt that found the memory full is repeated at most so often. Memory of an index may take two grace periods: an
// empty leaf is unlinked after the first.
constexpr int kMostShortages = 3;
// A grace period takes some milliseconds, unless an older transaction stays open.
constexpr uint64_t kLongestWaitNanos = 100'000'000;
constexpr uint64_t kLookForMemoryEveryNanos = 200'000;

Status NotComplete(const SecondaryIndex& index) {
  return absl::FailedPreconditionError(absl::StrCat(
      index.Describe(), " is not complete: it is being built, or a build ended early; call Database::CreateIndex"));
}

}  // namespace

void TransactionImpl::Begin(PrecedenceClaim* claim) {
  GANNET_CHECK(!active_, "a transaction began twice");
  claim_ = claim;
  if (!std::exchange(runs_again_, false)) shortages_ = 0;
  entered_ = session_->participant->Enter();
  Charge(Cost::kTransaction);
  active_ = true;
  noted_reads_ = noted_end_ = false;
  session_->conflict.Forget();
}

void TransactionImpl::Restart() {
  End();
  Begin(claim_);
}

void TransactionImpl::End() {
  if (!active_) return;
  NoteReads();
  if (!noted_end_) NoteNotCommitted(failure());
  for (WriteEntry& entry : writes().entries()) ReleaseDirect(*session_, entry);
  commit_.Clear();
  access_.Clear();
  active_ = false;
  session_->participant->Leave(entered_);
}

void TransactionImpl::NoteReads() {
  if (noted_reads_) return;
  noted_reads_ = true;
  const std::span<const WriteEntry> entries = access_.writes().entries();
  const auto was_read = [](const WriteEntry& entry) { return entry.kind != WriteKind::kInsert; };
  session_->meter.NoteReads(access_.reads().records().size() +
                            static_cast<uint64_t>(std::ranges::count_if(entries, was_read)));
}

void TransactionImpl::NoteNotCommitted(const Status& status) {
  noted_end_ = true;
  if (absl::IsAborted(status)) return session_->meter.NoteAbort(CauseOf(status));
  if (!access_.reads().empty() || !access_.writes().entries().empty()) session_->meter.NoteRollback();
}

bool TransactionImpl::MayAwaitMemory() {
  if (shortages_ == kMostShortages) return false;
  ++shortages_;
  runs_again_ = true;
  return true;
}

coro::Task<Status> TransactionImpl::AwaitMemory() {
  SometimesInTests<"commit: an attempt that found the memory full is run again after a grace period">();
  auto free = std::make_shared<std::atomic<bool>>(false);
  session_->participant->RetireWith([free] { free->store(true, std::memory_order_relaxed); });
  const uint64_t deadline = NowNanos() + kLongestWaitNanos;
  while (!free->load(std::memory_order_relaxed) && NowNanos() < deadline) {
    co_await session_->worker.SleepUntil(NowNanos() + kLookForMemoryEveryNanos);
    session_->participant->Collect();
  }
  co_return Conflict(AbortCause::kMemory);
}

Status TransactionImpl::AfterRefusedInsert(const Table& table, const Key& key, Status refused) {
  if (!failure().ok()) return refused;
  coro::Async<StatusOr<bool>> exists = points().Exists(table, key);
  if (!exists.ready()) return refused;  // a row of another node, which the commit will find
  if (!exists.value().ok()) return exists.value().status();
  return *exists.value() ? KeyExists(table, key) : refused;
}

coro::Async<Status> TransactionImpl::Commit() {
  NoteReads();
  // It read at most one record, here: there is nothing to do (ReadSet::is_snapshot).
  if (writes().entries().empty() && !access_.reads().uses_verbs() && access_.reads().is_snapshot()) [[likely]]
    return absl::OkStatus();
  if (session_->local->tables.has_secondary_indexes() && access_.entries().HasIndexedWrites()) [[unlikely]]
    return CommitWithIndexes();
  return commit_.Run(claim_);
}

coro::Async<Status> TransactionImpl::Validate() {
  NoteReads();
  coro::Async<Status> valid = commit_.Validate();
  if (!valid.ready()) return NoteFailureOf(std::move(valid.task()));
  if (!valid.value().ok()) Fail(valid.value());
  return valid;
}

coro::Task<Status> TransactionImpl::CommitWithIndexes() {
  coro::Task<Status> keeping = access_.entries().KeepIndexes(/*last=*/true);
  Status kept = co_await keeping;
  if (!kept.ok()) {
    coro::Task<Status> judging = IfValid(std::move(kept));
    co_return co_await judging;
  }
  coro::Async<Status> committing = commit_.Run(claim_);
  co_return co_await committing;
}

coro::Task<Status> TransactionImpl::IfValid(Status found) {
  if (!failure().ok()) co_return failure();
  coro::Async<Status> validating = Validate();
  Status valid = co_await validating;
  if (!valid.ok()) co_return valid;
  co_return found;
}

coro::Task<Status> TransactionImpl::JudgeWrite(Status met) {
  // A transaction that has read more learns of it when it commits: each of many misses would look at all that again.
  constexpr size_t kMostWords = 64;
  const size_t records = access_.reads().records().size();
  const size_t words = access_.reads().size() + writes().size();
  if (absl::IsNotFound(met) && (words == 1 || words > kMostWords)) co_return met;
  coro::Async<Status> validating = commit_.Validate();
  Status valid = co_await validating;
  access_.reads().ForgetRecordsFrom(records);  // the validation adds what was read for update
  if (valid.ok()) co_return met;
  Fail(valid);
  co_return valid;
}

coro::Task<Status> TransactionImpl::JudgeRead(Status read) {
  if (read.ok() || IsResult(read) || !failure().ok()) co_return read;
  if (!absl::IsDataLoss(read)) {
    Fail(read);
    co_return read;
  }
  coro::Task<Status> judging = IfValid(std::move(read));
  Status judged = co_await judging;
  Fail(judged);
  co_return judged;
}

coro::Async<StatusOr<RowBy>> TransactionImpl::GetBy(const SecondaryIndex& index, const Key& key, bool for_update) {
  using Result = StatusOr<RowBy>;
  if (Status s = CheckState(index.entries()); !s.ok()) return Result(std::move(s));
  if (!index.unique()) {
    return Result(absl::FailedPreconditionError(
        absl::StrCat(index.Describe(), " is not unique: use an IndexCursor, which finds all rows with a key")));
  }
  if (!index.is_complete()) return Result(NotComplete(index));
  std::string encoded;
  if (Status s = index.EncodeKey(key, /*whole=*/true, &encoded); !s.ok()) return Result(std::move(s));
  const Key kept = access_.writes().arena().Keep(Key(std::string_view(encoded)));
  return GetByEntry(index, kept.bytes(), for_update);
}

coro::Task<StatusOr<RowBy>> TransactionImpl::GetByEntry(const SecondaryIndex& index, std::string_view entry_key,
                                                        bool for_update) {
  coro::Task<StatusOr<RowBy>> getting = access_.by_index().GetBy(index, entry_key, for_update);
  StatusOr<RowBy> row = co_await getting;
  if (row.ok()) co_return row;
  coro::Task<Status> judging = JudgeRead(row.status());
  Status judged = co_await judging;
  co_return judged;
}

coro::Async<Status> TransactionImpl::ReadyToReadBy(const SecondaryIndex& index) {
  GANNET_RETURN_IF_ERROR(CheckState(index.entries()));
  if (!index.is_complete()) return NotComplete(index);
  if (!writes().has_touched()) return absl::OkStatus();
  return KeepBeforeRead();
}

coro::Task<Status> TransactionImpl::KeepBeforeRead() {
  coro::Task<Status> keeping = access_.entries().KeepIndexes(/*last=*/false);
  Status kept = co_await keeping;
  coro::Task<Status> judging = JudgeRead(std::move(kept));
  co_return co_await judging;
}

coro::Task<Status> TransactionImpl::RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries,
                                                  IndexReader::EntrySpan span, ScanOptions options, ScanRows* rows) {
  coro::Task<Status> reading = access_.by_index().RowsOfEntries(index, entries, span, options, rows);
  Status read = co_await reading;
  coro::Task<Status> judging = JudgeRead(std::move(read));
  co_return co_await judging;
}

coro::Task<Status> TransactionImpl::NoteFailureOf(coro::Task<Status> validation) {
  Status valid = co_await validation;
  if (!valid.ok()) Fail(valid);
  co_return valid;
}

// A transaction that only read waits for the newest epoch in which anything was logged here: what it read is of that or
// an earlier one. What it read at other nodes is not later than the epoch that it found there (Redo::AppendEpochReads).
// A commit over several nodes that failed because a key exists has an epoch, too, taken after that key was found.
uint64_t TransactionImpl::EpochToAwait() const {
  const CommitLog& log = *session_->log;
  if (GANNET_MUTANT(kAcknowledgeEarly) || !log.awaits_durability()) return 0;
  // It depends on nothing then. A record to update or remove was read, too, although a commit that failed because of
  // another insert has not put it among the reads.
  const bool read_nothing =
      access_.reads().empty() && std::ranges::all_of(access_.writes().entries(), [](const WriteEntry& entry) {
        return entry.kind == WriteKind::kInsert;
      });
  return log.EpochToAwait(commit_.epoch(), /*rests_on_reads=*/!commit_.logged() && !read_nothing);
}

}  // namespace gannet::txn
