#include "cli/rows/row_walk.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/index.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "txn/node/record_walk.h"
#include "txn/offline.h"
#include "txn/record/record.h"

namespace gannet::cli {

// Every record in the index is committed and unlocked, because nobody commits.
Status WalkRows(txn::Database& database, const txn::Table& table,
                absl::FunctionRef<StatusOr<bool>(const index::Key& key, std::string_view payload)> visit) {
  const std::byte* memory = database.node().memory().data();
  txn::RecordWalk walk(txn::LocalNodeOf(database), table);
  std::vector<std::byte> payload;
  while (walk.has_more()) {
    const auto records = walk.Next();
    if (!records.ok()) return records.status();
    for (const rdma::GlobalAddress address : *records) {
      const std::byte* record = memory + address.offset();
      const index::RecordMeta meta = index::LoadMeta(record);
      payload.resize(meta.payload_bytes);
      uint64_t state = 0;
      if (!rdma::TryReadLocal(record, index::PayloadDataOffset(meta.key_bytes), payload, &state)) {
        return absl::InternalError(absl::StrCat("a recovered record of table '", table.name(), "' is locked"));
      }
      if (txn::IsAbsent(state)) continue;
      const index::OwnedKey key = index::LoadKey(record, table.options().key_kind);
      const StatusOr<bool> go_on = visit(key.view(), {reinterpret_cast<const char*>(payload.data()), payload.size()});
      if (!go_on.ok()) return go_on.status();
      if (!*go_on) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
