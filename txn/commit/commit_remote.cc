// The commit protocol (commit.cc) for records of several nodes: by verbs, and by calls to the owners of records that
// are inserted, removed or moved. Each step has one posting for all nodes: its verbs are one batch, its calls are
// issued together (owner_calls.h).
//
// A verb or call may fail although its node lives, with or without effect. The consequence for the transaction:
//
//   lock      It ends: Unavailable. Any lock of the batch may be held, so an unlock becomes a debt for each.
//   prepare   It ends. The owner may have made the placeholders, or may make them later: a cancel becomes a debt.
//   validate  It ends. (READs change nothing.)
//   log       It ends. The part may be in the other log, without a decision: void.
//   release   It ends in any case. Unlocks and the unmaking of placeholders become debts.
//   decide    It is committed (decision.cc). The request becomes a debt, and is awaited before anything is installed.
//   install   It is committed. The installs and finishes that failed become debts, and it waits until they are done:
//             Ok. If a node dies in that time, or call_timeout passes: Unknown, and the debts remain. With a log it
//             waits as long as the nodes live, because it is in its epoch until everything is installed: a checkpoint
//             of that epoch must find it.
//
// debts.h says how debts are settled, and why that disturbs no other transaction.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/witness_word.h"
#include "rdma/versioned.h"
#include "txn/commit/commit.h"
#include "txn/commit/commit_internal.h"
#include "txn/commit/redo_scope.h"
#include "txn/peer/owner_calls.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

// A finish is repeated if its answer does not come, so it has a shorter timeout than other calls.
constexpr absl::Duration kFinishTimeout = absl::Milliseconds(100);

// The share of an answer, one part in ..., that the usual changes of its inserts take, of two words each. An insert
// into an XStore rarely changes more (shadows.h), one into an R-tree usually.
constexpr size_t kShareOfChanges = 2;
constexpr size_t kShareOfLongChanges = 8;

bool IsInstalledByVerbs(const WriteEntry& entry) {
  if (entry.is_direct() || entry.installed) return false;
  return entry.kind == WriteKind::kInsert ? !entry.removed
                                          : entry.kind == WriteKind::kUpdate && entry.moved_to.is_null();
}

}  // namespace

void Commit::CountChange(AccessKind kind, const WriteEntry& entry, AccessPath path) {
  session_->paths.Count(kind, entry.table->id(), path);
}

coro::Task<Status> Commit::LockRemote() {
  scratch_.operations.clear();
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    if (!session_->debts.empty() && session_->debts.Covers(entry.record)) [[unlikely]] {
      Sometimes<"commit: a record to write is owed by the same session">();
      co_return Conflict(AbortCause::kLock);
    }
    scratch_.operations.push_back(
        rdma::Operation::CompareAndSwap(entry.record, entry.seen, Locked(entry.seen, session_->owner_bits)));
    scratch_.operations.back().connection = entry.connection;
    if (entry.kind == WriteKind::kRemove) CountChange(AccessKind::kRemove, entry, AccessPath::kCall);
  }
  BeginIndexing();
  if (scratch_.operations.empty()) co_return absl::OkStatus();
  may_hold_locks_ = true;
  Status status = co_await session_->channel->Post(scratch_.operations);
  if (!status.ok()) {
    Sometimes<"commit: locks at other nodes may be held or not">();
    // Perhaps an expected leaf is at no valid address.
    scratch_.expects_leaves = false;
    for (const WriteEntry& entry : writes_.entries()) {
      if (!entry.is_direct() && ChangesRecord(entry)) OweUnlock(entry);
    }
    co_return status;
  }
  Status conflict;
  size_t i = 0;
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    const rdma::Operation& operation = scratch_.operations[i++];
    entry.locked = operation.result == entry.seen;
    if (entry.locked || !conflict.ok()) continue;
    Sometimes<"commit: a record at another node is locked or was changed">();
    session_->conflict.Note(*entry.table, entry.key);
    conflict = LockedTooLong(operation.result);
  }
  co_return conflict;
}

void Commit::PutCaller(std::span<std::byte> place, std::optional<uint16_t>* slot) {
  if (!slot->has_value()) *slot = session_->debts.TakeSlot();
  rdma::WireWriter writer(place);
  txn::Put(writer, Caller{.name = Caller::NameOf(session_->owner_bits, **slot),
                          .number = session_->incarnation->NextRequest()});
}

