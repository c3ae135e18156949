#include "txn/commit/redo.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/durable/redo_key.h"
#include "txn/peer/owner_calls.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/store/conflict.h"

namespace gannet::txn {

using index::PayloadDataOffset;

namespace {

constexpr uint64_t kLookForRoomEveryNanos = 20'000;
// For smaller payloads it costs less to copy the whole record than to find out which parts of it are overwritten.
constexpr size_t kSmallPayload = 256;
constexpr size_t kMaxPartBytes = rdma::kMaxMessageBytes - log::kTransactionOverheadBytes;
static_assert(rdma::kMaxMessageBytes <= log::kLargestPartBytes);

bool IsLogged(const WriteEntry& entry) {
  return entry.kind != WriteKind::kNone && !(entry.kind == WriteKind::kInsert && entry.removed);
}

size_t RedoBytesOf(const WriteEntry& entry) {
  return log::MaxChangeBytes(entry.key.size(), entry.kind == WriteKind::kRemove ? 0 : entry.payload_bytes);
}

uint64_t InstalledVersion(const WriteEntry& entry) {
  return VersionOf(NextState(entry.moved_to.is_null() ? entry.seen : entry.moved_state, false));
}

}  // namespace

// Nearly every change is of this kind: a small record of this node, of unchanged size, with an integer key. False if
// this change is not.
[[gnu::always_inline]] inline bool Redo::AddSmallRedo(log::TransactionEncoder* encoder, const WriteEntry& entry) {
  const size_t payload_bytes = entry.payload_bytes;
  if (entry.kind == WriteKind::kRemove || entry.key.kind() != index::KeyKind::kInteger || !entry.is_direct() ||
      entry.image_payload_bytes != payload_bytes || payload_bytes > kSmallPayload)
    return false;
  std::byte* const payload = encoder->Add(log::ChangeKind::kPut, entry.table->id(), InstalledVersion(entry),
                                          entry.key.integer(), payload_bytes);
  static_assert(log::kPayloadSlackBytes >= rdma::kLineDataBytes);
  rdma::CopyOutHeld<PayloadDataOffset(index::kIntegerKeyBytes)>(entry.direct, payload, payload_bytes);
  for (const Patch* patch = entry.patches; patch != nullptr; patch = patch->next)
    std::memcpy(payload + patch->offset, patch->data, patch->size);
  return true;
}

void Redo::AddRedo(log::TransactionEncoder* encoder, WriteEntry& entry) {
  const bool removed = entry.kind == WriteKind::kRemove;
  const log::ChangeKind kind = removed ? log::ChangeKind::kRemove : log::ChangeKind::kPut;
  const size_t payload_bytes = removed ? 0 : entry.payload_bytes;
  const uint64_t version = InstalledVersion(entry);
  const bool integer = entry.key.kind() == index::KeyKind::kInteger;
  std::byte* const payload =
      integer ? encoder->Add(kind, entry.table->id(), version, entry.key.integer(), payload_bytes)
              : encoder->Add(kind, entry.table->id(), version, RedoKey(entry.key).bytes(), payload_bytes);
  if (!removed) writes_.CopyPayload(entry, 0, std::span(payload, payload_bytes));
}

// Appends this node's changes.
void Redo::Append(log::TransactionPart part, uint64_t id) {
  log::TransactionEncoder encoder(log_->writer().Room(bytes_));
  uint32_t changes = 0;
  size_t payload_bytes = 0;
  for (WriteEntry& entry : writes_.entries()) {
    if (!IsLogged(entry) || entry.record.node() != session_->self) continue;
    if (!AddSmallRedo(&encoder, entry)) AddRedo(&encoder, entry);
    ++changes;
    if (entry.kind != WriteKind::kRemove) payload_bytes += entry.payload_bytes;
  }
  Charge(Cost::kLogByte, bytes_);
  const size_t written = encoder.Finish(epoch_, part, id);
  // Any more bytes would be in the room of another commit.
  GANNET_CHECK(written <= bytes_ && epoch_ != 0, "%d bytes of redo of epoch %d were written; %d are reserved", written,
               epoch_, bytes_);
  log_->writer().Append(epoch_, written, changes, payload_bytes);
  log::MayDieHere(log::KillPoint::kCommitAppended);
}

Status Redo::ReserveBytes(bool* wait) {
  Status reserved = log_->writer().Reserve(bytes_, wait);
  if (!reserved.ok() && !*wait) bytes_ = 0;
  return reserved;
}

coro::Task<Status> Redo::AwaitRoom() {
  Sometimes<"log: a commit waits for room in its buffer">();
  const uint64_t deadline = NowNanos() + NanosOf(session_->local->options.durable_within);
  for (bool wait = true; wait;) {
    if (NowNanos() > deadline) {
      bytes_ = 0;
      co_return absl::ResourceExhaustedError(absl::StrCat("the log's buffer stays full: the disk of ",
                                                          session_->local->options.directory,
                                                          " does not take the writes; see log_health()"));
    }
    co_await session_->worker.SleepUntil(NowNanos() + kLookForRoomEveryNanos);
    Status reserved = log_->writer().Reserve(bytes_, &wait);
    if (reserved.ok()) break;
    if (!wait) {
      bytes_ = 0;
      co_return reserved;
    }
  }
  co_return absl::OkStatus();
}

coro::Task<Status> Redo::AppendAtAll() {
  GANNET_CO_RETURN_IF_ERROR(CheckLoads());
  log_->RaiseEpoch(epoch_);
  const bool elsewhere = std::ranges::any_of(writes_.entries(), [this](const WriteEntry& entry) {
    return IsLogged(entry) && entry.record.node() != session_->self;
  });
  uint64_t id = 0;
  if (elsewhere) {
    id = log_->NextTransactionId();
    const uint64_t deadline = NowNanos() + NanosOf(session_->local->options.call_timeout);
    const auto start = [this, id, deadline](OwnerCall& call) -> coro::Task<StatusOr<size_t>> {
      if (call.node == session_->self || !EncodePart(&call, id)) return {};
      return AppendPart(&call, deadline);
    };
    const auto take = [](OwnerCall&, const StatusOr<size_t>& answer) { return answer.status(); };
    Status logged = co_await CallOwners(links_.Calls(), start, take);
    if (!logged.ok()) co_return logged;
  }
  // Every part is in its log's buffer: the decision must not be durable before one of them could be (log/log.h).
  Append(elsewhere ? log::TransactionPart::kDecision : log::TransactionPart::kWhole, id);
  co_return absl::OkStatus();
}

// A part that finds the other log's buffer full waits until its log thread has emptied it. Otherwise a transaction
// whose parts exceed that buffer would be run again without end. Aborted if that takes too long.
coro::Task<StatusOr<size_t>> Redo::AppendPart(OwnerCall* call, uint64_t deadline_nanos) {
  while (true) {
    StatusOr<size_t> answer = co_await session_->channel->Call(
        call->node, kTxnLog, call->request, {}, session_->local->options.call_timeout, links_.ConnectionOf(call->node));
    if (!absl::IsAborted(answer.status())) co_return answer;
    if (NowNanos() > deadline_nanos) co_return Conflict(AbortCause::kLog);
    co_await session_->worker.SleepUntil(NowNanos() + kLookForRoomEveryNanos);
  }
}

// Writes a request for kTxnLog with the changes of the owner's records from entry call->next on, as many as fit one
// message. False if there are none.
bool Redo::EncodePart(OwnerCall* call, uint64_t id) {
  const std::span<std::byte> room = call->message.room();
  std::memcpy(room.data(), &epoch_, sizeof epoch_);
  log::TransactionEncoder encoder(room.data() + sizeof epoch_);
  size_t bytes = sizeof epoch_ + log::kTransactionHeaderBytes;
  bool any = false;
  for (; call->next < writes_.size(); ++call->next) {
    WriteEntry& entry = writes_[call->next];
    if (!IsLogged(entry) || entry.record.node() != call->node) continue;
    if (any && bytes + RedoBytesOf(entry) > kMaxPartBytes) break;
    bytes += RedoBytesOf(entry);
    GANNET_CHECK(bytes <= kMaxPartBytes, "a change of %d bytes does not fit a message of %d", RedoBytesOf(entry),
                 kMaxPartBytes);
    AddRedo(&encoder, entry);
    any = true;
  }
  if (!any) return false;
  call->request = room.first(sizeof epoch_ + encoder.Finish(epoch_, log::TransactionPart::kPart, id));
  return true;
}

void Redo::RaiseInsertVersion(WriteEntry& entry) {
  const uint64_t removed = log_->RemovedVersion(entry.table->id(), entry.key);
  if (removed == 0) return;
  entry.seen = RaiseLockedVersion(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen, removed,
                                  session_->owner_bits);
}

void Redo::NoteRemovedVersion(const WriteEntry& entry) {
  log_->NoteRemoval(entry.table->id(), entry.key, InstalledVersion(entry));
}

// A commit with changes READs the current epochs of the nodes that it touched, because its own must not be smaller. One
// without changes READs the newest epoch in which something was logged there, because what it read must be durable
// before it is acknowledged.
//
// Why that is enough. Let it have read, at node B, a write of U. Before U installed that, U's redo of it was in B's log
// (by U's own commit there, or as the part that U's coordinator had sent). Before U knew that, B's word was at least
// U's epoch (log::PeerEpochs::AnnounceDirty). The READ of the word is posted after the body's reads have completed, so
// it finds that value. It does not matter whether the validation's READs, in the same batch, come before or after it:
// they only confirm what had been read. (B's current epoch would do, too, but then a transaction would wait for a group
// commit although nothing is dirty.)
std::span<const uint64_t> Redo::AppendEpochReads(std::vector<rdma::Operation>* operations) {
  const size_t words_each = log_->EpochWordsToRead(logged_);
  if (words_each == 0) return {};
  const auto nodes = static_cast<size_t>(session_->local->fabric.num_nodes());
  const std::span<std::byte> touched(writes_.arena().Allocate(nodes), nodes);
  std::fill(touched.begin(), touched.end(), std::byte{0});
  const auto touch = [&](rdma::GlobalAddress address) { touched[address.node()] = std::byte{1}; };
  for (const ReadEntry& entry : reads_.records()) touch(entry.word);
  for (const ReadEntry& entry : reads_.witnesses()) touch(entry.word);
  for (const WriteEntry& entry : writes_.entries()) touched[links_.OwnerOf(entry)] = std::byte{1};
  touched[session_->self] = std::byte{0};
  auto* read = reinterpret_cast<uint64_t*>(writes_.arena().Allocate(nodes * words_each * sizeof(uint64_t)));
  size_t n = 0;
  for (size_t node = 0; node < nodes; ++node) {
    if (touched[node] == std::byte{0}) continue;
    const auto id = static_cast<rdma::NodeId>(node);
    operations->push_back(rdma::Operation::Read(log_->EpochsAt(id, logged_), &read[n],
                                                static_cast<uint32_t>(words_each * sizeof(uint64_t))));
    n += words_each;
  }
  return {read, n};
}

Status Redo::NoteRemoteEpochs(std::span<const uint64_t> words, std::span<const rdma::Operation> operations) {
  Status unsaved;
  const size_t words_each = log_->EpochWordsToRead(logged_);
  if (words_each == 0) return unsaved;
  const size_t nodes = words.size() / words_each;
  for (size_t i = 0; i < nodes; ++i) {
    epoch_ = std::max(epoch_, words[i * words_each]);
    if (logged_ && words[i * words_each + 1] != 0) [[unlikely]]
      unsaved = UnsavedLoads::Refusal(operations[operations.size() - nodes + i].remote.node());
  }
  return unsaved;
}

}  // namespace gannet::txn
