#include "txn/peer/owner_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "txn/durable/durability.h"
#include "txn/node/index_damage.h"
#include "txn/record/record.h"
#include "txn/store/conflict.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

Status NoTable(TableId id) {
  return absl::InvalidArgumentError(absl::StrCat("prepare: no table ", id));
}

}  // namespace

// Answer to the caller, of unknown outcome; if it lives, it joins again.
Status NotAdmitted() {
  return absl::UnavailableError(
      "the caller is not known here, or its records are being repaired; join, then ask again");
}
// No caller waits for this answer, or should.
Status TooLate(const char* what) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": newer requests of this caller have been served"));
}
// The answer of unknown outcome: the caller asks again.
Status UnderWay() {
  return absl::UnavailableError("the request is being carried out; ask again");
}

OwnerService::OwnerService(const LocalNode* local, Durability* durability, Peers* peers, RepairCalls repair)
    : local_(local), durability_(durability), peers_(peers), repair_(std::move(repair)) {
  rdma::Node& node = local->node;
  using Bytes = std::span<const std::byte>;
  using Room = std::span<std::byte>;
  node.Handle(kTxnPrepare, [this](rdma::NodeId, Bytes in, Room out) { return Prepare(in, out); });
  node.Handle(kTxnFinish, [this](rdma::NodeId, Bytes in, Room) { return Finish(in); });
  node.Handle(kTxnCancel, [this](rdma::NodeId, Bytes in, Room) { return Cancel(in); });
  node.Handle(kTxnDecide, [this](rdma::NodeId, Bytes in, Room) { return Decide(in); });
  node.Handle(kTxnFinishFor, [this](rdma::NodeId, Bytes in, Room) { return FinishFor(in); });
  node.Handle(kTxnJoin, [this](rdma::NodeId caller, Bytes in, Room) { return Join(caller, in); });
  node.Handle(kTxnForwarded, [this](rdma::NodeId, Bytes in, Room out) { return Forwarded(in, out); });
  node.Handle(kTxnLog, [this](rdma::NodeId caller, Bytes in, Room) { return Log(caller, in); });
  node.Handle(kTxnLend, [this](rdma::NodeId caller, Bytes in, Room out) { return Lend(caller, in, out); });
  node.Handle(kTxnRead, [this](rdma::NodeId, Bytes in, Room out) { return Read(in, out); });
  node.Handle(kTxnReadMany, [this](rdma::NodeId, Bytes in, Room out) { return ReadMany(in, out); });
  node.Handle(kTxnScan, [this](rdma::NodeId, Bytes in, Room out) { return Scan(in, out); });
}

void OwnerService::CountBytes(TableId table, int64_t bytes) {
  local_->record_bytes.Settle(table, bytes);
}

Status OwnerService::LockedHere(rdma::GlobalAddress record) const {
  Status locked = LockedTooLong(*local_, *peers_, LoadWord(local_->Direct(record)));
  return absl::IsAborted(locked) ? ConflictAtOwner() : locked;
}

Status OwnerService::CheckItem(const PrepareItem& item) const {
  const Table* table = local_->TableById(item.table);
  if (table == nullptr) return NoTable(item.table);
  const TableOptions& options = table->options();
  if (item.key.kind() != options.key_kind || item.key.size() > options.max_key_bytes ||
      item.payload.size() > table->accepted_payload_bytes() || item.above_version > kVersionMask) {
    return absl::InvalidArgumentError(absl::StrCat("prepare: key, payload or version does not fit ", NameOf(*table)));
  }
  return absl::OkStatus();
}

