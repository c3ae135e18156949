#include "txn/access/write_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "log/format/transaction_format.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/node/row_checks.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::PayloadDataOffset;

namespace {

bool IsWhole(const PayloadPart& part) {
  return part.offset() == GetRequest::kWhole;
}

}  // namespace

WriteBuffer::WriteBuffer(SessionState* session)
    : session_(session), most_change_bytes_(session->log->most_change_bytes()) {}

int WriteBuffer::FindInsert(const Table& table, const Key& key) const {
  if (inserts_ == 0) [[likely]]
    return -1;
  const int own = set_.FindKey(table, key);
  return own >= 0 && set_[own].kind == WriteKind::kInsert ? own : -1;
}

[[gnu::cold]] Status WriteBuffer::TooMuchRedo(size_t total) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "with this write the transaction's changes take up to ", total, " bytes of the log, which takes at most ",
      most_change_bytes_, " of one transaction: make it several, or raise DatabaseOptions::log_large_buffer_bytes"));
}

void WriteBuffer::ReadOwn(int number, GetRequest* request) {
  const WriteEntry& entry = set_[number];
  request->payload_bytes = 0;
  request->handle = {};
  if (entry.is_removed()) {
    request->status = Status(absl::StatusCode::kNotFound, "");
    return;
  }
  request->payload_bytes = entry.payload_bytes;
  if (request->for_update) request->handle = RecordHandle{static_cast<uint32_t>(number)};
  request->status = StatusWithin(*request, entry.payload_bytes);
  if (!request->status.ok()) return;
  CopyPayload(entry, OffsetOf(*request), OutWithin(*request, entry.payload_bytes));
  // The base was read again: it must be the state on which this transaction builds.
  if (entry.is_direct() && entry.kind != WriteKind::kInsert && LoadWord(entry.direct) != entry.seen) {
    Sometimes<"read: the base of an own write has changed">();
    request->status = Conflict(AbortCause::kRow);
  }
}

void WriteBuffer::CopyPayload(const WriteEntry& entry, uint32_t offset, std::span<std::byte> out) const {
  // Whatever lies below a patch of the whole range is not needed.
  const Patch* bottom = nullptr;
  for (const Patch* patch = entry.patches; patch != nullptr; patch = patch->next) {
    if (patch->offset <= offset && patch->offset + patch->size >= offset + out.size()) bottom = patch;
  }
  const uint32_t base_end = std::min<uint32_t>(offset + static_cast<uint32_t>(out.size()), entry.image_payload_bytes);
  if (bottom == nullptr && offset < base_end) {
    const std::span<std::byte> base = out.first(base_end - offset);
    if (entry.kind == WriteKind::kInsert && !entry.is_direct()) {
      std::memcpy(base.data(), entry.image + offset, base.size());
    } else {
      rdma::CopyOut(entry.is_direct() ? entry.direct : entry.image, PayloadDataOffset(entry.key.size()) + offset, base);
    }
  }
  for (const Patch* patch = bottom != nullptr ? bottom : entry.patches; patch != nullptr; patch = patch->next) {
    const uint32_t from = std::max(offset, patch->offset);
    const uint32_t to = std::min<uint32_t>(offset + static_cast<uint32_t>(out.size()), patch->offset + patch->size);
    if (from < to) std::memcpy(out.data() + (from - offset), patch->data + (from - patch->offset), to - from);
  }
}

RecordHandle WriteBuffer::AddForUpdate(const GetRequest& request, rdma::GlobalAddress record, uint64_t state,
                                       std::byte* direct, std::byte* image) {
  if (direct == nullptr) uses_verbs_ = true;
  WriteEntry& entry = set_.Add(record);
  entry.table = request.table;
  entry.seen = state;
  entry.direct = direct;
  entry.image = image;
  entry.payload_bytes = entry.image_payload_bytes = request.payload_bytes;
  entry.key = arena_.Keep(request.key);
  return RecordHandle{static_cast<uint32_t>(set_.size() - 1)};
}

Status WriteBuffer::CheckMayWrite(const Table& table) const {
  if (table.options().placement.replicated) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " is replicated and so read-only"));
  }
  if (table.secondary() != nullptr && !keeps_indexes_) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has the entries of a secondary index of ",
                                                      NameOf(table.secondary()->table()),
                                                      ", which the engine writes: change the rows of that table"));
  }
  const SecondaryIndexes* const indexes = table.secondary_indexes();
  if (indexes == nullptr) return absl::OkStatus();
  for (const SecondaryIndex* index : *indexes) {
    if (index->has_key_function()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(index->Describe(),
                     " gets its keys from a function of the program that made it: call "
                     "Database::CreateIndex with that function before the table is written"));
  }
  return absl::OkStatus();
}

