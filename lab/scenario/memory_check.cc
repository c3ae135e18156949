#include "lab/scenario/memory_check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "index/record_header.h"
#include "txn/run/database_state.h"

namespace gannet::scenario {
namespace {

constexpr int kRounds = 40;
constexpr uint64_t kRoundNanos = 5'000'000;  // a grace period takes several rounds

// Memory that handlers retired is freed by later handlers in the same context. This takes the place of those later
// handlers for each context (index/service.cc).
void CollectRetired(index::IndexService* service) {
  constexpr size_t kAtOnce = 8;
  constexpr int kTurns = 40;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<std::unique_ptr<index::IndexService::Guard>> guards;
    for (size_t i = 0; i < kAtOnce; ++i) guards.push_back(std::make_unique<index::IndexService::Guard>(service));
    for (const auto& guard : guards) guard->context().epoch->Collect();
  }
}

// (offset, bytes) of every record in an index.
std::vector<std::pair<uint64_t, uint64_t>> RecordsOf(txn::DatabaseState& state) {
  std::vector<std::pair<uint64_t, uint64_t>> records;
  std::vector<rdma::GlobalAddress> addresses;
  for (const auto& table : state.tables) {
    index::WalkPosition position;
    for (bool more = true; more;) {
      addresses.clear();
      const index::IndexService::Guard guard(state.indexes.get());
      more = table->local_index().Walk(&position, &addresses);
      for (const rdma::GlobalAddress address : addresses) {
        const index::RecordMeta meta = index::LoadMeta(state.node->memory().data() + address.offset());
        const size_t bytes = index::RecordBytes(meta.key_bytes, meta.payload_bytes);
        records.emplace_back(address.offset(), rdma::SlabAllocator::BlockBytes(bytes));
      }
    }
  }
  return records;
}

}  // namespace

StatusOr<int64_t> UnaccountedBytes(txn::Database& database) {
  txn::DatabaseState& state = database.state();
  std::vector<std::pair<uint64_t, uint64_t>> records = RecordsOf(state);
  std::ranges::sort(records);
  uint64_t accounted = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    accounted += records[i].second;
    if (i == 0 || records[i - 1].first + records[i - 1].second <= records[i].first) continue;
    return absl::InternalError(absl::StrCat("node ", database.node_id(), ": the records at ", records[i - 1].first,
                                            " and ", records[i].first, " overlap"));
  }
  // Blocks that clients have borrowed, and that are no records yet.
  state.lent_records->ForEach([&](rdma::GlobalAddress block, size_t bytes) {
    const auto at = std::ranges::lower_bound(records, std::pair(block.offset(), uint64_t{0}));
    if (at == records.end() || at->first != block.offset()) accounted += rdma::SlabAllocator::BlockBytes(bytes);
  });
  for (const auto& table : state.tables) accounted += table->local_index().statistics().registered_bytes;
  const rdma::SlabStatistics slab = state.slab->statistics();
  return static_cast<int64_t>(slab.carved_bytes) - static_cast<int64_t>(slab.free_bytes + accounted);
}

Status CheckMemory(txn::Database& database, int64_t expected) {
  int64_t found = 0;
  for (int round = 0; round < kRounds; ++round) {
    CollectRetired(database.state().indexes.get());
    const StatusOr<int64_t> bytes = UnaccountedBytes(database);
    if (!bytes.ok()) return bytes.status();
    found = *bytes;
    if (found == expected) return absl::OkStatus();
    SleepForNanos(kRoundNanos);
  }
  return absl::InternalError(absl::StrCat("node ", database.node_id(), ": ", found, " bytes of its memory are neither ",
                                          "free nor of a record or an index, and at first it was ", expected, ": ",
                                          found > expected ? "memory is lost" : "something is used twice"));
}

}  // namespace gannet::scenario
