// Inserts at other nodes by verbs, into tables whose indexes clients may change (Table::index_traits). It takes the
// place of the kTxnPrepare call, and needs no CPU of the owner:
//
//   before the lock   Each insert gets a block that the owner has lent (node/record_stock.h).
//   lock              The posting of the locks also READs the leaves where the client's caches expect the keys to
//                     belong. Where others have split them, one more posting READs all leaves to their right; where the
//                     caches know nothing, the indexes are searched, all at once.
//   lock the leaves   One posting for all indexes; keys of one leaf share a lock (index::InsertBatch). With a log
//                     READs of the versions of removed records follow the locks.
//   index, validate   One posting: WRITEs of the placeholders, which are whole records, locked and absent; WRITEs of
//                     the leaves, which release their locks, and of new leaves if they have no room; then the READs of
//                     the validation.
//
// From then on the placeholder is like one that the owner has made. Redo, decisions, installs, the release of an abort
// and the repair after a death do not differ. It takes as many postings as with the call: lock, prepare, validate,
// install.
//
// All or none. A call prepares any number of inserts, and costs a round trip in addition to those of the verbs. So if
// one thing has to be prepared by a call, all are: a record that moves, an insert into a table that clients may not
// change, or one that an index refuses when it has seen the leaf. That is known before anything is written.
//
// Why the record is there before the index leads to it: its WRITE comes before those of the leaf, and a node performs
// the WRITEs of one channel in their order (fabric.h, 3).
//
// Why the READs of the validation may go with the change of the leaves: by then all locks of the transaction are held,
// those of the leaves, too. A witness is the leaf's state word, which has the lock. So of two transactions each of
// which fills a gap that the other has seen, one finds the other's lock or change: both lock before they validate. The
// words of the own leaves are READ after the WRITEs, because a node performs verbs of one channel in their order
// (fabric.h, 3). With a log, the epoch is entered when the leaves are locked, for the same reason (redo.cc).
//
// Why a placeholder starts above every removal of its key that comes before it, as recovery needs
// (durable/removal_versions.h). A removal is made by the owner's CPU: it notes the version, then it changes the leaf.
// The lock of the leaf is a CAS from the state word of an image that does not have the key, and no state word returns.
// So if the CAS succeeds, then at that moment each removal of the key that will ever come before this insert has
// changed the leaf, and has noted its version before that. (If the key was in another leaf, from which this one was
// split off later, the split comes after the removal.) The READ of the version is posted behind the CAS on the same
// channel to the same node, so it sees what the CAS saw (fabric.h, 3). It need not come after the key has entered the
// index, as at the owner, where an insert takes no lock first: from the CAS on until this transaction ends, no removal
// of the key can come.
//
// What fails. If the lock's posting fails, nothing was written. If the posting of the leaves' locks fails, with a log
// the transaction ends, because the versions are not known; leaves that are locked are changed all the same, which
// unlocks them, and the abort takes the placeholders out. Inserts whose leaves others change again and again go on by
// the call, in addition to the verbs of the others; then the validation comes after the call. An insert whose outcome
// is unknown is one whose connection has ended: the owner counts this node as dead, and removes the placeholder if it
// is in the index (ReleaseAllOf), or takes the block back (LentRecords). Blocks that came into no index are used again,
// with higher versions.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/mutant.h"
#include "base/sometimes.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "txn/commit/commit.h"
#include "txn/commit/commit_internal.h"
#include "txn/commit/redo_scope.h"
#include "txn/node/record_stock.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr size_t kLentAtOnce = kMostLentPerLend;
constexpr size_t kMostLentBytes = 256 * 1024;

}  // namespace

bool Commit::PreparesByVerbs() const {
  bool wanted = false;
  for (const WriteEntry& entry : writes_.entries()) {
    if (!IsPrepared(entry)) continue;
    const index::IndexTraits& traits = entry.table->index_traits();
    if (entry.kind != WriteKind::kInsert || entry.removed || entry.connection == 0 || !traits.client_writes)
      return false;
    wanted = wanted ||
             session_->paths.PathOfInsert(traits, session_->epochs->LoadOf(OwnerOf(entry))) == AccessPath::kOneSided;
  }
  return wanted;
}

