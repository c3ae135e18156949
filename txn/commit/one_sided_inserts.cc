#include "txn/commit/one_sided_inserts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/mutant.h"
#include "base/sometimes.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/commit/commit_internal.h"
#include "txn/node/record_stock.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr size_t kLentAtOnce = kMostLentPerLend;
constexpr size_t kMostLentBytes = 256 * 1024;

}  // namespace

bool OneSidedInserts::PreparesByVerbs() const {
  bool wanted = false;
  for (const WriteEntry& entry : writes_.entries()) {
    if (!IsPrepared(entry)) continue;
    const index::IndexTraits& traits = entry.table->index_traits();
    if (entry.kind != WriteKind::kInsert || entry.removed || entry.connection == 0 || !traits.client_writes)
      return false;
    wanted = wanted || session_->paths.PathOfInsert(traits, session_->epochs->LoadOf(links_.OwnerOf(entry))) ==
                           AccessPath::kOneSided;
  }
  return wanted;
}

// Borrows blocks for records of `bytes` bytes, and tells which earlier ones were used.
coro::Task<Status> OneSidedInserts::Borrow(rdma::NodeId owner, uint64_t connection, size_t bytes) {
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

index::InsertBatch* OneSidedInserts::BatchFor(index::RemoteIndex* index) {
  const auto made = std::ranges::find(batches_by_index_, index, &IndexBatch::index);
  if (made != batches_by_index_.end()) return made->batch.get();
  return batches_by_index_.emplace_back(index, index->NewInsertBatch()).batch.get();
}

coro::Task<Status> OneSidedInserts::MakePlaceholders() {
  if (!PreparesByVerbs()) co_return absl::OkStatus();
  for (size_t i = 0; i < writes_.size(); ++i) {
    const WriteEntry& entry = writes_[i];
    if (!IsPrepared(entry)) continue;
    const rdma::NodeId owner = links_.OwnerOf(entry);
    const size_t bytes = index::RecordBytes(entry.key.size(), entry.payload_bytes);
    LentBlock block;
    if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) {
      const Status borrowed = co_await Borrow(owner, entry.connection, bytes);
      if (!borrowed.ok()) Sometimes<"commit: no block can be borrowed for an insert">();
      if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) {
        GiveBack();
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
    placeholders_.push_back({.entry = static_cast<uint32_t>(i), .block = block, .state = state, .image = image});
  }
  // Those of one index follow each other.
  std::ranges::stable_sort(placeholders_, {}, [this](const Placeholder& one) {
    return std::pair(writes_[one.entry].table->id(), one.block.address.node());
  });
  insertions_.clear();
  for (const Placeholder& one : placeholders_) {
    const WriteEntry& entry = writes_[one.entry];
    insertions_.push_back({.key = entry.key, .record = one.block.address, .image = one.image});
    const StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(*entry.table, one.block.address.node());
    GANNET_CO_RETURN_IF_ERROR(index.status());
    batch_of_.push_back(BatchFor(*index));
  }
  co_return absl::OkStatus();
}

void OneSidedInserts::Begin(std::vector<rdma::Operation>* operations) {
  const std::vector<Placeholder>& all = placeholders_;
  std::vector<rdma::Operation>* const reads = expects_leaves_ ? operations : nullptr;
  expects_leaves_ = true;
  batches_.clear();
  for (size_t begin = 0; begin < all.size();) {
    index::InsertBatch* const batch = batch_of_[begin];
    size_t end = begin + 1;
    while (end < all.size() && batch_of_[end] == batch) ++end;
    batch->Begin(std::span(insertions_).subspan(begin, end - begin), writes_[all[begin].entry].connection, reads);
    batches_.push_back(batch);
    begin = end;
  }
}

void OneSidedInserts::AskForRemovedVersions() {
  removed_.Clear();
  if (!redo_.is_reserved()) return;
  for (const Placeholder& one : placeholders_) {
    const WriteEntry& entry = writes_[one.entry];
    removed_.Add(session_->log->RemovedVersionAt(one.block.address.node(), entry.table->id(), entry.key),
                 sizeof(uint64_t));
  }
  removed_.AppendTo(&operations_, /*merge=*/true, &writes_.arena());
}

// Nothing leads to the blocks of the placeholders yet, except to those that are given away already.
void OneSidedInserts::StartAboveRemovedVersions() {
  for (size_t i = 0; i < removed_.size(); ++i) {
    Placeholder& one = placeholders_[i];
    const uint64_t removed = VersionOf(LoadWord(removed_.image(i)));
    if (one.is_given || VersionOf(one.state) >= removed || GANNET_MUTANT(kForgetRemovals)) continue;
    Sometimes<"commit: an insert by verbs starts above a removed record">();
    one.state = removed | kAbsentBit;
    rdma::StampImage(one.image.data(), one.image.size() / kLineBytes, Locked(one.state, session_->owner_bits),
                     NextState(one.state, false));
  }
}

// Those that did not come into an index may be used again. Lines of the block may have the version that this record was
// to get.
void OneSidedInserts::GiveBack() {
  for (index::InsertBatch* const batch : batches_) batch->Abandon();
  batches_.clear();
  for (Placeholder& one : placeholders_) {
    if (one.is_given) continue;
    const WriteEntry& entry = writes_[one.entry];
    one.block.word = VersionOf(NextState(one.state, false)) | kAbsentBit;
    session_->local->record_stock.Add(links_.OwnerOf(entry), entry.connection,
                                      index::RecordBytes(entry.key.size(), entry.payload_bytes),
                                      std::span(&one.block, 1));
  }
  placeholders_.clear();
  batch_of_.clear();
}

coro::Task<Status> OneSidedInserts::ReadSplitLeaves() {
  for (;;) {
    operations_.clear();
    for (index::InsertBatch* const batch : batches_) batch->AppendReads(&operations_);
    if (operations_.empty()) co_return absl::OkStatus();
    Status read = co_await session_->channel->Post(operations_);
    if (!read.ok()) {
      expects_leaves_ = false;
      co_return read;
    }
  }
}

coro::Task<Status> OneSidedInserts::FindLeaves() {
  finds_.clear();
  for (index::InsertBatch* const batch : batches_) finds_.emplace_back(batch->Find());
  Status first_error;
  for (coro::Started<Status>& find : finds_) {
    Status found = co_await find;
    if (first_error.ok()) first_error = std::move(found);
  }
  finds_.clear();
  co_return first_error;
}

coro::Task<Status> OneSidedInserts::Index(Redo::Stay* stay, bool* validated) {
  constexpr int kRounds = 3;  // of leaves that others change
  const Status read = co_await ReadSplitLeaves();
  GANNET_CO_RETURN_IF_ERROR(read);
  for (int round = 0; round < kRounds; ++round) {
    const Status found = co_await FindLeaves();
    GANNET_CO_RETURN_IF_ERROR(found);
    const bool exists =
        std::ranges::count(insertions_, index::Insertion::Outcome::kExists, &index::Insertion::outcome) > 0;
    if (exists) co_return co_await NoteAllExisting();
    size_t pending = 0;
    size_t refused = 0;
    for (const index::InsertBatch* const batch : batches_) {
      pending += batch->pending();
      refused += batch->refused();
    }
    if (refused > 0 && pending > 0) Sometimes<"commit: inserts by verbs are left to the call that one of them needs">();
    if (refused > 0 || pending == 0) break;
    const Status changed = co_await ChangeLeaves(stay, validated);
    TakeInserted();
    for (index::InsertBatch* const batch : batches_) co_await batch->Publish();
    GANNET_CO_RETURN_IF_ERROR(changed);
    if (*validated) break;
  }
  co_return absl::OkStatus();
}

// Nothing suspends while this is alone.
coro::Task<Status> OneSidedInserts::ChangeLeaves(Redo::Stay* stay, bool* validated) {
  Status first_error;
  const auto note = [&first_error](Status status) {
    if (first_error.ok()) first_error = std::move(status);
  };
  Validation::Pending validation;
  Status posted;
  {
    const rdma::Channel::Alone alone(session_->channel.get());
    operations_.clear();
    for (index::InsertBatch* const batch : batches_) batch->AppendLocks(&operations_);
    AskForRemovedVersions();
    if (!operations_.empty()) posted = session_->channel->PostAlone(operations_);
    if (removed_.size() > 0) note(posted);
    size_t locked = 0;
    for (index::InsertBatch* const batch : batches_) {
      note(co_await batch->TakeLocks(posted, operations_));
      locked += batch->locked();
    }
    if (posted.ok()) StartAboveRemovedVersions();
    operations_.clear();
    for (index::InsertBatch* const batch : batches_) batch->AppendChanges(&operations_);
    for (index::Insertion& one : insertions_) reads_.Carry(std::exchange(one.change, {}), *session_);
    const auto to_prepare = std::ranges::count_if(
        writes_.entries(), [this](const WriteEntry& entry) { return IsPrepared(entry) && !entry.indexed; });
    *validated = first_error.ok() && locked == static_cast<size_t>(to_prepare);
    if (*validated) {
      stay->Enter();
      validation = validation_.AppendReads(Validation::Moment::kNow, &operations_);
    }
    posted = absl::OkStatus();
    if (!operations_.empty()) posted = session_->channel->PostAlone(operations_);
    for (index::InsertBatch* const batch : batches_) note(co_await batch->TakeChanges(posted));
  }
  if (*validated) {
    Sometimes<"commit: the validation goes with the change of leaves">();
    note(posted.ok() ? validation_.Judge(validation, operations_) : posted);
  }
  co_return first_error;
}

void OneSidedInserts::TakeInserted() {
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    Placeholder& one = placeholders_[i];
    const index::Insertion::Outcome outcome = insertions_[i].outcome;
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
    session_->paths.Count(AccessKind::kInsert, entry.table->id(), AccessPath::kOneSided);
  }
}

// The rest need not be inserted: the transaction ends with AlreadyExists, or with a conflict. If what exists is locked
// or absent, the owner is asked by a call after all, because only the owner can tell a conflict from a damaged index.
// (Nothing existed before: an insert of this node that met a record would have ended the transaction.)
coro::Task<Status> OneSidedInserts::NoteAllExisting() {
  existing_.assign(insertions_.size(), {});
  operations_.clear();
  const auto exists = [this](size_t i) { return insertions_[i].outcome == index::Insertion::Outcome::kExists; };
  for (size_t i = 0; i < existing_.size(); ++i) {
    if (!exists(i)) continue;
    existing_[i].word = insertions_[i].existing;
    operations_.push_back(rdma::Operation::Read(existing_[i].word, &existing_[i].seen, sizeof(uint64_t)));
  }
  Status status = co_await session_->channel->Post(operations_);
  for (size_t i = 0; i < existing_.size() && status.ok(); ++i) {
    if (exists(i)) status = duplicate_.Note(writes_[placeholders_[i].entry], existing_[i]);
  }
  if (absl::IsAborted(status)) {
    duplicate_.Clear();
    co_return absl::OkStatus();
  }
  co_return status;
}

}  // namespace gannet::txn
