#include "txn/session/transaction_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/record/record.h"

namespace gannet::txn {

using index::PayloadDataOffset;

namespace {

// Reads whose memory is kept for the next transaction.
constexpr size_t kMostKeptReads = 64 * 1024;

}  // namespace

TransactionImpl::TransactionImpl(SessionState* session)
    : session_(session),
      log_(session->log.get()),
      precedence_(session->db->precedence.get()),
      participant_(session->participant.get()),
      context_{session->slab.get(), participant_},
      most_redo_(log_->most_change_bytes()) {
  reads_.reserve(512);
  witnesses_.reserve(64);
}

void TransactionImpl::Begin(PrecedenceClaim* claim) {
  GANNET_CHECK(!active_, "a transaction began twice");
  claim_ = claim;
  entered_ = participant_->Enter();
  Charge(Cost::kTransaction);
  active_ = true;
}

void TransactionImpl::Restart() {
  End();
  Begin(claim_);
}

void TransactionImpl::End() {
  if (!active_) return;
  for (WriteEntry& entry : writes_.entries()) ReleaseDirect(entry);
  reads_.clear();
  witnesses_.clear();
  if (!witness_of_.empty()) [[unlikely]]
    witness_of_.clear();
  if (reads_.capacity() > kMostKeptReads) [[unlikely]]
    reads_ = {};
  if (witnesses_.capacity() > kMostKeptReads) [[unlikely]]
    witnesses_ = {};
  writes_.Clear();
  buffered_redo_ = 0;
  arena_.Reset();
  if (touched_remote_) {
    asks_for_locks_ = false;
    ticket_ = nullptr;
  }
  touched_remote_ = false;
  exists_ = kNone;
  inserts_ = removals_ = 0;
  epoch_ = 0;
  logged_ = false;
  active_ = false;
  failure_ = absl::OkStatus();
  participant_->Leave(entered_);
}

[[gnu::cold]] Status TransactionImpl::Failed(Status status) {
  if (failure_.ok() && !absl::IsInvalidArgument(status) && !GANNET_MUTANT(kForgetFailure)) failure_ = status;
  return status;
}

[[gnu::cold]] Status TransactionImpl::Failed(Status status, std::span<GetRequest> requests) {
  for (GetRequest& request : requests) request.status = status;
  return Failed(std::move(status));
}

Status TransactionImpl::CheckKey(const Table& table, const Key& key) const {
  const TableOptions& options = table.options();
  if (key.kind() != options.key_kind) [[unlikely]] {
    return absl::InvalidArgumentError(absl::StrCat("table ", options.name, " has ",
                                                   options.key_kind == index::KeyKind::kInteger ? "integer" : "byte",
                                                   " keys; give it a key of that kind"));
  }
  if (key.size() > options.max_key_bytes) [[unlikely]] {
    return absl::InvalidArgumentError(absl::StrCat("a key of ", key.size(), " bytes is too long for table ",
                                                   options.name, ": at most ", options.max_key_bytes));
  }
  return absl::OkStatus();
}

Status TransactionImpl::LockedTooLong(uint64_t state) const {
  if (IsLocked(state) && !rdma::IsLineBusy(state) && !session_->db->fabric->Alive(LockOwnerNode(state))) {
    Sometimes<"txn: a record is locked by a worker that is gone">();
    return absl::UnavailableError(absl::StrCat("a record is locked by worker ", LockOwnerChannel(state), " of node ",
                                               LockOwnerNode(state),
                                               ", which is gone; what it left is being repaired, try again"));
  }
  return Status(absl::StatusCode::kAborted, "");
}

WriteEntry* TransactionImpl::FindOwnInsert(const Table& table, const Key& key) {
  if (inserts_ == 0) [[likely]]
    return nullptr;
  const int own = writes_.FindKey(table, key);
  return own >= 0 && writes_[own].kind == WriteKind::kInsert ? &writes_[own] : nullptr;
}

[[gnu::cold]] Status TransactionImpl::TooMuchRedo(size_t total) {
  return Failed(absl::ResourceExhaustedError(absl::StrCat(
      "the transaction's changes take up to ", total, " bytes of the log, which takes at most ", most_redo_,
      " of one transaction: make it several, or raise DatabaseOptions::log_large_buffer_bytes")));
}

void TransactionImpl::ReadMissing(GetRequest* request, const index::Witness& witness) {
  if (WriteEntry* own = FindOwnInsert(*request->table, request->key); own != nullptr) {
    ReadOwn(*own, static_cast<uint32_t>(own - writes_.entries().data()), request);
    return;
  }
  witnesses_.push_back({witness.word, witness.seen});
  request->payload_bytes = 0;
  request->handle = {};
  request->status = Status(absl::StatusCode::kNotFound, "");
}

Status TransactionImpl::Served(GetRequest* request) {
  if (request->status.ok()) [[likely]]
    return absl::OkStatus();
  if (absl::IsAborted(request->status)) return request->status;
  if (absl::IsNotFound(request->status)) request->status = KeyNotFound(*request->table, request->key);
  return absl::OkStatus();
}

void TransactionImpl::ReadOwn(WriteEntry& entry, uint32_t index, GetRequest* request) {
  request->payload_bytes = 0;
  request->handle = {};
  if (IsRemoved(entry)) {
    request->status = Status(absl::StatusCode::kNotFound, "");
    return;
  }
  request->payload_bytes = entry.payload_bytes;
  if (request->for_update) request->handle = RecordHandle{index};
  if (request->offset + request->out.size() > entry.payload_bytes) {
    request->status =
        PayloadEndsBefore(*request->table, request->key, request->offset, request->out.size(), entry.payload_bytes);
    return;
  }
  CopyOwnPayload(entry, request->offset, request->out);
  request->status = absl::OkStatus();
  // The base was read again; it must be the state that this transaction builds on.
  if (entry.is_direct() && entry.kind != WriteKind::kInsert && LoadWord(entry.direct) != entry.seen) {
    Sometimes<"read: the base of an own write has changed">();
    request->status = Status(absl::StatusCode::kAborted, "");
  }
}

void TransactionImpl::CopyOwnPayload(const WriteEntry& entry, uint32_t offset, std::span<std::byte> out) {
  // What lies below a patch over all of it need not be looked at.
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

RecordHandle TransactionImpl::AddForUpdate(const GetRequest& request, rdma::GlobalAddress record, uint64_t state,
                                           std::byte* direct, std::byte* image) {
  if (direct == nullptr) touched_remote_ = true;
  WriteEntry& entry = writes_.Add(record);
  entry.table = request.table;
  entry.seen = state;
  entry.direct = direct;
  entry.image = image;
  entry.payload_bytes = entry.image_payload_bytes = request.payload_bytes;
  entry.key = arena_.Keep(request.key);
  return RecordHandle{static_cast<uint32_t>(writes_.size() - 1)};
}

Status TransactionImpl::CheckWrite(const WriteEntry& entry, size_t size, uint32_t offset, bool resize) const {
  const TableOptions& options = entry.table->options();
  if (options.placement.replicated) {
    return absl::FailedPreconditionError(absl::StrCat("table ", options.name, " is replicated and so read-only"));
  }
  if (IsRemoved(entry)) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOfRow(*entry.table, entry.key), " was removed by this transaction before"));
  }
  if (resize && (!options.variable_length || offset != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("only a whole record (offset 0) of a variable-length table can be resized; table ", options.name));
  }
  const size_t limit = resize ? options.payload_bytes : entry.payload_bytes;
  if (offset + size > limit) {
    return absl::InvalidArgumentError(absl::StrCat("bytes [", offset, ", ", offset + size, ") do not fit a payload of ",
                                                   limit, " bytes of table ", options.name));
  }
  return absl::OkStatus();
}