// Borrows blocks for records of `bytes` bytes, and tells which earlier ones were used.
coro::Task<Status> Commit::Borrow(rdma::NodeId owner, uint64_t connection, size_t bytes) {
  RecordStock& stock = session_->local->record_stock;
  std::array<std::byte, kLendRequestBytes> request;
  std::array<std::byte, kLendResponseBytes> response;
  const LendRequest asked{.bytes = static_cast<uint32_t>(bytes),
                          .wanted = static_cast<uint16_t>(std::clamp<size_t>(kMostLentBytes / bytes, 1, kLentAtOnce)),
                          .used = stock.TakeUsed(owner, connection, kMostUsedPerLend)};
  rdma::WireWriter writer(request);
  txn::Put(writer, asked);
  const StatusOr<size_t> size = co_await session_->channel->Call(owner, kTxnLend, writer.written(), response,
                                                                 session_->local->options.call_timeout, connection);
  if (!size.ok()) {
    stock.NoteUsed(owner, connection, asked.used);  // it may know already, and ignores it then
    co_return size.status();
  }
  rdma::WireReader reader(std::span<const std::byte>(response).first(*size));
  std::vector<LentBlock> lent;
  if (!txn::GetLent(reader, &lent) || !reader.Finish().ok() ||
      std::ranges::any_of(lent, [owner](const LentBlock& block) {
        return block.address.node() != owner || block.address.offset() % kLineBytes != 0 || IsLocked(block.word);
      })) {
    co_return MalformedReply(owner, "a lend");
  }
  for (LentBlock& block : lent) block.lent_word = block.word;
  stock.Add(owner, connection, bytes, lent);
  co_return absl::OkStatus();
}

index::InsertBatch* Commit::BatchFor(index::RemoteIndex* index) {
  const auto made = std::ranges::find(scratch_.index_inserts, index, &IndexInserts::index);
  if (made != scratch_.index_inserts.end()) return made->batch.get();
  return scratch_.index_inserts.emplace_back(index, index->NewInsertBatch()).batch.get();
}

// Without a block, inserts are made by calls.
coro::Task<Status> Commit::MakePlaceholders() {
  if (!PreparesByVerbs()) co_return absl::OkStatus();
  for (size_t i = 0; i < writes_.size(); ++i) {
    const WriteEntry& entry = writes_[i];
    if (!IsPrepared(entry)) continue;
    const rdma::NodeId owner = OwnerOf(entry);
    const size_t bytes = index::RecordBytes(entry.key.size(), entry.payload_bytes);
    LentBlock block;
    if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) {
      const Status borrowed = co_await Borrow(owner, entry.connection, bytes);
      if (!borrowed.ok()) Sometimes<"commit: no block can be borrowed for an insert">();
      if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) {
        GiveBackPlaceholders();
        co_return absl::OkStatus();
      }
    }
    const size_t lines = RecordLines(entry.key, entry.payload_bytes);
    const std::span<std::byte> image(writes_.arena().Allocate(lines * kLineBytes), lines * kLineBytes);
    std::memset(image.data(), 0, image.size());
    const std::span<std::byte> payload(writes_.arena().Allocate(entry.payload_bytes), entry.payload_bytes);
    writes_.CopyPayload(entry, 0, payload);
    const uint64_t state = VersionOf(block.word) | kAbsentBit;
    MakeLockedImage(image, entry.table->id(), entry.key, payload, ++block.incarnation, state, session_->owner_bits);
    scratch_.placeholders.push_back(
        {.entry = static_cast<uint32_t>(i), .block = block, .state = state, .image = image});
  }
  // Those of one index follow each other.
  std::ranges::stable_sort(scratch_.placeholders, {}, [this](const Placeholder& one) {
    return std::pair(writes_[one.entry].table->id(), one.block.address.node());
  });
  scratch_.insertions.clear();
  for (const Placeholder& one : scratch_.placeholders) {
    const WriteEntry& entry = writes_[one.entry];
    scratch_.insertions.push_back({.key = entry.key, .record = one.block.address, .image = one.image});
    const StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(*entry.table, one.block.address.node());
    GANNET_CO_RETURN_IF_ERROR(index.status());
    scratch_.batch_of.push_back(BatchFor(*index));
  }
  co_return absl::OkStatus();
}

void Commit::BeginIndexing() {
  const std::vector<Placeholder>& all = scratch_.placeholders;
  std::vector<rdma::Operation>* const reads = scratch_.expects_leaves ? &scratch_.operations : nullptr;
  scratch_.expects_leaves = true;
  scratch_.batches.clear();
  for (size_t begin = 0; begin < all.size();) {
    index::InsertBatch* const batch = scratch_.batch_of[begin];
    size_t end = begin + 1;
    while (end < all.size() && scratch_.batch_of[end] == batch) ++end;
    batch->Begin(std::span(scratch_.insertions).subspan(begin, end - begin), writes_[all[begin].entry].connection,
                 reads);
    scratch_.batches.push_back(batch);
    begin = end;
  }
}

