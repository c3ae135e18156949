// What this node's CPU believes of its own indexes, and what it does about one that is damaged.
//
// The index of a node that is alone is right. Otherwise a client that does not keep the rules (docs/security.md) may
// have damaged it. If clients change it (IndexTraits::client_writes), it has lost keys then, or leads from a key to any
// address: so an address from such an index is checked before it is used. Any other index may have lost keys, by calls
// or because it reads them from the records (IndexTraits::most_own_key_bytes), but leads to records in any case. A
// damaged index gives errors (DataLoss); it never stops the process. A restart makes the index of a logged table again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/strings/string_view.h"
#include "base/sometimes.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/key.h"
#include "rdma/global_address.h"
#include "txn/node/local_node.h"
#include "txn/store/table.h"

namespace gannet::txn {

using index::Key;

// True if there is a whole record of the table at this address of this node. For walks, which do not tell the key.
bool IsRecordOf(const LocalNode& local, const Table& table, rdma::GlobalAddress record);

[[gnu::cold]] bool LeadsToKeyUnlessDamaged(const LocalNode& local, const Table& table, const Key& key,
                                           rdma::GlobalAddress record);
// True if `record`, to which the table's index leads, is the key's. A record has its key as long as an index leads to
// it, and then for a grace period. So the answer does not depend on whether it is locked, absent, or being written.
inline bool LeadsToKey(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record) {
  if (!table.index_traits().client_writes) [[likely]]
    return true;
  return LeadsToKeyUnlessDamaged(local, table, key, record);
}

// Called about a record that was absent and not locked when the caller looked, after the index had led to it. True if
// the index leads to it still, and so is damaged: a record leaves its index before it is marked absent, and its block
// is not used again as long as the caller stays in the epoch.
bool StillLeadsTo(const Table& table, const Key& key, rdma::GlobalAddress record);

// Ok, or the error of an index that leads from `key` to a record that is not the key's, or that is gone.
Status CheckLeadsToKey(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record);

// Changes an index for a transaction that is decided, or undone: a change that only a lock keeps off is tried again.
// The holder may be a process that stands still, or a dead node that is not repaired yet. `go_on` is asked before each
// further try. There is a limit, because a client that breaks the rules may never unlock.
template <class Change, class GoOn>
Status ChangeForSure(const Change& change, const GoOn& go_on) {
  constexpr int kTries = 6;
  Status status = change();
  for (int i = 1; i < kTries && absl::IsUnavailable(status) && go_on(); ++i) {
    Sometimes<"txn: a decided change of an index waits for a lock">();
    status = change();
  }
  return status;
}

// The damages that this node's CPU met when it changed or walked its indexes. Thread-safe.
class IndexDamage {
 public:
  // `change` is the result of taking a record out of the table's index that the caller has locked, or of replacing it
  // there. True if the index does not lead to it any more. If it did not lead to it before either, or may lead to it
  // still (false), the damage is noted; but a wrong index of a node that is alone stops the process.
  bool HasLeft(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record,
               const Status& change) {
    if (change.ok()) [[likely]]
      return true;
    return NoteNotLeft(local, table, key, record, change);
  }
  // A walk met an address where there is no record of the table, or the null address (LocalIndex::Walk).
  void NoteStray(const Table& table, rdma::GlobalAddress record);

  uint64_t Of(TableId table) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(table);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  [[gnu::cold]] bool NoteNotLeft(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress record,
                                 const Status& change);
  void Count(const Table& table, absl::string_view what);

  mutable Mutex mutex_;                 // guards the member below
  std::map<TableId, uint64_t> counts_;  // of tables with damage
};

}  // namespace gannet::txn
