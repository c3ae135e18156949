// The commit's part with the log (log/log.h has the argument, docs/log_format.md the format).
//
//   own node only    one transaction into this worker's buffer
//   several nodes    the changes of each other node's records into that node's log, by call (kTxnLog), as parts, those
//                    of all nodes together (owner_calls.h); after the last answer the own changes as the decision. A
//                    failure before the decision is in the buffer aborts the transaction, and the parts that were
//                    appended have no effect.
//
// The epoch of a commit over several nodes is the greatest epoch that it finds, after it has locked, at its own node
// and (by READs in the batch of the validation) at the nodes that it touched. It raises each node's epoch to that
// before it installs there. So a transaction that reads its writes finds an epoch that is not smaller, at its own node
// or at the record's.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "log/kill_point.h"
#include "log/largest_part.h"
#include "log/transaction_format.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/commit/commit.h"
#include "txn/commit/redo_scope.h"
#include "txn/durable/commit_log.h"
#include "txn/durable/redo_key.h"
#include "txn/peer/owner_calls.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

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
[[gnu::always_inline]] inline bool Commit::AddSmallRedo(log::TransactionEncoder* encoder, const WriteEntry& entry) {
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

void Commit::AddRedo(log::TransactionEncoder* encoder, WriteEntry& entry) {
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

// This node's changes.
void Commit::AppendRedo(log::TransactionPart part, uint64_t id) {
  log::TransactionEncoder encoder(log_->writer().Room(redo_bytes_));
  uint32_t changes = 0;
  size_t payload_bytes = 0;
  for (WriteEntry& entry : writes_.entries()) {
    if (!IsLogged(entry) || entry.record.node() != session_->self) continue;
    if (!AddSmallRedo(&encoder, entry)) AddRedo(&encoder, entry);
    ++changes;
    if (entry.kind != WriteKind::kRemove) payload_bytes += entry.payload_bytes;
  }
  Charge(Cost::kLogByte, redo_bytes_);
  log_->writer().Append(epoch_, encoder.Finish(epoch_, part, id), changes, payload_bytes);
  log::MayDieHere(log::KillPoint::kCommitAppended);
}

coro::Task<Status> Commit::RunWhenRoom() {
  Sometimes<"log: a commit waits for room in its buffer">();
  const uint64_t deadline = NowNanos() + NanosOf(session_->local->options.durable_within);
  for (bool wait = true; wait;) {
    if (NowNanos() > deadline) {
      redo_bytes_ = 0;
      co_return absl::ResourceExhaustedError(absl::StrCat("the log's buffer stays full: the disk of ",
                                                          session_->local->options.directory,
                                                          " does not take the writes; see log_health()"));
    }
    co_await session_->worker.SleepUntil(NowNanos() + kLookForRoomEveryNanos);
    Status reserved = log_->writer().Reserve(redo_bytes_, &wait);
    if (reserved.ok()) break;
    if (!wait) {
      redo_bytes_ = 0;
      co_return reserved;
    }
  }
  coro::Async<Status> committed = RunReserved();
  co_return co_await committed;
}

// Called after the validation: nothing is installed unless all redo is in its logs' buffers.
coro::Task<Status> Commit::LogMixed() {
  if (log_->any_unsaved_load()) [[unlikely]]
    co_return UnsavedLoads::Refusal(session_->self);
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
      return LogPart(&call, deadline);
    };
    const auto take = [](OwnerCall&, const StatusOr<size_t>& answer) { return answer.status(); };
    Status logged = co_await CallOwners(OwnerCalls(), start, take);
    if (!logged.ok()) co_return logged;
  }
  // Every part is in its log's buffer: the decision must not be durable before one of them could be (log/log.h).
  AppendRedo(elsewhere ? log::TransactionPart::kDecision : log::TransactionPart::kWhole, id);
  co_return absl::OkStatus();
}