void Commit::AskForRemovedVersions() {
  scratch_.removed.Clear();
  if (redo_bytes_ == 0) return;
  for (const Placeholder& one : scratch_.placeholders) {
    const WriteEntry& entry = writes_[one.entry];
    scratch_.removed.Add(log_->RemovedVersionAt(one.block.address.node(), entry.table->id(), entry.key),
                         sizeof(uint64_t));
  }
  scratch_.removed.AppendTo(&scratch_.operations, /*merge=*/true, &writes_.arena());
}

// Nothing leads to their blocks yet, except of those that are given away already.
void Commit::StartAboveRemovedVersions() {
  for (size_t i = 0; i < scratch_.removed.size(); ++i) {
    Placeholder& one = scratch_.placeholders[i];
    const uint64_t removed = VersionOf(LoadWord(scratch_.removed.image(i)));
    if (one.is_given || VersionOf(one.state) >= removed || GANNET_MUTANT(kForgetRemovals)) continue;
    Sometimes<"commit: an insert by verbs starts above a removed record">();
    one.state = removed | kAbsentBit;
    rdma::StampImage(one.image.data(), one.image.size() / kLineBytes, Locked(one.state, session_->owner_bits),
                     NextState(one.state, false));
  }
}

// Those that did not come into an index may be used again. Lines of the block may have the version that this record was
// to get.
void Commit::GiveBackPlaceholders() {
  for (index::InsertBatch* const batch : scratch_.batches) batch->Abandon();
  scratch_.batches.clear();
  for (Placeholder& one : scratch_.placeholders) {
    if (one.is_given) continue;
    const WriteEntry& entry = writes_[one.entry];
    one.block.word = VersionOf(NextState(one.state, false)) | kAbsentBit;
    session_->local->record_stock.Add(OwnerOf(entry), entry.connection,
                                      index::RecordBytes(entry.key.size(), entry.payload_bytes),
                                      std::span(&one.block, 1));
  }
  scratch_.placeholders.clear();
  scratch_.batch_of.clear();
}

coro::Task<Status> Commit::ReadSplitLeaves() {
  for (;;) {
    scratch_.operations.clear();
    for (index::InsertBatch* const batch : scratch_.batches) batch->AppendReads(&scratch_.operations);
    if (scratch_.operations.empty()) co_return absl::OkStatus();
    Status read = co_await session_->channel->Post(scratch_.operations);
    if (!read.ok()) {
      scratch_.expects_leaves = false;
      co_return read;
    }
  }
}

coro::Task<Status> Commit::FindLeaves() {
  std::vector<coro::Started<Status>>& finds = scratch_.finds;
  finds.clear();
  for (index::InsertBatch* const batch : scratch_.batches) finds.emplace_back(batch->Find());
  Status first_error;
  for (coro::Started<Status>& find : finds) {
    Status found = co_await find;
    if (first_error.ok()) first_error = std::move(found);
  }
  finds.clear();
  co_return first_error;
}

coro::Task<Status> Commit::IndexPlaceholders(RedoScope* redo, bool* validated) {
  constexpr int kRounds = 3;  // of leaves that others change
  const Status read = co_await ReadSplitLeaves();
  GANNET_CO_RETURN_IF_ERROR(read);
  for (int round = 0; round < kRounds; ++round) {
    const Status found = co_await FindLeaves();
    GANNET_CO_RETURN_IF_ERROR(found);
    const bool exists =
        std::ranges::count(scratch_.insertions, index::Insertion::Outcome::kExists, &index::Insertion::outcome) > 0;
    if (exists) co_return co_await NoteAllExisting();
    size_t pending = 0;
    size_t refused = 0;
    for (const index::InsertBatch* const batch : scratch_.batches) {
      pending += batch->pending();
      refused += batch->refused();
    }
    if (refused > 0 && pending > 0) Sometimes<"commit: inserts by verbs are left to the call that one of them needs">();
    if (refused > 0 || pending == 0) break;
    const Status changed = co_await ChangeLeaves(redo, validated);
    TakeInserted();
    for (index::InsertBatch* const batch : scratch_.batches) co_await batch->Publish();
    GANNET_CO_RETURN_IF_ERROR(changed);
    if (*validated) break;
  }
  co_return absl::OkStatus();
}

