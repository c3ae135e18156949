// The commit protocol.
//
//   lock      every record to update or remove by CAS (state read -> the same, locked by us): this validates it, too.
//             Inserts: a locked, absent record enters the index, which changes the witnesses over its key.
//   validate  every other word that was read (records, witnesses) is unchanged.   <- the serialization point lies here
//   install   new payloads and versions; removed keys leave their index first.
//   unlock    the last store of each record's install.
//
// Why it is strictly serializable. All writes stay locked from before the validation until they are installed. Let T
// read x and U write x. If U locked x before T validated x, T sees the lock (or the new version) and aborts. Otherwise
// T validated before U locked, and T precedes U, whose own validation comes later. For inserts and removals the witness
// takes the place of x: a key enters its index, and changes the word, before its transaction validates and before
// anything of it is visible; it leaves its index after the validation but before its record is unlocked.
//
// A transaction that wrote nothing and read all at one moment needs no validation: its place is at that moment
// (ReadSet::is_snapshot). A writer whose lock was not there then validates later, and one whose new version was seen
// had validated before.
//
// Locks are tried once: no waiting, so no deadlock. Everything up to the validation can fail and is undone. Nothing
// after it can, except that another node dies: then its part of the outcome is unknown.
//
// With a log (redo.h): the commit's epoch is read between lock and validate, and the changes are in the log's buffers,
// here and at the other nodes, before anything is installed.
//
// Records of several nodes (CommitMixed). Each step has one posting for all nodes: its verbs are one batch, its calls
// are issued together (owner_calls.h).
//
// If one other node has all words to lock and to READ, the two steps share a posting (ValidatesBehind): that node
// performs the READs after the locks (fabric.h, 3), and the own records were locked before. With a log, the epoch is
// entered before the posting, and counts if it has not ended behind it (Redo::Stay::Renew). So an update of remote
// records takes three round trips: reads, lock and validation, install. With several nodes it is four, because a READ
// at one of them may come before a lock at another. FORD (FAST'22) comes to three by locking each record with its first
// READ. That would hold locks while the body runs. And the lock would need a word of its own, which is 0 while it is
// free: an address from a cache may lead to other memory, where the CAS would replace a 0.
//
// A verb or call may fail although its node lives, with or without effect. The consequence for the transaction:
//
//   lock      It ends: Unavailable. Any lock of the batch may be held, so an unlock becomes a pending operation for
//             each.
//   prepare   It ends. The owner may have made the placeholders, or may make them later: a cancel becomes a pending
//             operation.
//   validate  It ends. (READs change nothing.)
//   log       It ends. The part may be in the other log, without a decision: void.
//   release   It ends in any case. Unlocks and the unmaking of placeholders become pending operations.
//   decide    It is committed (decision.h). The request becomes a pending operation, and is awaited before anything is
//             installed.
//   install   It is committed. The installs and finishes that failed become pending operations, and it waits until they
//             are done: Ok. If a node dies in that time, or call_timeout passes: Unknown, and the pending operations
//             remain. With a log it waits as long as the nodes live, because it is in its epoch until everything is
//             installed: a checkpoint of that epoch must find it.
//
// pending_operations.h says how pending operations are settled, and why that disturbs no other transaction.
#include "txn/commit/commit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "log/file/kill_point.h"
#include "txn/commit/commit_internal.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

bool Commit::Writes() const {
  return std::any_of(writes_.entries().begin(), writes_.entries().end(),
                     [](const WriteEntry& entry) { return entry.kind != WriteKind::kNone; });
}

// Waits while it holds nothing that others wait for: no lock, no place in an index, no room in the log.
coro::Task<Status> Commit::RunInTurn(PrecedenceClaim* claim) {
  constexpr uint64_t kLookEveryNanos = 200'000;
  Precedence* const precedence = session_->precedence;
  const uint64_t start = NowNanos();
  uint64_t now = start;
  while (now - start < precedence->limit_nanos() && precedence->MustWait(claim, now)) {
    // A thread with nothing else to do leaves its core to the transaction that it waits for.
    if (!session_->local->calls() && session_->worker.unfinished() == 0) {
      SleepUntilNanos(now + kLookEveryNanos);
    } else {
      co_await session_->worker.SleepUntil(now + kLookEveryNanos);
    }
    now = NowNanos();
  }
  if (now > start) {
    Sometimes<"precedence: a commit waits for the transaction that goes first">();
    if (now - start >= precedence->limit_nanos()) Sometimes<"precedence: a commit has waited as long as it may">();
    precedence->NoteHeldUp(now - start);
    if (claim != nullptr) claim->NoteHeldUp(now - start);
  }
  coro::Async<Status> committed = RunNow();
  co_return co_await committed;
}

coro::Async<Status> Commit::RunNow() {
  bool wait = false;
  Status reserved = redo_.Reserve(&wait);
  if (wait) return RunWhenRoom();
  if (!reserved.ok()) return reserved;
  return RunReserved();
}

coro::Task<Status> Commit::RunWhenRoom() {
  Status reserved = co_await redo_.AwaitRoom();
  if (!reserved.ok()) co_return reserved;
  coro::Async<Status> committed = RunReserved();
  co_return co_await committed;
}

