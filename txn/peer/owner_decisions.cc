// The owner's part of repair.h: the decisions that are noted here, and the release of what dead nodes left.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/claim_boards.h"
#include "rdma/versioned.h"
#include "txn/node/index_damage.h"
#include "txn/peer/owner_service.h"
#include "txn/record/record.h"

namespace gannet::txn {
namespace {

uint64_t WordOf(std::span<const std::byte> image, size_t at) {
  uint64_t word;
  std::memcpy(&word, image.data() + at, sizeof word);
  return word;
}

// True if all lines are from one write. (Otherwise the writer died in between, together with all that could tell what
// it wrote.)
bool IsWhole(const std::byte* record, size_t lines, uint64_t state) {
  const uint64_t version = IsAbsent(state) ? NextState(state, false) : VersionOf(state);
  for (size_t i = 1; i < lines; ++i) {
    if (VersionOf(LoadWord(record + i * kLineBytes)) != VersionOf(version)) return false;
  }
  return true;
}

}  // namespace

Status OwnerService::CheckImage(const std::byte* record, std::span<const std::byte> image) const {
  if (image.empty()) return absl::OkStatus();
  const index::RecordMeta there = index::LoadMeta(record);
  if (image.size() % kLineBytes == 0) {
    const auto meta = index::RecordMeta::Unpack(WordOf(image, rdma::PlaceOf(index::kMetaDataOffset)));
    const size_t bytes = index::RecordBytes(meta.key_bytes, meta.payload_bytes);
    const size_t block = rdma::SlabAllocator::BlockBytes(index::RecordBytes(there.key_bytes, there.payload_bytes));
    if (meta.key_bytes == there.key_bytes && meta.table == there.table && bytes == image.size() && bytes <= block) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("finish: an image of ", image.size(), " bytes is not of its record"));
}

void OwnerService::Install(const FinishItem& item) {
  std::byte* record = local_->Direct(item.record);
  if (item.image.empty()) return StoreWord(record, NextState(item.state, false));
  const size_t lines = item.image.size() / kLineBytes;
  rdma::BeginWrite(record, lines);
  for (size_t at = 0; at < item.image.size(); at += kWordBytes) {
    if (at % kLineBytes != 0) StoreWord(record + at, WordOf(item.image, at));
  }
  Charge(Cost::kRecordLine, lines);
  rdma::EndWrite(record, lines, NextState(item.state, false));
}

Status OwnerService::FinishWork(std::span<const std::byte> work) {
  std::lock_guard lock(work_mutex_);
  index::IndexService::Guard guard(&local_->indexes);
  for (const bool apply : {false, true}) {  // checks all of it before it does any of it
    rdma::WireReader reader(work);
    const uint64_t owner_bits = reader.GetU64();
    const uint16_t n = reader.GetU16();
    for (size_t i = 0; i < n; ++i) {
      FinishItem item;
      if (!Get(reader, &item)) return absl::InvalidArgumentError("finish: malformed request");
      if (LockedRecord(item.record, item.table, Locked(item.state, owner_bits)) == nullptr) {
        Sometimes<"owner: a decided change was made already">();
        continue;
      }
      if (apply) {
        FinishOne(guard.context(), item);
      } else {
        GANNET_RETURN_IF_ERROR(CheckItem(item, owner_bits));
      }
    }
    GANNET_RETURN_IF_ERROR(reader.Finish());
  }
  return absl::OkStatus();
}

Status OwnerService::NoteDecision(rdma::WireReader& reader, uint8_t flags, RequestLedger::Entry* entry) const {
  if ((flags & kFirstOfDecision) != 0) {
    entry->decided.clear();
    entry->all_decided = false;
  }
  const uint16_t n = reader.GetU16();
  for (size_t i = 0; i < n; ++i) {
    const rdma::NodeId node = reader.GetU16();
    const std::span<const std::byte> work = reader.GetBytes();
    if (!reader.ok()) return absl::InvalidArgumentError("decide: malformed request");
    entry->decided.push_back({node, {work.begin(), work.end()}});
  }
  return reader.Finish();
}

// Parts noted before the last one have no effect. With the last part the transaction is decided, and its records here
// are finished, unless this node only notes the decision.
StatusOr<size_t> OwnerService::Decide(std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const Caller caller = GetCaller(reader);
  const uint8_t flags = reader.GetU8();
  if (!reader.ok()) return absl::InvalidArgumentError("decide: malformed request");
  const Peers::Stay stay(peers_, LockOwnerNode(caller.name), caller.number);
  if (!stay.admitted()) return NotAdmitted();
  RequestLedger::Claim claim(&ledger_, caller);
  if (claim.turn() == RequestLedger::Turn::kBusy) {
    Sometimes<"ledger: a decision comes again while it is noted">();
    return UnderWay();
  }
  if (claim.turn() == RequestLedger::Turn::kLate) return TooLate("decide");
  if (claim.turn() == RequestLedger::Turn::kDone) Sometimes<"ledger: a decision comes again">();
  if (claim.turn() == RequestLedger::Turn::kRun) {
    RequestLedger::Entry& entry = claim.entry();
    claim.result() = NoteDecision(reader, flags, &entry);
    if (claim.result().ok() && (flags & kLastOfDecision) != 0) {
      entry.all_decided = true;
      for (const DecidedWork& work : entry.decided) {
        if ((flags & kDecisionIsNoted) != 0) break;
        if (work.node == local_->node.id() && claim.result().ok()) claim.result() = FinishWork(work.message);
      }
    }
  }
  if (!claim.result().ok()) return claim.result();
  return 0;
}

// A call that was in flight for long may arrive after everything has been done, when another incarnation may hold
// locks. It must not touch those.
StatusOr<size_t> OwnerService::FinishFor(std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const rdma::NodeId node = reader.GetU16();
  const uint64_t incarnation = reader.GetU64();
  const std::span<const std::byte> work = reader.GetBytes();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const Peers::Verdict verdict = peers_->Fence(node, incarnation);
  if (verdict == Peers::Verdict::kUnknown) return 0;
  repair_.wake();
  if (verdict == Peers::Verdict::kNotYet) {
    Sometimes<"owner: a dead node's decision comes while that node may still write">();
    return absl::UnavailableError(absl::StrCat("node ", node, " may still write here; ask again"));
  }
  // Its own requests may ask for the same work, and may wait for a lock.
  if (!peers_->IsQuiet(node)) {
    return absl::UnavailableError(absl::StrCat("requests of node ", node, " are in progress here; ask again"));
  }
  GANNET_RETURN_IF_ERROR(FinishWork(work));
  return 0;
}

StatusOr<size_t> OwnerService::Join(rdma::NodeId caller, std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const uint64_t incarnation = reader.GetU64();
  const uint64_t first_request = reader.GetU64();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const Status joined = first_request == 0
                            ? peers_->Announce(caller, incarnation)
                            : peers_->Join(caller, incarnation, first_request, local_->node.ConnectionTo(caller));
  if (absl::IsUnavailable(joined)) repair_.wake();
  GANNET_RETURN_IF_ERROR(joined);
  return 0;
}

StatusOr<size_t> OwnerService::Forwarded(std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  const rdma::NodeId node = reader.GetU16();
  const uint64_t incarnation = reader.GetU64();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const bool forwarded = peers_->IsForwarded(node, incarnation);
  if (!forwarded) repair_.wake();
  rdma::WireWriter writer(response);
  writer.PutU8(forwarded ? 1 : 0);
  return writer.Finish();
}

void OwnerService::ReleaseRecord(index::Context& context, const Table& table, rdma::GlobalAddress address,
                                 rdma::NodeId node) {
  if (table.index_traits().client_writes && !IsRecordOf(*local_, table, address)) {
    return local_->index_damage.NoteStray(table, address);
  }
  std::byte* record = local_->Direct(address);
  const uint64_t state = LoadWord(record);
  if (!IsLocked(state) || rdma::IsLineBusy(state) || LockOwnerNode(state) != node) return;
  const index::RecordMeta meta = index::LoadMeta(record);
  const uint64_t before = state & (kVersionMask | kAbsentBit);
  if (IsAbsent(state)) {
    Sometimes<"repair: a placeholder of a dead node is taken out">();
    const index::OwnedKey key = index::LoadKey(record, table.options().key_kind);
    // The dead node may have written any length there.
    if (key.view().size() > table.options().max_key_bytes) return local_->index_damage.NoteStray(table, address);
    FinishOne(
        context,
        {.kind = FinishKind::kRemove, .table = table.id(), .key = key.view(), .record = address, .state = before});
    return;
  }
  const size_t lines = rdma::LinesFor(index::PayloadDataOffset(meta.key_bytes) + meta.payload_bytes);
  if (!IsWhole(record, lines, state)) {
    SometimesInTests<"repair: a record that a dead node half wrote stays locked">();
    return;
  }
  Sometimes<"repair: a record that a dead node locked is unlocked">();
  StoreWord(record, before);
}

void OwnerService::ReleaseIndexesOf(rdma::NodeId node) {
  const std::lock_guard one(release_mutex_);
  for (const Table* table : local_->tables) {
    const index::IndexService::Guard guard(&local_->indexes);
    if (!local_->tables.WasRemoved(table->id())) table->local_index().RepairAfter(node);
  }
}

Status OwnerService::EndClaimsOf(rdma::NodeId node) {
  for (const Table* table : local_->tables) {
    const index::IndexService::Guard guard(&local_->indexes);
    if (local_->tables.WasRemoved(table->id())) continue;
    GANNET_RETURN_IF_ERROR(table->local_index().EndClaimsOf(node));
  }
  local_->indexes.boards().Forget(node);
  return absl::OkStatus();
}

bool OwnerService::ReleaseAllOf(rdma::NodeId node, const std::function<bool()>& stop) {
  // The indexes are released again, because a request of the node that was in progress then may have borrowed blocks
  // since.
  ReleaseIndexesOf(node);
  std::vector<rdma::GlobalAddress> addresses;
  std::vector<std::pair<rdma::GlobalAddress, TableId>> lent;  // and found in an index
  for (Table* table : local_->tables) {
    if (table->options().placement.replicated) continue;
    index::WalkPosition position;
    for (bool more = true; more;) {
      if (stop()) return false;
      addresses.clear();
      index::IndexService::Guard guard(&local_->indexes);
      if (local_->tables.WasRemoved(table->id())) break;
      more = table->local_index().Walk(&position, &addresses);
      for (const rdma::GlobalAddress address : addresses) {
        ReleaseRecord(guard.context(), *table, address, node);
        if (local_->lent_records.MayHave(address)) lent.emplace_back(address, table->id());
      }
    }
  }
  index::IndexService::Guard guard(&local_->indexes);
  for (const Unmaking& one : moves_.Of(node)) {
    Sometimes<"repair: a block that a dead node meant to move to is given back">();
    FinishOne(guard.context(),
              {.kind = one.kind, .table = one.table, .key = one.key.view(), .record = one.record, .state = one.state});
  }
  for (const auto& [address, table] : lent) CountBytes(table, local_->lent_records.TakeOut(address, node, 0));
  local_->lent_records.Sweep(guard.context(), node);
  ledger_.CloseAllOf(node);
  return true;
}

}  // namespace gannet::txn