void Commit::OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message) {
  auto debt = std::make_shared<Debt>();
  debt->kind = Debt::Kind::kCall;
  debt->node = call->node;
  debt->connection = ConnectionOf(call->node);
  debt->ticket = ticket_;
  debt->method = method;
  debt->slot = *call->slot;
  call->slot.reset();
  debt->message.assign(message.begin(), message.end());
  if (method == kTxnFinish) debt->records = call->finished;
  session_->debts.Add(std::move(debt));
}

void Commit::OweUnlock(const WriteEntry& entry) {
  auto debt = std::make_shared<Debt>();
  debt->kind = Debt::Kind::kUnlock;
  debt->node = entry.record.node();
  debt->connection = entry.connection;
  debt->record = entry.record;
  debt->held = Locked(entry.seen, session_->owner_bits);
  debt->next = entry.seen;
  session_->debts.Add(std::move(debt));
}

void Commit::OweInstall(const WriteEntry& entry) {
  auto debt = std::make_shared<Debt>();
  debt->kind = Debt::Kind::kInstall;
  debt->node = entry.record.node();
  debt->connection = entry.connection;
  debt->ticket = ticket_;
  debt->record = entry.record;
  debt->held = Locked(entry.seen, session_->owner_bits);
  debt->next = NextState(entry.seen, false);
  if (entry.kind == WriteKind::kUpdate) {
    debt->image.assign(entry.image, entry.image + RecordLines(entry.key, entry.payload_bytes) * kLineBytes);
  }
  session_->debts.Add(std::move(debt));
}

uint64_t Commit::DebtDeadline() const {
  if (logged_) return UINT64_MAX;
  return NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(session_->local->options.call_timeout));
}

// The transaction continues, or ends, while debts of its ticket are open. Its decision stays noted until they are
// settled.
void Commit::LeaveSlot() {
  if (scratch_.decision_slot.has_value()) ticket_->slots.push_back(*scratch_.decision_slot);
  scratch_.decision_slot.reset();
}

coro::Task<Status> Commit::AwaitDebts(Status first_error) {
  if (ticket_ != nullptr) {
    const bool done = co_await session_->debts.Await(ticket_, DebtDeadline());
    if (done) Sometimes<"commit: what was owed after the commit point is done in time">();
    // A decision must stay noted until it is carried out.
    if (!done && ticket_->open > 0) LeaveSlot();
    if (!done && first_error.ok()) first_error = absl::UnavailableError("it died, or cannot be reached");
  }
  if (first_error.ok()) co_return first_error;
  Sometimes<"commit: the outcome is Unknown because a node did not take its part">();
  co_return absl::UnknownError(
      absl::StrCat("the transaction passed its commit point, but a node did not take its part: ",
                   absl::string_view(first_error.message())));
}

std::span<OwnerCall> Commit::OwnerCalls() {
  if (scratch_.owner_calls.empty()) {
    scratch_.owner_calls = std::vector<OwnerCall>(static_cast<size_t>(session_->local->data_nodes));
    for (size_t node = 0; node < scratch_.owner_calls.size(); ++node) {
      scratch_.owner_calls[node].node = static_cast<rdma::NodeId>(node);
    }
  }
  return scratch_.owner_calls;
}

coro::Task<StatusOr<size_t>> Commit::SendTo(OwnerCall* call, rdma::MethodId method, std::span<std::byte> response,
                                            absl::Duration timeout) {
  co_return co_await session_->channel->Call(call->node, method, call->request, response, timeout,
                                             ConnectionOf(call->node));
}

// Asks the owners for placeholders for inserts, and for new places of records that outgrow theirs: in as few calls as
// fit, and calls to different owners together. So two transactions that insert the same keys at two owners may get one
// key each, and both fail. They are run again after a random pause, as with locks, which are requested together, too.
coro::Task<Status> Commit::PrepareRemote() {
  const auto start = [this](OwnerCall& call) -> coro::Task<StatusOr<size_t>> {
    if (!EncodePrepare(&call)) return {};
    return SendTo(&call, kTxnPrepare, call.response.room(), session_->local->options.call_timeout);
  };
  const auto take = [this](OwnerCall& call, const StatusOr<size_t>& size) -> Status {
    if (size.ok()) return DecodePrepared(&call, call.response.room().first(*size));
    if (IsUnknownOutcome(size.status())) {
      Sometimes<"commit: a prepare may have been done or not">();
      OweCall(&call, kTxnCancel, call.request.first(Caller::kBytes));
    }
    return size.status();
  };
  co_return co_await CallOwners(OwnerCalls(), start, take);
}