size_t WriteBuffer::IndexChangeBytes(const Table& table) {
  const SecondaryIndexes* const indexes = table.secondary_indexes();
  if (indexes == nullptr) return 0;
  size_t bytes = 0;
  for (const SecondaryIndex* index : *indexes) {
    const size_t key_bytes = index->entries().options().max_key_bytes;
    // One entry is removed, and another one inserted.
    bytes += log::MaxChangeBytes(key_bytes, 0) + log::MaxChangeBytes(key_bytes, index->entries().payload_bytes());
  }
  return bytes;
}

void WriteBuffer::Touch(size_t i, size_t index_bytes) {
  WriteEntry& entry = set_[i];
  if (entry.table->secondary_indexes() == nullptr) return;
  if (index_bytes > entry.index_redo_bytes) {
    index_change_bytes_ += index_bytes - entry.index_redo_bytes;
    entry.index_redo_bytes = static_cast<uint32_t>(index_bytes);
  }
  if (std::exchange(entry.touched, true)) return;
  touched_.push_back(static_cast<uint32_t>(i));
}

Status WriteBuffer::CheckWrite(const WriteEntry& entry, size_t size, const PayloadPart& part) const {
  if (entry.is_removed()) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOfRow(*entry.table, entry.key), " was removed by this transaction before"));
  }
  if (IsWhole(part)) return CheckFits(*entry.table, size);
  GANNET_RETURN_IF_ERROR(CheckRowOf(*entry.table, part));
  if (part.offset() + size > entry.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("bytes [", part.offset(), ", ", part.offset() + size,
                                                   ") do not fit a payload of ", entry.payload_bytes, " bytes of ",
                                                   NameOf(*entry.table)));
  }
  return absl::OkStatus();
}

// Replaces a part of the payload, which keeps its size.
void WriteBuffer::AddPatch(WriteEntry& entry, std::span<const std::byte> data, uint32_t offset) {
  const auto size = static_cast<uint32_t>(data.size());
  if (size == entry.payload_bytes && !GANNET_MUTANT(kKeepStalePatches)) return ReplacePayload(entry, data);
  if (size == 0) return;
  if (entry.patch_count == kMostPatches) [[unlikely]]
    JoinPatches(entry);
  Patch* const last = entry.last_patch;
  if (last != nullptr && last->offset <= offset && offset + size <= last->offset + last->size) {
    std::memcpy(last->data + (offset - last->offset), data.data(), size);
    return;
  }
  auto* patch = reinterpret_cast<Patch*>(arena_.Allocate(sizeof(Patch)));
  *patch = {offset, size, arena_.Copy(data).data(), nullptr};
  (last == nullptr ? entry.patches : last->next) = patch;
  entry.last_patch = patch;
  ++entry.patch_count;
}

// Replaces the whole payload, with any size. Drops older patches, which might reach beyond it.
void WriteBuffer::ReplacePayload(WriteEntry& entry, std::span<const std::byte> data) {
  const auto size = static_cast<uint32_t>(data.size());
  Patch* patch = entry.patches;
  if (GANNET_MUTANT(kKeepStalePatches) && patch != nullptr) {
    AddPatch(entry, data, 0);
    entry.payload_bytes = size;
    return;
  }
  if (patch == nullptr || patch->size < size) {
    patch = reinterpret_cast<Patch*>(arena_.Allocate(sizeof(Patch)));
    patch->data = arena_.Allocate(size);
  }
  if (size > 0) std::memcpy(patch->data, data.data(), size);
  *patch = {0, size, patch->data, nullptr};
  entry.patches = entry.last_patch = patch;
  entry.patch_count = 1;
  entry.payload_bytes = size;
}

void WriteBuffer::JoinPatches(WriteEntry& entry) {
  auto* whole = reinterpret_cast<Patch*>(arena_.Allocate(sizeof(Patch)));
  *whole = {0, entry.payload_bytes, arena_.Allocate(entry.payload_bytes), nullptr};
  CopyPayload(entry, 0, {whole->data, whole->size});
  entry.patches = entry.last_patch = whole;
  entry.patch_count = 1;
}

Status WriteBuffer::Update(RecordHandle handle, std::span<const std::byte> data, const PayloadPart& part) {
  ++changes_;
  if (handle.index >= set_.size()) return absl::InvalidArgumentError("not a handle of this transaction");
  WriteEntry& entry = set_[handle.index];
  const bool checks_writes = entry.table->checks_writes();
  if (checks_writes) [[unlikely]]
    GANNET_RETURN_IF_ERROR(CheckMayWrite(*entry.table));
  GANNET_RETURN_IF_ERROR(CheckWrite(entry, data.size(), part));
  const bool whole = IsWhole(part);
  const size_t index_bytes = checks_writes ? IndexChangeBytes(*entry.table) : 0;
  GANNET_RETURN_IF_ERROR(CountChange(
      entry, log::MaxChangeBytes(entry.key.size(), whole ? data.size() : entry.payload_bytes), index_bytes));
  if (whole) {
    ReplacePayload(entry, data);
  } else {
    AddPatch(entry, data, part.offset());
  }
  if (entry.kind == WriteKind::kNone) entry.kind = WriteKind::kUpdate;
  if (checks_writes) [[unlikely]]
    Touch(handle.index, index_bytes);
  return absl::OkStatus();
}

