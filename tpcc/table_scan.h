// Reads whole tables through transactions, in chunks: memory and read sets stay small for a table of any length. Each
// chunk is one transaction; the whole is consistent only if no one writes at the same time.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/repair_patience.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

inline constexpr size_t kScanChunk = 4096;  // rows

inline coro::Task<Status> ScanOnce(txn::Transaction& transaction, const txn::Table& table, index::ScanRange range,
                                   txn::ScanRows* rows, txn::ScanOptions options) {
  Status status = co_await transaction.Scan(table, range, rows, options);
  co_return status;
}

// Calls row(rows, i) for every row of [from, to] in ascending order; `rows` holds the row at i. Blocks.
template <class Visitor>
Status ForEachRow(txn::Session& session, const txn::Table& table, uint64_t from, uint64_t to, txn::ScanRows* rows,
                  txn::ScanOptions options, Visitor visit) {
  while (true) {
    const index::ScanRange range{.from = from, .to = to, .limit = kScanChunk};
    GANNET_RETURN_IF_ERROR(RunPatiently(
        session, [&](txn::Transaction& transaction) { return ScanOnce(transaction, table, range, rows, options); }));
    for (size_t i = 0; i < rows->size(); ++i) visit(*rows, i);
    if (rows->size() < kScanChunk) return absl::OkStatus();
    const uint64_t last = rows->key(rows->size() - 1).integer();
    if (last == to) return absl::OkStatus();
    from = last + 1;
  }
}

}  // namespace gannet::tpcc