bool Commit::IsPrepared(const WriteEntry& entry) const {
  return !entry.is_direct() && (entry.kind == WriteKind::kInsert || NeedsMove(entry));
}

// Writes the request for the owner's entries from call->next on that fit one message, and notes them in call->prepared.
// False if there are none.
bool Commit::EncodePrepare(OwnerCall* call) {
  std::vector<uint32_t>& prepared = call->prepared;
  prepared.clear();
  rdma::WireWriter writer(call->message.room());
  const std::span<std::byte> caller = writer.Reserve(Caller::kBytes);
  const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
  for (; call->next < writes_.size(); ++call->next) {
    WriteEntry& entry = writes_[call->next];
    const bool move = NeedsMove(entry);
    if (!IsPrepared(entry) || entry.indexed) continue;  // by verbs, if indexed
    if (entry.table->OwnerOf(entry.key, session_->self) != call->node) continue;
    const std::span<std::byte> payload(writes_.arena().Allocate(entry.payload_bytes), entry.payload_bytes);
    writes_.CopyPayload(entry, 0, payload);
    // The rest of the answer is for changes of more words. A transaction that does not learn of all of them conflicts
    // with itself.
    const size_t share = entry.table->index_traits().spatial ? kShareOfLongChanges : kShareOfChanges;
    if (writer.room() < PrepareItemBytes(entry.key, payload.size()) ||
        PreparedBytes(prepared.size() + 1) > rdma::kMaxMessageBytes / share) {
      break;
    }
    txn::Put(writer, PrepareItem{entry.table->id(), entry.key, payload, move, move ? VersionOf(entry.seen) : 0});
    prepared.push_back(static_cast<uint32_t>(call->next));
    if (!move) CountChange(AccessKind::kInsert, entry, AccessPath::kCall);
  }
  if (prepared.empty()) return false;
  PutCaller(caller, &call->slot);
  const auto n = static_cast<uint16_t>(prepared.size());
  std::memcpy(count.data(), &n, sizeof n);
  call->request = writer.written();
  return true;
}

Status Commit::DecodePrepared(OwnerCall* call, std::span<const std::byte> response) {
  rdma::WireReader reader(response);
  const auto outcome = static_cast<PrepareOutcome>(reader.GetU8());
  if (outcome == PrepareOutcome::kExists) {
    Sometimes<"commit: a prepare meets a committed record">();
    const index::Witness existing = index::GetWitness(reader);
    const uint16_t made = reader.GetU16();
    if (made >= call->prepared.size()) {
      return absl::InternalError(absl::StrCat("node ", call->node, " prepared more than asked"));
    }
    const WriteEntry& insert = writes_[call->prepared[made]];
    call->prepared.resize(made);
    GANNET_RETURN_IF_ERROR(DecodeMade(*call, reader));
    return NoteExisting(insert, {existing.word, existing.seen});
  }
  if (outcome != PrepareOutcome::kPrepared) {
    Sometimes<"commit: a prepare meets a record that is locked or absent">();
    return Conflict(AbortCause::kLock);
  }
  return DecodeMade(*call, reader);
}

// Reads the placeholder, or the block to move to, of each entry that the owner prepared.
Status Commit::DecodeMade(const OwnerCall& call, rdma::WireReader& reader) {
  for (uint32_t i : call.prepared) {
    WriteEntry& entry = writes_[i];
    Prepared prepared;
    if (!txn::Get(reader, &prepared) || prepared.record.node() != call.node) {
      return MalformedReply(call.node, "a prepare");
    }
    if (entry.kind == WriteKind::kInsert) {
      writes_.SetRecord(i, prepared.record);
      entry.seen = prepared.state;
      entry.locked = entry.indexed = true;
    } else {
      entry.moved_to = prepared.record;
      entry.moved_state = prepared.state;
    }
    reads_.Carry(prepared.change);
  }
  return reader.Finish();
}

