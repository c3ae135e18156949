#include "txn/peer/unused_records.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "index/record_header.h"
#include "txn/node/index_damage.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kUnusedPauseNanos = 100'000;
constexpr uint64_t kLockedForNanos = 10'000'000'000;

}  // namespace

StatusOr<uint64_t> AwaitUnlocked(const Table& table, const std::byte* record) {
  uint64_t state = LoadWord(record);
  const uint64_t deadline = IsLocked(state) ? NowNanos() + kLockedForNanos : 0;
  for (; IsLocked(state); state = LoadWord(record)) {
    if (NowNanos() > deadline) {
      return absl::UnavailableError(absl::StrCat("a record of ", NameOf(table), " stays locked by worker ",
                                                 LockOwnerChannel(state), " of node ", LockOwnerNode(state)));
    }
    SleepForNanos(kUnusedPauseNanos);
  }
  return state;
}

bool MoveRow(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress from, uint64_t state,
             const NewRecord& made) {
  std::byte* const record = local.Direct(from);
  const auto payload_bytes = [](const std::byte* of) { return index::LoadMeta(of).payload_bytes; };
  StoreWord(made.block, NextState(made.state, false));
  // This comes before the index no longer leads there (lent_records.h).
  const int64_t old_bytes = local.lent_records.Drop(from) ? 0 : BlockBytesOf(key, payload_bytes(record));
  const Status replaced = table.local_index().Replace(key, from, local.node.AddressOf(made.block));
  const bool has_left = local.index_damage.HasLeft(local, table, key, from, replaced);
  local.record_bytes.Settle(table.id(), BlockBytesOf(key, payload_bytes(made.block)) - old_bytes);
  MarkAbsent(record, RecordLines(key, payload_bytes(record)), state);
  return has_left;
}

}  // namespace gannet::txn