StatusOr<PrepareOutcome> OwnerService::PrepareOne(index::Context& context, const PrepareItem& item, uint64_t owner_bits,
                                                  Prepared* prepared) {
  const Table* const table = local_->TableById(item.table);
  if (table == nullptr) return NoTable(item.table);
  const auto meet = [&](rdma::GlobalAddress existing) -> StatusOr<PrepareOutcome> {
    GANNET_RETURN_IF_ERROR(CheckLeadsToKey(*local_, *table, item.key, existing));
    const uint64_t state = LoadWord(local_->Direct(existing));
    // The record is locked by the worker that asks, which knows whether by the same transaction.
    if (IsLocked(state) ? (state & ~(kVersionMask | kAbsentBit)) != Locked(0, owner_bits) : IsAbsent(state)) {
      Sometimes<"owner: an insert meets a record that is locked or absent">();
      if (absl::IsAborted(LockedHere(existing))) return PrepareOutcome::kConflict;  // else the worker judges the lock
    }
    *prepared = {.record = existing, .state = state};
    return PrepareOutcome::kExists;
  };
  StatusOr<NewRecord> made =
      MakeLockedRecord(*context.slab, item.table, item.key, item.payload, owner_bits, item.above_version);
  if (!made.ok()) {
    // There is no memory, but it takes none to say that the key exists.
    const rdma::GlobalAddress existing = item.move ? rdma::GlobalAddress() : table->local_index().Find(item.key).record;
    return existing.is_null() ? StatusOr<PrepareOutcome>(made.status()) : meet(existing);
  }
  prepared->record = local_->node.AddressOf(made->block);
  prepared->state = made->state;
  if (item.move) {
    CountBytes(item.table, BlockBytesOf(item.key, item.payload.size()));
    return PrepareOutcome::kPrepared;
  }
  rdma::GlobalAddress existing;
  StatusOr<index::Change> change = table->local_index().Insert(context, item.key, prepared->record, &existing);
  if (change.ok()) {
    prepared->change = *std::move(change);
    prepared->state = RaiseLockedVersion(made->block, RecordLines(item.key, item.payload.size()), made->state,
                                         durability_->removals().Of(item.table, item.key), owner_bits);
    CountBytes(item.table, BlockBytesOf(item.key, item.payload.size()));
    return PrepareOutcome::kPrepared;
  }
  MarkAbsent(made->block, RecordLines(item.key, item.payload.size()), made->state);
  context.slab->Free(made->block, index::RecordBytes(item.key.size(), item.payload.size()));
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  return meet(existing);
}

void OwnerService::Unmake(index::Context& context, std::vector<Unmaking>* made) {
  for (const Unmaking& one : *made) {
    FinishOne(context,
              {.kind = one.kind, .table = one.table, .key = one.key.view(), .record = one.record, .state = one.state});
  }
  made->clear();
}

StatusOr<size_t> OwnerService::Prepare(std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  const Caller caller = GetCaller(reader);
  const uint16_t n = reader.GetU16();
  std::vector<PrepareItem> items(n);
  for (PrepareItem& item : items) {
    if (!Get(reader, &item)) return absl::InvalidArgumentError("prepare: malformed request");
    GANNET_RETURN_IF_ERROR(CheckItem(item));
  }
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const Peers::Stay stay(peers_, LockOwnerNode(caller.name), caller.number);
  if (!stay.admitted()) return NotAdmitted();
  RequestLedger::Claim claim(&ledger_, caller);
  if (claim.turn() != RequestLedger::Turn::kRun) {
    Sometimes<"ledger: a prepare comes when it was cancelled or done">();
    return TooLate("prepare");
  }
  return PrepareAll(items, caller.owner_bits(), &claim.made(), response);
}

StatusOr<size_t> OwnerService::PrepareAll(std::span<const PrepareItem> items, uint64_t owner_bits,
                                          std::vector<Unmaking>* made, std::span<std::byte> response) {
  index::IndexService::Guard guard(&local_->indexes);
  std::vector<Prepared> prepared(items.size());
  rdma::WireWriter writer(response);
  for (size_t i = 0; i < items.size(); ++i) {
    const StatusOr<PrepareOutcome> outcome = PrepareOne(guard.context(), items[i], owner_bits, &prepared[i]);
    if (outcome.ok() && *outcome == PrepareOutcome::kPrepared) {
      made->push_back({.kind = items[i].move ? FinishKind::kUnmake : FinishKind::kRemove,
                       .table = items[i].table,
                       .key = index::OwnedKey(items[i].key),
                       .record = prepared[i].record,
                       .state = prepared[i].state});
      if (items[i].move) moves_.Add(LockOwnerNode(owner_bits), made->back());
      continue;
    }
    if (outcome.ok() && *outcome == PrepareOutcome::kExists) {
      // What was made before stays until the caller has validated. If it were unmade and made again, the witnesses of
      // the asking transaction would change, and it could never tell an existing key from a conflict.
      writer.PutU8(static_cast<uint8_t>(PrepareOutcome::kExists));
      index::PutWitness(writer, {prepared[i].record, prepared[i].state});
      writer.PutU16(static_cast<uint16_t>(i));
      if (i > 0) Sometimes<"owner: an insert meets a committed record after others were made">();
      for (size_t done = 0; done < i; ++done) Put(writer, prepared[done], PreparedBytes(i - done));
      return writer.Finish();
    }
    if (!made->empty()) Sometimes<"owner: a prepare is undone in the middle">();
    Unmake(guard.context(), made);
    if (!outcome.ok()) return outcome.status();
    writer.PutU8(static_cast<uint8_t>(*outcome));
    return writer.Finish();
  }
  writer.PutU8(static_cast<uint8_t>(PrepareOutcome::kPrepared));
  for (size_t i = 0; i < prepared.size(); ++i) Put(writer, prepared[i], PreparedBytes(prepared.size() - i));
  return writer.Finish();
}