Commit::Validation Commit::AppendValidation(bool in_the_past) {
  const std::span<const ReadEntry> records = reads_.records();
  const std::span<const ReadEntry> witnesses = reads_.witnesses();
  const size_t n = in_the_past && reads_.is_snapshot() ? 0 : reads_.size();
  if (n == 0 && !reads_.empty()) Sometimes<"commit: what was read needs no validation">();
  scratch_.words.Clear();
  for (size_t i = 0; i < n; ++i) {
    const ReadEntry& entry = i < records.size() ? records[i] : witnesses[i - records.size()];
    if (!IsReadDirectly(entry)) scratch_.words.Add(entry.word, sizeof(uint64_t));
  }
  scratch_.words.AppendTo(&scratch_.operations, /*merge=*/true, &writes_.arena());
  return {.words = n, .epochs = AskForEpochs()};
}

Status Commit::JudgeValidation(const Validation& validation) {
  const std::span<const ReadEntry> records = reads_.records();
  const std::span<const ReadEntry> witnesses = reads_.witnesses();
  Status unsaved = NoteRemoteEpochs(validation.epochs);
  for (size_t i = 0, read = 0; i < validation.words; ++i) {
    const bool is_record = i < records.size();
    const ReadEntry& entry = is_record ? records[i] : witnesses[i - records.size()];
    const uint64_t word =
        IsReadDirectly(entry) ? LoadWord(session_->Direct(entry.word)) : LoadWord(scratch_.words.image(read++));
    if (is_record && GANNET_MUTANT(kSkipValidation)) continue;
    if (!is_record && GANNET_MUTANT(kSkipWitness)) continue;
    if (is_record ? word == entry.seen || IsOwnLockOf(entry, word) : index::IsSameSet(word, entry.seen)) continue;
    Sometimes<"commit: something read at another node has changed">();
    return is_record ? ConflictAt(word) : Conflict(AbortCause::kIndex);
  }
  return unsaved;
}

coro::Task<Status> Commit::ValidateMixed(bool in_the_past) {
  scratch_.operations.clear();
  const Validation validation = AppendValidation(in_the_past);
  if (!scratch_.operations.empty()) {
    Status status = co_await session_->channel->Post(scratch_.operations);
    if (!status.ok()) {
      Sometimes<"commit: the READs of a validation fail">();
      co_return status;
    }
  }
  co_return JudgeValidation(validation);
}

// Builds the whole new record in the image that the READ left in the arena.
void Commit::BuildImage(WriteEntry& entry) {
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

// Installs updates and unlocks inserts by one-sided verbs, with one doorbell for all nodes.
coro::Task<void> Commit::InstallRemote(Where where) {
  scratch_.operations.clear();
  const auto write = [&](const std::byte* source, const WriteEntry& entry, size_t bytes) {
    scratch_.operations.push_back(rdma::Operation::Write(source, entry.record, static_cast<uint32_t>(bytes)));
    scratch_.operations.back().connection = entry.connection;
  };
  const auto unlock = [&](const WriteEntry& entry) {
    const uint64_t value = NextState(entry.seen, false);
    std::byte* source = writes_.arena().Allocate(sizeof value);
    std::memcpy(source, &value, sizeof value);
    write(source, entry, sizeof value);
  };
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || entry.installed || !Is(where, entry.record.node())) continue;
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
  if (scratch_.operations.empty()) co_return;
  const Status status = co_await session_->channel->Post(scratch_.operations);
  if (!status.ok()) Sometimes<"commit: an install fails after the commit point">();
  if (!status.ok() && ticket_ == nullptr) ticket_ = std::make_shared<DebtTicket>();
  for (WriteEntry& entry : writes_.entries()) {
    if (!IsInstalledByVerbs(entry) || !Is(where, entry.record.node())) continue;
    if (!status.ok()) OweInstall(entry);
    entry.locked = false;
  }
}