// A part of the payload, which keeps its size.
void TransactionImpl::AddPatch(WriteEntry& entry, std::span<const std::byte> data, uint32_t offset) {
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

// The whole payload, of any size. Older patches are dead: they might reach beyond it.
void TransactionImpl::ReplacePayload(WriteEntry& entry, std::span<const std::byte> data) {
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

void TransactionImpl::JoinPatches(WriteEntry& entry) {
  auto* whole = reinterpret_cast<Patch*>(arena_.Allocate(sizeof(Patch)));
  *whole = {0, entry.payload_bytes, arena_.Allocate(entry.payload_bytes), nullptr};
  CopyOwnPayload(entry, 0, {whole->data, whole->size});
  entry.patches = entry.last_patch = whole;
  entry.patch_count = 1;
}

Status TransactionImpl::Update(RecordHandle handle, std::span<const std::byte> data, uint32_t offset, bool resize) {
  if (handle.index >= writes_.size()) return absl::InvalidArgumentError("not a handle of this transaction");
  WriteEntry& entry = writes_[handle.index];
  GANNET_RETURN_IF_ERROR(CheckWrite(entry, data.size(), offset, resize));
  GANNET_RETURN_IF_ERROR(
      BufferRedo(&entry.redo_bytes, log::MaxChangeBytes(entry.key.size(), resize ? data.size() : entry.payload_bytes)));
  if (resize) {
    ReplacePayload(entry, data);
  } else {
    AddPatch(entry, data, offset);
  }
  if (entry.kind == WriteKind::kNone) entry.kind = WriteKind::kUpdate;
  return absl::OkStatus();
}

Status TransactionImpl::Insert(const Table& table, Key key, std::span<const std::byte> payload) {
  GANNET_RETURN_IF_ERROR(CheckKey(table, key));
  const TableOptions& options = table.options();
  if (options.placement.replicated) {
    return absl::FailedPreconditionError(absl::StrCat("table ", options.name, " is replicated and so read-only"));
  }
  if (options.variable_length ? payload.size() > options.payload_bytes : payload.size() != options.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a payload of ", payload.size(), " bytes does not fit table ",
                                                   options.name, options.variable_length ? ", at most " : ", exactly ",
                                                   options.payload_bytes));
  }
  const size_t redo_bytes = log::MaxChangeBytes(key.size(), payload.size());
  if (const int own = inserts_ + removals_ == 0 ? -1 : writes_.FindKey(table, key); own >= 0) [[unlikely]] {
    WriteEntry& entry = writes_[own];
    if (!IsRemoved(entry)) return KeyExists(table, key);
    // Removed and inserted again: an update of the whole payload.
    GANNET_RETURN_IF_ERROR(BufferRedo(&entry.redo_bytes, redo_bytes));
    if (entry.kind == WriteKind::kRemove) entry.kind = WriteKind::kUpdate;
    entry.removed = false;
    --removals_;
    ReplacePayload(entry, payload);
    return absl::OkStatus();
  }
  uint32_t share = 0;
  GANNET_RETURN_IF_ERROR(BufferRedo(&share, redo_bytes));
  rdma::NodeId owner;
  if (session_->OwnedHere(table, key, &owner)) return InsertDirect(table, key, payload);
  touched_remote_ = true;
  ++inserts_;
  WriteEntry& entry = writes_.Add({});
  entry.table = &table;
  entry.image = arena_.Copy(payload).data();
  entry.payload_bytes = entry.image_payload_bytes = static_cast<uint32_t>(payload.size());
  entry.kind = WriteKind::kInsert;
  entry.redo_bytes = share;
  entry.key = arena_.Keep(key);
  writes_.NoteKey(writes_.size() - 1);
  return absl::OkStatus();
}

