#include "txn/commit/decision.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "txn/commit/commit_internal.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr size_t kPartHeaderBytes = 32;
constexpr absl::Duration kDecideTimeout = absl::Milliseconds(100);

}  // namespace

bool Decision::IsNeeded() const {
  if (GANNET_MUTANT(kSkipDecision)) return false;
  size_t elsewhere = 0;
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kNone || entry.record.node() == session_->self) continue;
    const bool written = entry.kind == WriteKind::kUpdate && entry.moved_to.is_null();
    if (++elsewhere > 1 || (written && RecordLines(entry.key, entry.payload_bytes) > 1)) return true;
  }
  return false;
}

FinishItem Decision::ItemOf(WriteEntry& entry) {
  FinishItem item;
  if (RemoteWrites::FinishItemOf(entry, /*committed=*/true, &item)) return item;
  item = {.kind = FinishKind::kInstall,
          .table = entry.table->id(),
          .key = entry.key,
          .record = entry.record,
          .state = entry.seen};
  if (entry.kind == WriteKind::kUpdate) {
    remote_.BuildImage(entry);
    item.image = {entry.image, RecordLines(entry.key, entry.payload_bytes) * kLineBytes};
  }
  return item;
}

// Writes a request to `keeper` with as many of the entries from `next` on as fit; returns where to continue. The
// records that it finishes go to finished_.
size_t Decision::Encode(size_t next, rdma::NodeId keeper, bool only_note) {
  const bool first = next == 0;
  rdma::WireWriter writer(message_.room());
  const std::span<std::byte> caller = writer.Reserve(Caller::kBytes);  // more than the header of a kTxnFinishFor
  const std::span<std::byte> flags = writer.Reserve(1);
  const std::span<std::byte> parts = writer.Reserve(sizeof(uint16_t));
  const auto bytes_of = [this](const WriteEntry& entry) {
    return FinishItemBytes(RecordLines(entry.key, entry.payload_bytes) * kLineBytes);
  };
  uint16_t count = 0;
  while (next < entries_.size() && writer.room() >= kPartHeaderBytes + bytes_of(writes_[entries_[next]])) {
    const rdma::NodeId node = writes_[entries_[next]].record.node();
    writer.PutU16(node);
    const std::span<std::byte> size = writer.Reserve(sizeof(uint32_t));
    const size_t begin = writer.size();
    writer.PutU64(session_->owner_bits);
    const std::span<std::byte> items = writer.Reserve(sizeof(uint16_t));
    uint16_t n = 0;
    for (; next < entries_.size(); ++next, ++n) {
      WriteEntry& entry = writes_[entries_[next]];
      if (entry.record.node() != node || writer.room() < bytes_of(entry)) break;
      txn::Put(writer, ItemOf(entry));
      if (node != keeper || only_note) continue;
      finished_.push_back(entry.record);
      if (!entry.moved_to.is_null()) finished_.push_back(entry.moved_to);
    }
    std::memcpy(items.data(), &n, sizeof n);
    const auto bytes = static_cast<uint32_t>(writer.size() - begin);
    std::memcpy(size.data(), &bytes, sizeof bytes);
    ++count;
  }
  flags[0] = static_cast<std::byte>((first ? kFirstOfDecision : 0) | (next == entries_.size() ? kLastOfDecision : 0) |
                                    (only_note ? kDecisionIsNoted : 0));
  std::memcpy(parts.data(), &count, sizeof count);
  links_.PutCaller(caller, pending_.decision_slot());
  request_ = writer.written();
  return next;
}

// Sorts the entries at other nodes, the decider's first.
void Decision::Order() {
  entries_.clear();
  for (uint32_t i = 0; i < writes_.size(); ++i) {
    const WriteEntry& entry = writes_[i];
    if (entry.kind != WriteKind::kNone && entry.record.node() != session_->self) entries_.push_back(i);
  }
  const rdma::NodeId decider = writes_[entries_.front()].record.node();
  const auto rank = [this, decider](uint32_t i) {
    const rdma::NodeId node = writes_[i].record.node();
    return node == decider ? -1 : int{node};
  };
  std::ranges::stable_sort(entries_, {}, rank);
}

// Sends the entries at other nodes. False if `keeper` cannot be told.
coro::Task<bool> Decision::Tell(rdma::NodeId keeper, bool only_note) {
  const absl::Duration timeout = std::min(kDecideTimeout, session_->local->options.call_timeout);
  const uint64_t connection = links_.ConnectionOf(keeper);
  finished_.clear();
  for (size_t next = 0; next < entries_.size();) {
    const size_t begin = std::exchange(next, Encode(next, keeper, only_note));
    GANNET_CHECK(next > begin, "change %d of %d of a decision does not fit a message", begin, entries_.size());
    StatusOr<size_t> answer = co_await session_->channel->Call(keeper, kTxnDecide, request_, {}, timeout, connection);
    if (answer.ok()) continue;
    // The owner has refused. An owner only refuses a request that breaks the protocol, so no simulation reaches this.
    if (!IsUnknownOutcome(answer.status())) co_return false;
    Sometimes<"decision: the decider may have been told or not">();
    pending_.OpenGroup();
    pending_.OweDecision(keeper, request_, finished_);
    const bool settled = co_await pending_.AwaitDecision();
    if (!settled && next < entries_.size()) co_return false;
  }
  co_return true;
}

coro::Task<void> Decision::Make() {
  Order();
  const rdma::NodeId decider = writes_[entries_.front()].record.node();
  const rdma::NodeId second = writes_[entries_.back()].record.node();
  if (second != decider) {
    Sometimes<"decision: a second owner notes it">();
    // If the second owner cannot be told, the decision holds as long as this node or the decider lives.
    [[maybe_unused]] const bool noted = co_await Tell(second, /*only_note=*/true);
  }
  const bool told = co_await Tell(decider, /*only_note=*/false);
  if (!told) {
    Sometimes<"decision: the transaction goes on without its decider">();
    co_return;
  }
  for (const uint32_t i : entries_) {
    if (writes_[i].record.node() != decider) continue;
    writes_[i].installed = true;
    writes_[i].locked = false;
  }
}

}  // namespace gannet::txn
