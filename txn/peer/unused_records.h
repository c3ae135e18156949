// Records of a table that no transaction uses, because its state says so: WidenTable and ArrangeTable move them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "rdma/global_address.h"
#include "txn/node/local_node.h"
#include "txn/record/record.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The state of a record, once it is not locked. A node that died may have left a lock, which is repaired soon.
// Unavailable: it is not.
StatusOr<uint64_t> AwaitUnlocked(const Table& table, const std::byte* record);

// The row moves from the record at `from`, whose state is `state`, to `made` (MakeLockedRecord). Afterwards the index
// leads to `made`, the old record is absent, and LocalNode::record_bytes counts the new one. False: the index is
// damaged (index_damage.h), and may lead to either.
bool MoveRow(const LocalNode& local, const Table& table, const Key& key, rdma::GlobalAddress from, uint64_t state,
             const NewRecord& made);

}  // namespace gannet::txn