Status TransactionImpl::InsertDirect(const Table& table, const Key& key, std::span<const std::byte> payload) {
  StatusOr<NewRecord> made = MakeLockedRecord(*session_->slab, table.id(), key, payload, session_->owner_bits);
  const size_t redo_bytes = log::MaxChangeBytes(key.size(), payload.size());
  if (!made.ok()) {
    buffered_redo_ -= redo_bytes;
    return made.status();
  }
  ++inserts_;
  WriteEntry& entry = writes_.Add(session_->db->node->AddressOf(made->block));
  entry.table = &table;
  entry.seen = made->state;
  entry.direct = made->block;
  entry.payload_bytes = entry.image_payload_bytes = static_cast<uint32_t>(payload.size());
  entry.kind = WriteKind::kInsert;
  entry.locked = true;
  entry.redo_bytes = static_cast<uint32_t>(redo_bytes);
  entry.key = arena_.Keep(key);
  writes_.NoteKey(writes_.size() - 1);
  return absl::OkStatus();
}

Status TransactionImpl::Remove(RecordHandle handle) {
  if (handle.index >= writes_.size()) return absl::InvalidArgumentError("not a handle of this transaction");
  WriteEntry& entry = writes_[handle.index];
  if (entry.table->options().placement.replicated) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", entry.table->name(), " is replicated and so read-only"));
  }
  if (IsRemoved(entry)) return KeyNotFound(*entry.table, entry.key);
  const bool inserted = entry.kind == WriteKind::kInsert;
  GANNET_RETURN_IF_ERROR(BufferRedo(&entry.redo_bytes, inserted ? 0 : log::MaxChangeBytes(entry.key.size(), 0)));
  ++removals_;
  if (inserted) {
    entry.removed = true;
  } else {
    entry.kind = WriteKind::kRemove;
    writes_.NoteKey(handle.index);
  }
  return absl::OkStatus();
}

}  // namespace gannet::txn