Status WriteBuffer::Insert(const Table& table, Key key, std::span<const std::byte> payload) {
  ++changes_;
  GANNET_RETURN_IF_ERROR(CheckRow(*session_->local, table, key));
  const bool checks_writes = table.checks_writes();
  if (checks_writes) [[unlikely]]
    GANNET_RETURN_IF_ERROR(CheckMayWrite(table));
  GANNET_RETURN_IF_ERROR(CheckFits(table, payload.size()));
  const size_t redo_bytes = log::MaxChangeBytes(key.size(), payload.size());
  const size_t index_bytes = checks_writes ? IndexChangeBytes(table) : 0;
  if (const int own = inserts_ + removals_ == 0 ? -1 : set_.FindKey(table, key); own >= 0) [[unlikely]] {
    WriteEntry& entry = set_[own];
    if (!entry.is_removed()) return KeyExists(table, key);
    // The row was removed and inserted again, which is an update of the whole payload.
    GANNET_RETURN_IF_ERROR(CountChange(entry, redo_bytes, index_bytes));
    if (entry.kind == WriteKind::kRemove) entry.kind = WriteKind::kUpdate;
    entry.removed = false;
    --removals_;
    ReplacePayload(entry, payload);
    if (checks_writes) Touch(static_cast<size_t>(own), index_bytes);
    return absl::OkStatus();
  }
  uint32_t share = 0;
  GANNET_RETURN_IF_ERROR(CountChange(&share, redo_bytes, index_bytes));
  rdma::NodeId owner;
  if (session_->OwnedHere(table, key, &owner)) {
    Status made = InsertDirect(table, key, payload);
    if (checks_writes && made.ok()) [[unlikely]]
      Touch(set_.size() - 1, index_bytes);
    return made;
  }
  uses_verbs_ = true;
  ++inserts_;
  WriteEntry& entry = set_.Add({});
  entry.table = &table;
  entry.image = arena_.Copy(payload).data();
  entry.payload_bytes = entry.image_payload_bytes = static_cast<uint32_t>(payload.size());
  entry.kind = WriteKind::kInsert;
  entry.redo_bytes = share;
  entry.key = arena_.Keep(key);
  set_.NoteKey(set_.size() - 1);
  if (checks_writes) Touch(set_.size() - 1, index_bytes);
  return absl::OkStatus();
}

Status WriteBuffer::InsertDirect(const Table& table, const Key& key, std::span<const std::byte> payload) {
  StatusOr<NewRecord> made = MakeLockedRecord(*session_->slab, table.id(), key, payload, session_->owner_bits);
  const size_t redo_bytes = log::MaxChangeBytes(key.size(), payload.size());
  if (!made.ok()) {
    change_bytes_ -= redo_bytes;
    return made.status();
  }
  ++inserts_;
  WriteEntry& entry = set_.Add(session_->local->node.AddressOf(made->block));
  entry.table = &table;
  entry.seen = made->state;
  entry.direct = made->block;
  entry.payload_bytes = entry.image_payload_bytes = static_cast<uint32_t>(payload.size());
  entry.kind = WriteKind::kInsert;
  entry.locked = true;
  entry.redo_bytes = static_cast<uint32_t>(redo_bytes);
  entry.key = arena_.Keep(key);
  set_.NoteKey(set_.size() - 1);
  return absl::OkStatus();
}

Status WriteBuffer::Remove(RecordHandle handle) {
  ++changes_;
  if (handle.index >= set_.size()) return absl::InvalidArgumentError("not a handle of this transaction");
  WriteEntry& entry = set_[handle.index];
  const bool checks_writes = entry.table->checks_writes();
  if (checks_writes) [[unlikely]]
    GANNET_RETURN_IF_ERROR(CheckMayWrite(*entry.table));
  if (entry.is_removed()) return KeyNotFound(*entry.table, entry.key);
  const bool inserted = entry.kind == WriteKind::kInsert;
  // An own insert's entries, if it has some yet, are own inserts, too.
  const size_t index_bytes = checks_writes && !inserted ? IndexChangeBytes(*entry.table) : 0;
  GANNET_RETURN_IF_ERROR(CountChange(entry, inserted ? 0 : log::MaxChangeBytes(entry.key.size(), 0), index_bytes));
  ++removals_;
  if (inserted) {
    entry.removed = true;
  } else {
    entry.kind = WriteKind::kRemove;
    set_.NoteKey(handle.index);
  }
  if (checks_writes) [[unlikely]]
    Touch(handle.index, index_bytes);
  return absl::OkStatus();
}

}  // namespace gannet::txn