// A part that finds the other log's buffer full waits until its log thread has emptied it. Otherwise a transaction
// whose parts exceed that buffer would be run again without end. Aborted if that takes too long.
coro::Task<StatusOr<size_t>> Commit::LogPart(OwnerCall* call, uint64_t deadline_nanos) {
  while (true) {
    StatusOr<size_t> answer = co_await session_->channel->Call(
        call->node, kTxnLog, call->request, {}, session_->local->options.call_timeout, ConnectionOf(call->node));
    if (!absl::IsAborted(answer.status())) co_return answer;
    if (NowNanos() > deadline_nanos) co_return Conflict(AbortCause::kLog);
    co_await session_->worker.SleepUntil(NowNanos() + kLookForRoomEveryNanos);
  }
}

// Writes a request for kTxnLog with the changes of the owner's records from entry call->next on, as many as fit one
// message. False if there are none.
bool Commit::EncodePart(OwnerCall* call, uint64_t id) {
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
    AddRedo(&encoder, entry);
    any = true;
  }
  if (!any) return false;
  call->request = room.first(sizeof epoch_ + encoder.Finish(epoch_, log::TransactionPart::kPart, id));
  return true;
}

// The key is in the index now, so every removal of it that comes before this insert has been noted.
void Commit::RaiseInsertVersion(WriteEntry& entry) {
  const uint64_t removed = log_->RemovedVersion(entry.table->id(), entry.key);
  if (removed == 0) return;
  entry.seen = RaiseLockedVersion(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen, removed,
                                  session_->owner_bits);
}

// Called before the key leaves its index.
void Commit::NoteRemovedVersion(const WriteEntry& entry) {
  log_->NoteRemoval(entry.table->id(), entry.key, InstalledVersion(entry));
}

// With changes: the current epochs of the nodes that it touched, because its own must not be smaller. Without: the
// newest epoch in which something was logged there, because what it read must be durable before it is acknowledged.
//
// Why that is enough. Let it have read, at node B, a write of U. Before U installed that, U's redo of it was in B's log
// (by U's own commit there, or as the part that U's coordinator had sent). Before U knew that, B's word was at least
// U's epoch (log::PeerEpochs::AnnounceDirty). The READ of the word is posted after the body's reads have completed, so
// it finds that value. It does not matter whether the validation's READs, in the same batch, come before or after it:
// they only confirm what had been read. (B's current epoch would do, too, but then a transaction would wait for a group
// commit although nothing is dirty.)
std::span<const uint64_t> Commit::AskForEpochs() {
  const size_t words_each = log_->EpochWordsToRead(logged_);
  if (words_each == 0) return {};
  const auto nodes = static_cast<size_t>(session_->local->fabric.num_nodes());
  const std::span<std::byte> touched(writes_.arena().Allocate(nodes), nodes);
  std::fill(touched.begin(), touched.end(), std::byte{0});
  const auto touch = [&](rdma::GlobalAddress address) { touched[address.node()] = std::byte{1}; };
  for (const ReadEntry& entry : reads_.records()) touch(entry.word);
  for (const ReadEntry& entry : reads_.witnesses()) touch(entry.word);
  for (const WriteEntry& entry : writes_.entries()) touched[OwnerOf(entry)] = std::byte{1};
  touched[session_->self] = std::byte{0};
  auto* read = reinterpret_cast<uint64_t*>(writes_.arena().Allocate(nodes * words_each * sizeof(uint64_t)));
  size_t n = 0;
  for (size_t node = 0; node < nodes; ++node) {
    if (touched[node] == std::byte{0}) continue;
    const auto id = static_cast<rdma::NodeId>(node);
    scratch_.operations.push_back(rdma::Operation::Read(log_->EpochsAt(id, logged_), &read[n],
                                                        static_cast<uint32_t>(words_each * sizeof(uint64_t))));
    n += words_each;
  }
  return {read, n};
}

Status Commit::NoteRemoteEpochs(std::span<const uint64_t> words) {
  Status unsaved;
  const size_t words_each = log_->EpochWordsToRead(logged_);
  if (words_each == 0) return unsaved;
  const size_t nodes = words.size() / words_each;
  for (size_t i = 0; i < nodes; ++i) {
    epoch_ = std::max(epoch_, words[i * words_each]);
    if (logged_ && words[i * words_each + 1] != 0) [[unlikely]]
      unsaved = UnsavedLoads::Refusal(scratch_.operations[scratch_.operations.size() - nodes + i].remote.node());
  }
  return unsaved;
}

}  // namespace gannet::txn