StatusOr<size_t> OwnerService::Cancel(std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const Caller caller = GetCaller(reader);
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const Peers::Stay stay(peers_, LockOwnerNode(caller.name), caller.number);
  if (!stay.admitted()) return NotAdmitted();
  RequestLedger::Claim claim(&ledger_, caller);
  switch (claim.turn()) {
    case RequestLedger::Turn::kBusy:
      Sometimes<"ledger: a cancel comes while its prepare runs">();
      return UnderWay();
    case RequestLedger::Turn::kDone: {
      Sometimes<"ledger: a cancel comes after its prepare">();
      index::IndexService::Guard guard(&local_->indexes);
      Unmake(guard.context(), &claim.made());
      return 0;
    }
    case RequestLedger::Turn::kRun:  // it has not come, and is refused if it comes now
      Sometimes<"ledger: a cancel comes before its prepare, or without">();
      return 0;
    case RequestLedger::Turn::kLate:
      return 0;
  }
  return 0;
}

std::byte* OwnerService::LockedRecord(rdma::GlobalAddress address, TableId table, uint64_t locked_state) const {
  if (!local_->MayHaveRecord(address)) return nullptr;
  std::byte* record = local_->Direct(address);
  if (LoadWord(record) != locked_state || index::LoadMeta(record).table != table) return nullptr;
  return record;
}

Status OwnerService::CheckItem(const FinishItem& item, uint64_t owner_bits) const {
  const Table* table = local_->TableById(item.table);
  if (table == nullptr) return absl::InvalidArgumentError(absl::StrCat("finish: no table ", item.table));
  const bool known = LockedRecord(item.record, item.table, Locked(item.state, owner_bits)) != nullptr;
  if (known && item.kind == FinishKind::kInstall) {
    return CheckImage(local_->Direct(item.record), item.image);
  }
  const bool moved_known = item.kind != FinishKind::kReplace ||
                           (LockedRecord(item.moved_to, item.table, Locked(item.moved_state, owner_bits)) != nullptr &&
                            LeadsToKeyUnlessDamaged(*local_, *table, item.key, item.moved_to));
  if (!known || !moved_known || item.key.kind() != table->options().key_kind ||
      !LeadsToKeyUnlessDamaged(*local_, *table, item.key, item.record)) {
    return absl::InvalidArgumentError(absl::StrCat("finish: ", item.record.ToString(), " is not a record of ",
                                                   NameOf(*table), " with this key that the caller locked"));
  }
  return absl::OkStatus();
}

void OwnerService::FinishOne(index::Context& context, const FinishItem& item) {
  const Table* const found = local_->TableById(item.table);
  if (found == nullptr) return FinishDropped(context, item);
  if (item.kind == FinishKind::kInstall) return Install(item);
  const Table& table = *found;
  index::LocalIndex& index = table.local_index();
  std::byte* record = local_->Direct(item.record);
  const uint32_t payload_bytes = index::LoadMeta(record).payload_bytes;
  // This comes before the record leaves the index (lent_records.h). If its client has not told of it yet, it was not
  // counted.
  const bool is_counted = !local_->lent_records.Drop(item.record);
  bool has_left = true;
  if (item.kind == FinishKind::kRemove) {
    durability_->removals().Note(item.table, item.key, VersionOf(NextState(item.state, true)));
    const Status removed =
        ChangeForSure([&] { return index.Remove(context, item.key, item.record).status(); }, repair_.release_dead);
    has_left = local_->index_damage.HasLeft(*local_, table, item.key, item.record, removed);
  } else if (item.kind == FinishKind::kReplace) {
    const Status replaced =
        ChangeForSure([&] { return index.Replace(item.key, item.record, item.moved_to); }, repair_.release_dead);
    has_left = local_->index_damage.HasLeft(*local_, table, item.key, item.record, replaced);
    moves_.Remove(item.moved_to);
    if (replaced.ok()) {
      StoreWord(local_->Direct(item.moved_to), NextState(item.moved_state, false));
    } else {
      // The row is lost: nothing leads to its new place.
      DropUnreachable(context, item);
    }
  } else {
    moves_.Remove(item.record);
  }
  MarkAbsent(record, RecordLines(item.key, payload_bytes), item.state);
  if (!has_left) return;  // nor is its block used again
  if (GANNET_MUTANT(kReuseWithoutGrace))
    context.slab->Free(record, index::RecordBytes(item.key.size(), payload_bytes));
  else
    context.epoch->Retire(record, index::RecordBytes(item.key.size(), payload_bytes), context.slab);
  if (is_counted) CountBytes(item.table, -BlockBytesOf(item.key, payload_bytes));
}