// The work that `entry` needs from its owner at the end. Committed: removals, own inserts that were removed again,
// moves. Aborted: placeholders are unmade.
bool Commit::FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item) const {
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
bool Commit::EncodeFinish(OwnerCall* call, bool committed) {
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
  PutCaller(caller, &call->slot);
  std::memcpy(count.data(), &n, sizeof n);
  call->request = writer.written();
  return true;
}

// Asks every owner for all of its part, even after another owner has failed.
coro::Task<Status> Commit::FinishAtOwners(bool committed, Where where) {
  const absl::Duration timeout = std::min(kFinishTimeout, session_->local->options.call_timeout);
  Status first_error;
  const auto start = [this, committed, where, timeout](OwnerCall& call) -> coro::Task<StatusOr<size_t>> {
    if (!Is(where, call.node) || !EncodeFinish(&call, committed)) return {};
    return SendTo(&call, kTxnFinish, {}, timeout);
  };
  const auto take = [this, committed, &first_error](OwnerCall& call, const StatusOr<size_t>& answer) -> Status {
    if (answer.ok()) return absl::OkStatus();
    if (IsUnknownOutcome(answer.status())) {
      Sometimes<"commit: a finish may have been done or not">();
      if (committed && ticket_ == nullptr) ticket_ = std::make_shared<DebtTicket>();
      OweCall(&call, kTxnFinish, call.request);
    } else if (first_error.ok()) {
      first_error = answer.status();
    }
    return absl::OkStatus();
  };
  const Status called = co_await CallOwners(OwnerCalls(), start, take);
  co_return first_error.ok() ? called : first_error;
}

coro::Task<void> Commit::ReleaseRemote() {
  // Whatever failed is a debt; or the owner does not know the placeholder, and it is not there.
  Status status = co_await FinishAtOwners(/*committed=*/false, Where::kElsewhere);
  status = co_await FinishAtOwners(/*committed=*/false, Where::kHere);
  scratch_.operations.clear();
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !entry.locked || !ChangesRecord(entry)) continue;
    scratch_.operations.push_back(rdma::Operation::Write(&entry.seen, entry.record, sizeof entry.seen));
    scratch_.operations.back().connection = entry.connection;
  }
  if (scratch_.operations.empty()) co_return;
  status = co_await session_->channel->Post(scratch_.operations);
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !entry.locked || !ChangesRecord(entry)) continue;
    if (!status.ok()) Sometimes<"commit: the unlocking of an abort fails">();
    if (!status.ok()) OweUnlock(entry);
    entry.locked = false;
  }
}

void Commit::NoteNoneHeld() {
  may_hold_locks_ = false;
  session_->debts.NoteRelease();
}

coro::Task<Status> Commit::CommitMixed() {
  if (!session_->debts.empty()) [[unlikely]]
    session_->debts.Forget();
  Status status = co_await JoinOwners();
  if (status.ok()) status = LockAndIndexDirect();
  RedoScope redo(this);
  bool validated = false;
  if (status.ok()) status = co_await MakePlaceholders();
  if (status.ok()) status = co_await LockRemote();
  if (status.ok() && !scratch_.placeholders.empty() && exists_ == kNone) {
    status = co_await IndexPlaceholders(&redo, &validated);
  }
  GiveBackPlaceholders();
  if (status.ok() && !validated && exists_ == kNone) status = co_await PrepareRemote();
  redo.Enter();
  if (status.ok() && !validated) status = co_await ValidateMixed(/*in_the_past=*/false);
  if (status.ok() && exists_ != kNone) status = Exists();
  if (status.ok() && redo_bytes_ > 0) status = co_await LogMixed();
  if (!status.ok()) {
    for (WriteEntry& entry : writes_.entries()) ReleaseDirect(*session_, entry);
    co_await ReleaseRemote();
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
  if (NeedsDecider()) co_await Decide();
  co_await InstallRemote(Where::kElsewhere);
  Status finished = co_await FinishAtOwners(/*committed=*/true, Where::kElsewhere);
  if (ticket_ != nullptr || !finished.ok()) finished = co_await AwaitDebts(std::move(finished));
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() && entry.kind != WriteKind::kNone) InstallDirect(entry);
  }
  if (session_->direct) co_return finished;
  ticket_ = nullptr;
  co_await InstallRemote(Where::kHere);
  Status here = co_await FinishAtOwners(/*committed=*/true, Where::kHere);
  if (ticket_ != nullptr || !here.ok()) here = co_await AwaitDebts(std::move(here));
  co_return finished.ok() ? here : finished;
}

}  // namespace gannet::txn