coro::Async<Status> Commit::RunReserved() {
  if (!UsesVerbs()) return CommitDirect();
  if (Writes()) return CommitMixed();
  // It locks, logs and installs nothing, so a round trip for the words that were read is all.
  GANNET_CHECK(!redo_.is_reserved(), "room in the log is reserved for no write");
  validation_.TakeReadForUpdate();
  using Moment = Validation::Moment;
  return validation_.Check(writes_.entries().empty() ? Moment::kAny : Moment::kNow);
}

coro::Async<Status> Commit::Validate() {
  Begin();
  validation_.TakeReadForUpdate();
  if (UsesVerbs()) return validation_.Check(Validation::Moment::kNow);
  return validation_.CheckLocal();
}

Status Commit::CommitDirect() noexcept {
  const ChangingRecords changing(writes_.entries().empty() ? nullptr : session_->change_counter);
  Status status = local_.LockAndIndex();
  Redo::Stay stay(&redo_);
  stay.Enter();
  if (status.ok()) status = validation_.CheckLocal();
  if (status.ok() && duplicate_.found()) status = duplicate_.Error();
  if (status.ok() && redo_.is_reserved()) status = redo_.CheckLoads();
  if (!status.ok()) [[unlikely]] {
    local_.Release();
    redo_.Void();
    return status;
  }
  if (redo_.is_reserved()) redo_.Append();
  local_.Install();
  log::MayDieHere(log::KillPoint::kCommitInstalled);
  return absl::OkStatus();
}

// True if the READs of the validation may follow `locks`, all that are still to be taken, in one posting: all go to one
// node.
bool Commit::ValidatesBehind(std::span<const rdma::Operation> locks) const {
  if (locks.empty() || std::ranges::any_of(writes_.entries(), IsPrepared)) return false;
  if (GANNET_MUTANT(kValidateBesideLocks)) return true;
  const rdma::NodeId node = locks.front().remote.node();
  const auto is_there = [node](const rdma::Operation& lock) { return lock.remote.node() == node; };
  return std::ranges::all_of(locks, is_there) && validation_.ReadsOnlyAt(node);
}

coro::Task<Status> Commit::LockRemote(Redo::Stay* stay, bool* validated) {
  operations_.clear();
  if (Status appended = remote_.AppendLocks(&operations_); !appended.ok()) co_return appended;
  const bool validates = !*validated && ValidatesBehind(operations_);
  Validation::Pending validation;
  if (validates) {
    stay->EnterEarly();
    validation = validation_.AppendReads(Validation::Moment::kBehindLocks, &operations_);
  }
  inserts_.Begin(&operations_);
  if (operations_.empty()) co_return absl::OkStatus();
  may_hold_locks_ = true;
  const Status posted = co_await session_->channel->Post(operations_);
  if (!posted.ok()) inserts_.NoteNoLeaves();
  Status locked = remote_.TakeLocks(posted, operations_);
  if (!validates || !locked.ok()) co_return locked;
  Sometimes<"commit: the validation goes with the locks">();
  Status judged = validation_.Judge(validation, operations_);
  *validated = stay->Renew();
  if (!*validated) Sometimes<"commit: an epoch ends between the locks and the validation that goes with them">();
  co_return judged;
}

void Commit::NoteNoneHeld() {
  may_hold_locks_ = false;
  session_->pending.NoteRelease();
}

coro::Task<Status> Commit::CommitMixed() {
  if (!session_->pending.empty()) [[unlikely]]
    session_->pending.Forget();
  Status status = co_await links_.JoinAll();
  if (status.ok()) status = local_.LockAndIndex();
  Redo::Stay stay(&redo_);
  bool validated = false;
  if (status.ok()) status = co_await inserts_.MakePlaceholders();
  if (status.ok() && GANNET_MUTANT(kValidateEarly)) {
    status = co_await validation_.Check(Validation::Moment::kNow);
    validated = true;
  }
  if (status.ok()) status = co_await LockRemote(&stay, &validated);
  if (status.ok() && inserts_.has_placeholders() && !duplicate_.found()) {
    status = co_await inserts_.Index(&stay, &validated);
  }
  inserts_.GiveBack();
  if (status.ok() && !validated && !duplicate_.found()) status = co_await prepares_.Run();
  stay.Enter();
  if (status.ok() && !validated) status = co_await validation_.Check(Validation::Moment::kNow);
  if (status.ok() && duplicate_.found()) status = duplicate_.Error();
  if (status.ok() && redo_.is_reserved()) status = co_await redo_.AppendAtAll();
  if (!status.ok()) {
    local_.Release();
    co_await remote_.Release();
    NoteNoneHeld();
    co_return status;
  }
  status = co_await InstallAll();
  NoteNoneHeld();
  co_return status;
}

// Other nodes come first, and are awaited: if this node dies, changes of this transaction that were seen must not be
// lost with it.
coro::Task<Status> Commit::InstallAll() {
  using Where = RemoteWrites::Where;
  if (decision_.IsNeeded()) co_await decision_.Make();
  co_await remote_.Install(Where::kElsewhere);
  Status finished = co_await remote_.Finish(/*committed=*/true, Where::kElsewhere);
  if (pending_.has_group() || !finished.ok()) finished = co_await pending_.Await(std::move(finished));
  local_.Install();
  if (session_->direct) co_return finished;
  pending_.Clear();
  co_await remote_.Install(Where::kHere);
  Status here = co_await remote_.Finish(/*committed=*/true, Where::kHere);
  if (pending_.has_group() || !here.ok()) here = co_await pending_.Await(std::move(here));
  co_return finished.ok() ? here : finished;
}

}  // namespace gannet::txn
