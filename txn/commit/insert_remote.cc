// Inserts at other nodes by verbs, into tables whose indexes clients may change (IndexTraits::client_writes). It takes
// the place of the kTxnPrepare call, and needs no CPU of the owner:
//
//   before the lock   Each insert gets a block that the owner has lent (session/record_stock.h).
//   lock              The posting of the locks also WRITEs the placeholders: whole records, locked and absent. Nothing
//                     leads to them.
//   index             RemoteIndex::InsertMany, for all indexes at once: keys of one leaf share a lock and a posting.
//
// From then on the placeholder is like one that the owner has made. Installs, decisions, the release of an abort and
// the repair after a death do not differ.
//
// Why the record is there before the index leads to it: its WRITE has completed before the leaf is locked.
//
// What fails. If the lock's posting fails, nothing leads to the blocks, so they are used again, with higher versions.
// An insert that InsertMany refuses, because its leaf is full or contended, goes on by the call. An insert whose
// outcome is unknown is one whose connection has ended: the owner counts this node as dead, and removes the placeholder
// if it is in the index (ReleaseAllOf), or takes the block back (LentRecords).
//
// With a log, inserts are calls: an insert has to look at the versions of removed records at the owner after its key
// has entered the index (durable/removal_versions.h).
#include <algorithm>
#include <array>
#include <cstring>

#include "base/sometimes.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"
#include "txn/commit/commit.h"
#include "txn/commit/commit_internal.h"
#include "txn/owner/wire.h"
#include "txn/record/record.h"
#include "txn/session/record_stock.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {
namespace {

constexpr size_t kLentAtOnce = 32;
constexpr size_t kMostLentBytes = 256 * 1024;

}  // namespace

bool Commit::InsertsByVerbs(const WriteEntry& entry) const {
  if (entry.is_direct() || entry.kind != WriteKind::kInsert || entry.removed || entry.connection == 0) return false;
  const index::IndexTraits& traits = entry.table->index_traits();
  if (!traits.client_writes) return false;
  return session_->paths.PathOfInsert(traits, session_->epochs->LoadOf(OwnerOf(entry))) == AccessPath::kOneSided;
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

// Without a block, an insert is made by a call.
coro::Task<void> Commit::MakePlaceholders() {
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (!InsertsByVerbs(writes_[i])) continue;
    const WriteEntry& entry = writes_[i];
    const rdma::NodeId owner = OwnerOf(entry);
    const size_t bytes = index::RecordBytes(entry.key.size(), entry.payload_bytes);
    LentBlock block;
    if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) {
      const Status borrowed = co_await Borrow(owner, entry.connection, bytes);
      if (!borrowed.ok()) Sometimes<"commit: no block can be borrowed for an insert">();
      if (!session_->local->record_stock.Take(owner, entry.connection, bytes, &block)) continue;
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
}

void Commit::AppendPlaceholders() {
  for (const Placeholder& one : scratch_.placeholders) {
    scratch_.operations.push_back(
        rdma::Operation::Write(one.image.data(), one.block.address, static_cast<uint32_t>(one.image.size())));
    scratch_.operations.back().connection = writes_[one.entry].connection;
  }
}

// Those that did not come into an index may be used again. Lines of the block may have the version that this record was
// to get.
void Commit::GiveBackPlaceholders() {
  for (Placeholder& one : scratch_.placeholders) {
    if (one.is_given) continue;
    const WriteEntry& entry = writes_[one.entry];
    one.block.word = VersionOf(NextState(one.state, false)) | kAbsentBit;
    session_->local->record_stock.Add(OwnerOf(entry), entry.connection,
                                      index::RecordBytes(entry.key.size(), entry.payload_bytes),
                                      std::span(&one.block, 1));
  }
  scratch_.placeholders.clear();
}

coro::Task<Status> Commit::IndexPlaceholders() {
  std::vector<Placeholder>& all = scratch_.placeholders;
  // One InsertMany for each index.
  const auto index_of = [this](const Placeholder& one) {
    return std::pair(writes_[one.entry].table->id(), OwnerOf(writes_[one.entry]));
  };
  std::ranges::stable_sort(all, {}, index_of);
  std::vector<index::Insertion>& insertions = scratch_.insertions;
  insertions.clear();
  insertions.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    insertions[i].key = writes_[all[i].entry].key;
    insertions[i].record = all[i].block.address;
  }
  std::vector<coro::Started<Status>>& started = scratch_.inserted;
  Status first_error;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && index_of(all[end]) == index_of(all[begin])) ++end;
    const WriteEntry& entry = writes_[all[begin].entry];
    const StatusOr<index::RemoteIndex*> index = session_->RemoteIndexOf(*entry.table, OwnerOf(entry));
    if (index.ok()) {
      started.emplace_back((*index)->InsertMany(std::span(insertions).subspan(begin, end - begin), entry.connection));
    } else if (first_error.ok()) {
      first_error = index.status();
    }
    begin = end;
  }
  for (coro::Started<Status>& task : started) {
    Status done = co_await task;
    if (first_error.ok()) first_error = std::move(done);
  }
  started.clear();
  std::vector<ReadEntry>& existing = scratch_.existing;
  existing.assign(all.size(), {});
  scratch_.operations.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    Placeholder& one = all[i];
    WriteEntry& entry = writes_[one.entry];
    switch (insertions[i].outcome) {
      case index::Insertion::Outcome::kDone: {
        const UsedBlock used{.table = entry.table->id(), .block = one.block};
        session_->local->record_stock.NoteUsed(one.block.address.node(), entry.connection, std::span(&used, 1));
        writes_.SetRecord(one.entry, one.block.address);
        entry.seen = one.state;
        entry.locked = entry.indexed = true;
        one.is_given = true;
        CountChange(AccessKind::kInsert, entry, AccessPath::kOneSided);
        reads_.Carry(insertions[i].change);
        break;
      }
      case index::Insertion::Outcome::kExists:
        existing[i].word = insertions[i].existing;
        scratch_.operations.push_back(
            rdma::Operation::Read(insertions[i].existing, &existing[i].seen, sizeof(uint64_t)));
        break;
      case index::Insertion::Outcome::kRefused:
        Sometimes<"commit: an insert by verbs is left to the owner">();
        break;
      case index::Insertion::Outcome::kUnknown:
        one.is_given = true;
        break;
    }
  }
  GANNET_CO_RETURN_IF_ERROR(first_error);
  if (scratch_.operations.empty()) co_return absl::OkStatus();
  Status read = co_await session_->channel->Post(scratch_.operations);
  for (size_t i = 0; i < all.size() && read.ok(); ++i) {
    if (insertions[i].outcome == index::Insertion::Outcome::kExists) {
      read = NoteExisting(writes_[all[i].entry], existing[i]);
    }
  }
  co_return read;
}

}  // namespace gannet::txn