// Nothing suspends while this is alone.
coro::Task<Status> Commit::ChangeLeaves(RedoScope* redo, bool* validated) {
  std::vector<rdma::Operation>& operations = scratch_.operations;
  Status first_error;
  const auto note = [&first_error](Status status) {
    if (first_error.ok()) first_error = std::move(status);
  };
  Validation validation;
  Status posted;
  {
    const rdma::Channel::Alone alone(session_->channel.get());
    operations.clear();
    for (index::InsertBatch* const batch : scratch_.batches) batch->AppendLocks(&operations);
    AskForRemovedVersions();
    if (!operations.empty()) posted = session_->channel->PostAlone(operations);
    if (scratch_.removed.size() > 0) note(posted);
    size_t locked = 0;
    for (index::InsertBatch* const batch : scratch_.batches) {
      note(co_await batch->TakeLocks(posted, operations));
      locked += batch->locked();
    }
    if (posted.ok()) StartAboveRemovedVersions();
    operations.clear();
    for (index::InsertBatch* const batch : scratch_.batches) batch->AppendChanges(&operations);
    for (index::Insertion& one : scratch_.insertions) reads_.Carry(std::exchange(one.change, {}));
    const auto to_prepare = std::ranges::count_if(
        writes_.entries(), [this](const WriteEntry& entry) { return IsPrepared(entry) && !entry.indexed; });
    *validated = first_error.ok() && locked == static_cast<size_t>(to_prepare);
    if (*validated) {
      redo->Enter();
      validation = AppendValidation(/*in_the_past=*/false);
    }
    posted = absl::OkStatus();
    if (!operations.empty()) posted = session_->channel->PostAlone(operations);
    for (index::InsertBatch* const batch : scratch_.batches) note(co_await batch->TakeChanges(posted));
  }
  if (*validated) {
    Sometimes<"commit: the validation goes with the change of leaves">();
    note(posted.ok() ? JudgeValidation(validation) : posted);
  }
  co_return first_error;
}

void Commit::TakeInserted() {
  for (size_t i = 0; i < scratch_.placeholders.size(); ++i) {
    Placeholder& one = scratch_.placeholders[i];
    const index::Insertion::Outcome outcome = scratch_.insertions[i].outcome;
    if (one.is_given) continue;
    if (outcome == index::Insertion::Outcome::kUnknown) one.is_given = true;
    if (outcome != index::Insertion::Outcome::kDone) continue;
    WriteEntry& entry = writes_[one.entry];
    const UsedBlock used{.table = entry.table->id(), .block = one.block};
    session_->local->record_stock.NoteUsed(one.block.address.node(), entry.connection, std::span(&used, 1));
    writes_.SetRecord(one.entry, one.block.address);
    entry.seen = one.state;
    entry.locked = entry.indexed = true;
    one.is_given = true;
    CountChange(AccessKind::kInsert, entry, AccessPath::kOneSided);
  }
}

// The rest need not be inserted: the transaction ends with AlreadyExists, or with a conflict. If what exists is locked
// or absent, the owner is asked by a call after all, because only the owner can tell a conflict from a damaged index.
// (Nothing existed before: an insert of this node that met a record would have ended the transaction.)
coro::Task<Status> Commit::NoteAllExisting() {
  std::vector<ReadEntry>& existing = scratch_.existing;
  existing.assign(scratch_.insertions.size(), {});
  scratch_.operations.clear();
  const auto exists = [this](size_t i) { return scratch_.insertions[i].outcome == index::Insertion::Outcome::kExists; };
  for (size_t i = 0; i < existing.size(); ++i) {
    if (!exists(i)) continue;
    existing[i].word = scratch_.insertions[i].existing;
    scratch_.operations.push_back(rdma::Operation::Read(existing[i].word, &existing[i].seen, sizeof(uint64_t)));
  }
  Status status = co_await session_->channel->Post(scratch_.operations);
  for (size_t i = 0; i < existing.size() && status.ok(); ++i) {
    if (exists(i)) status = NoteExisting(writes_[scratch_.placeholders[i].entry], existing[i]);
  }
  if (absl::IsAborted(status)) {
    exists_ = kNone;
    co_return absl::OkStatus();
  }
  co_return status;
}

}  // namespace gannet::txn
