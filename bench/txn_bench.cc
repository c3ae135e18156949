// What does a transaction cost on its own node: reading a record, updating one, committing one or ten, reading sixteen
// together? And over the fabric, to a second node?
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kRows = 1'000'000;  // 64 bytes each: larger than the caches

struct Row {
  uint64_t value;
  uint64_t filler[3] = {};
};

// Two nodes; the table is on node 0, and there is a session on each.
struct Bench {
  std::unique_ptr<rdma::ShmFabric> fabric;
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<std::unique_ptr<Session>> sessions;

  explicit Bench(int nodes) {
    auto made = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = uint64_t{2} << 30});
    GANNET_CHECK(made.ok(), "%s", made.status().ToString());
    fabric = std::move(*made);
    for (int node = 0; node < nodes; ++node) {
      auto database = Database::Open(fabric.get(), static_cast<rdma::NodeId>(node),
                                     {.read_path = ReadPathPolicy::kOneSided, .location_cache_bytes = 64 << 20});
      GANNET_CHECK(database.ok(), "%s", database.status().ToString());
      const auto table =
          (*database)->CreateTable({.name = "rows", .payload_bytes = sizeof(Row), .expected_rows = kRows});
      GANNET_CHECK(table.ok(), "%s", table.status().ToString());
      databases.push_back(std::move(*database));
    }
    for (auto& database : databases) {
      GANNET_CHECK(database->Start().ok(), "start");
      sessions.push_back(std::move(*database->OpenSession()));
    }
    BulkLoader loader(sessions[0].get(), databases[0]->FindTable("rows"));
    for (uint64_t key = 0; key < kRows; ++key) GANNET_CHECK(loader.Add(key, Row{.value = key}).ok(), "key %d", key);
    GANNET_CHECK(loader.Finish().ok(), "load");
  }

  Session& session(int64_t node) { return *sessions[static_cast<size_t>(node)]; }
  const Table& table(int64_t node) { return *databases[static_cast<size_t>(node)]->FindTable("rows"); }

  static Bench& Shared() {
    static Bench bench(2);
    return bench;
  }
};

coro::Task<Status> ReadSome(Transaction& t, const Table& table, Random& random, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Row row;
    Status status = co_await t.Get(table, random.Below(kRows), &row);
    if (!status.ok()) co_return status;
    benchmark::DoNotOptimize(row);
  }
  co_return absl::OkStatus();
}

coro::Task<Status> ReadTogether(Transaction& t, const Table& table, Random& random, int64_t n) {
  std::array<Row, 64> rows;
  std::array<GetRequest, 64> requests;
  for (int64_t i = 0; i < n; ++i) requests[i] = GetRequest::Of(table, random.Below(kRows), &rows[i]);
  const std::span<GetRequest> all = std::span(requests).first(static_cast<size_t>(n));
  Status status = co_await t.GetMany(all);
  benchmark::DoNotOptimize(rows);
  co_return status;
}

coro::Task<Status> UpdateSome(Transaction& t, const Table& table, Random& random, int64_t n) {
  std::array<Row, 64> rows;
  std::array<GetRequest, 64> requests;
  for (int64_t i = 0; i < n; ++i) requests[i] = GetRequest::Of(table, random.Below(kRows), &rows[i], true);
  const std::span<GetRequest> all = std::span(requests).first(static_cast<size_t>(n));
  Status status = co_await t.GetMany(all);
  if (!status.ok()) co_return status;
  for (int64_t i = 0; i < n; ++i) {
    ++rows[i].value;
    status = t.Update(requests[i].handle, rows[i]);
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

template <coro::Task<Status> (*kBody)(Transaction&, const Table&, Random&, int64_t)>
void BM_Transaction(benchmark::State& state) {
  Bench& bench = Bench::Shared();
  Session& session = bench.session(state.range(0));
  const Table& table = bench.table(state.range(0));
  Random random(1);
  const int64_t n = state.range(1);
  const rdma::VerbCounters before = session.channel().counters();
  for (auto _ : state) {
    const auto body = [&](Transaction& t) { return kBody(t, table, random, n); };
    const Status status = session.RunBlocking(body);
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
  }
  const rdma::VerbCounters used = session.channel().counters() - before;
  state.SetItemsProcessed(state.iterations() * n);
  state.counters["round_trips"] =
      benchmark::Counter(static_cast<double>(used.round_trips), benchmark::Counter::kAvgIterations);
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"node", "records"});
  for (const int64_t node : {0, 1}) {
    for (const int64_t records : {1, 10, 16}) benchmark->Args({node, records});
  }
}

BENCHMARK_TEMPLATE(BM_Transaction, ReadSome)->Name("ReadOneByOne")->Apply(Arguments);
BENCHMARK_TEMPLATE(BM_Transaction, ReadTogether)->Name("ReadTogether")->Apply(Arguments);
BENCHMARK_TEMPLATE(BM_Transaction, UpdateSome)->Name("UpdateAndCommit")->Apply(Arguments);

}  // namespace
}  // namespace gannet::txn

BENCHMARK_MAIN();