// What a node left here when it died. Records that were in the index are free; a new place was not.
void OwnerService::FinishDropped(index::Context& context, const FinishItem& item) {
  if (item.kind != FinishKind::kUnmake) return;
  moves_.Remove(item.record);
  std::byte* const record = local_->Direct(item.record);
  const uint32_t payload_bytes = index::LoadMeta(record).payload_bytes;
  MarkAbsent(record, RecordLines(item.key, payload_bytes), item.state);
  context.epoch->Retire(record, index::RecordBytes(item.key.size(), payload_bytes), context.slab);
}

void OwnerService::DropUnreachable(index::Context& context, const FinishItem& move) {
  std::byte* const record = local_->Direct(move.moved_to);
  const uint32_t payload_bytes = index::LoadMeta(record).payload_bytes;
  MarkAbsent(record, RecordLines(move.key, payload_bytes), move.moved_state);
  context.epoch->Retire(record, index::RecordBytes(move.key.size(), payload_bytes), context.slab);
  CountBytes(move.table, -BlockBytesOf(move.key, payload_bytes));
}

StatusOr<size_t> OwnerService::Finish(std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const Caller caller = GetCaller(reader);
  if (!reader.ok()) return absl::InvalidArgumentError("finish: malformed request");
  const Peers::Stay stay(peers_, LockOwnerNode(caller.name), caller.number);
  if (!stay.admitted()) return NotAdmitted();
  RequestLedger::Claim claim(&ledger_, caller);
  switch (claim.turn()) {
    case RequestLedger::Turn::kBusy:
      Sometimes<"ledger: a finish comes again while it runs">();
      return UnderWay();
    case RequestLedger::Turn::kLate:
      return TooLate("finish");
    case RequestLedger::Turn::kRun:
      claim.result() = FinishAll(reader, caller.owner_bits());
      break;
    case RequestLedger::Turn::kDone:
      Sometimes<"ledger: a finish comes again">();
      break;
  }
  if (!claim.result().ok()) return claim.result();
  return 0;
}

Status OwnerService::FinishAll(rdma::WireReader& reader, uint64_t owner_bits) {
  const uint16_t n = reader.GetU16();
  index::IndexService::Guard guard(&local_->indexes);
  for (size_t i = 0; i < n; ++i) {
    FinishItem item;
    if (!Get(reader, &item)) return absl::InvalidArgumentError("finish: malformed request");
    GANNET_RETURN_IF_ERROR(CheckItem(item, owner_bits));
    FinishOne(guard.context(), item);
  }
  return reader.Finish();
}

StatusOr<size_t> OwnerService::Lend(rdma::NodeId caller, std::span<const std::byte> request,
                                    std::span<std::byte> response) {
  rdma::WireReader reader(request);
  LendRequest asked;
  const bool valid = Get(reader, &asked);
  if (!valid || !reader.Finish().ok() || asked.bytes < kLineBytes || asked.bytes > rdma::kMaxObjectBytes) {
    return absl::InvalidArgumentError("lend: malformed request");
  }
  bool has_one = false;
  for (const Table* table : local_->tables) has_one = has_one || table->index_traits().client_writes;
  if (!has_one) {
    return absl::PermissionDeniedError(
        absl::StrCat("lend: node ", local_->id(), " has no table into which clients insert by verbs"));
  }
  const Peers::Stay stay(peers_, caller, Peers::kUnnumbered);
  if (!stay.admitted()) return NotAdmitted();
  for (const UsedBlock& used : asked.used) {
    if (local_->TableById(used.table) == nullptr) continue;
    CountBytes(used.table, local_->lent_records.TakeOut(used.block.address, caller, used.block.lent_word));
  }
  index::IndexService::Guard guard(&local_->indexes);
  rdma::WireWriter writer(response);
  PutLent(writer, local_->lent_records.Lend(guard.context(), caller, asked.bytes, asked.wanted));
  return writer.Finish();
}

// A part of a transaction that another node coordinates. That transaction has locked the records here, and keeps them
// locked until this is answered.
StatusOr<size_t> OwnerService::Log(rdma::NodeId caller, std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const uint64_t epoch = reader.GetU64();
  if (!reader.ok()) return absl::InvalidArgumentError("log: malformed request");
  const Peers::Stay stay(peers_, caller, Peers::kUnnumbered);
  if (!stay.admitted()) return NotAdmitted();
  const std::span<const std::byte> part = request.subspan(sizeof epoch);
  log::TransactionDecoder decoder(part, log::kFormatVersion);
  const StatusOr<bool> whole = decoder.Next();
  if (!whole.ok() || !*whole || decoder.epoch() != epoch || decoder.part() != log::TransactionPart::kPart) {
    return absl::InvalidArgumentError("log: not a part of a transaction of that epoch");
  }
  GANNET_RETURN_IF_ERROR(durability_->AppendForPeer(epoch, part));
  return 0;
}

}  // namespace gannet::txn
