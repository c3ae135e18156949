#include "txn/commit/prepare_calls.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "txn/access/access_internal.h"
#include "txn/commit/commit_internal.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

// The share of an answer, one part in ..., that the usual changes of its inserts take, of two words each. An insert
// into an XStore rarely changes more (shadows.h), one into an R-tree usually.
constexpr size_t kShareOfChanges = 2;
constexpr size_t kShareOfLongChanges = 8;

}  // namespace

// Asks the owners for placeholders for inserts, and for new places of records that outgrow theirs: in as few calls as
// fit, and calls to different owners together. So two transactions that insert the same keys at two owners may get one
// key each, and both fail. They are run again after a random pause, as with locks, which are requested together, too.
coro::Task<Status> PrepareCalls::Run() {
  const auto start = [this](OwnerCall& call) -> coro::Task<StatusOr<size_t>> {
    if (!Encode(&call)) return {};
    return links_.Send(&call, kTxnPrepare, call.response.room(), session_->local->options.call_timeout);
  };
  const auto take = [this](OwnerCall& call, const StatusOr<size_t>& size) -> Status {
    if (size.ok()) return Decode(&call, call.response.room().first(*size));
    if (IsUnknownOutcome(size.status())) {
      Sometimes<"commit: a prepare may have been done or not">();
      pending_.OweCall(&call, kTxnCancel, call.request.first(Caller::kBytes));
    }
    return size.status();
  };
  co_return co_await CallOwners(links_.Calls(), start, take);
}

// Writes the request for the owner's entries from call->next on that fit one message, and notes them in call->prepared.
// False if there are none.
bool PrepareCalls::Encode(OwnerCall* call) {
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
    if (!move) session_->paths.Count(AccessKind::kInsert, entry.table->id(), AccessPath::kCall);
  }
  if (prepared.empty()) return false;
  links_.PutCaller(caller, &call->slot);
  const auto n = static_cast<uint16_t>(prepared.size());
  std::memcpy(count.data(), &n, sizeof n);
  call->request = writer.written();
  return true;
}

Status PrepareCalls::Decode(OwnerCall* call, std::span<const std::byte> response) {
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
    return duplicate_.Note(insert, {existing.word, existing.seen});
  }
  if (outcome != PrepareOutcome::kPrepared) {
    Sometimes<"commit: a prepare meets a record that is locked or absent">();
    return Conflict(AbortCause::kLock);
  }
  return DecodeMade(*call, reader);
}

// Reads the placeholder, or the block to move to, of each entry that the owner prepared.
Status PrepareCalls::DecodeMade(const OwnerCall& call, rdma::WireReader& reader) {
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
    reads_.Carry(prepared.change, *session_);
  }
  return reader.Finish();
}

}  // namespace gannet::txn
