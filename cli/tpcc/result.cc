#include "cli/tpcc/result.h"

#include <algorithm>
#include <functional>

#include "bench/harness/resident_memory.h"

namespace gannet::cli {
namespace {

void AddTo(index::Statistics* sum, const index::Statistics& part) {
  sum->keys += part.keys;
  sum->registered_bytes += part.registered_bytes;
  sum->private_bytes += part.private_bytes;
  sum->nodes += part.nodes;
  sum->height = std::max(sum->height, part.height);
}

double Ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

template <class Combine>
log::LogStatistics Combined(const log::LogStatistics& a, const log::LogStatistics& b, Combine combine) {
  return {.transactions = combine(a.transactions, b.transactions),
          .changes = combine(a.changes, b.changes),
          .payload_bytes = combine(a.payload_bytes, b.payload_bytes),
          .record_bytes = combine(a.record_bytes, b.record_bytes),
          .disk_bytes = combine(a.disk_bytes, b.disk_bytes),
          .batches = combine(a.batches, b.batches),
          .segments = combine(a.segments, b.segments),
          .failures = combine(a.failures, b.failures)};
}

}  // namespace

double DurabilityReport::bytes_per_new_order() const {
  return Ratio(log.record_bytes, new_orders);
}
double DurabilityReport::payload_per_new_order() const {
  return Ratio(log.payload_bytes, new_orders);
}
double DurabilityReport::overhead() const {
  return Ratio(log_of_run.record_bytes, log_of_run.payload_bytes);
}
double DurabilityReport::write_amplification() const {
  return Ratio(log_of_run.disk_bytes, log_of_run.payload_bytes);
}

log::LogStatistics LogStatisticsOf(std::span<txn::Database* const> databases) {
  log::LogStatistics sum;
  for (const txn::Database* database : databases) sum = Combined(sum, database->log_statistics(), std::plus<>());
  return sum;
}

log::LogStatistics Difference(const log::LogStatistics& later, const log::LogStatistics& earlier) {
  return Combined(later, earlier, std::minus<>());
}

bool TpccResult::consistent() const {
  return std::ranges::all_of(consistency, [](const tpcc::ConditionResult& condition) { return condition.holds; });
}

uint64_t TpccResult::client_cache_bytes() const {
  uint64_t bytes = 0;
  if (run.has_value()) {
    for (const auto& [table, statistics] : run->client_caches) bytes += statistics.cache_bytes;
  }
  return bytes;
}

MemoryReport MeasureMemory(std::span<txn::Database* const> databases) {
  MemoryReport report;
  for (txn::Database* database : databases) {
    const std::vector<txn::TableStatistics> tables = database->table_statistics();
    if (report.tables.empty()) {
      report.tables = tables;
    } else {
      // Every node creates the same tables in the same order.
      for (size_t i = 0; i < tables.size(); ++i) {
        report.tables[i].record_bytes += tables[i].record_bytes;
        AddTo(&report.tables[i].index, tables[i].index);
      }
    }
    const rdma::SlabStatistics heap = database->memory_statistics();
    report.heap.capacity_bytes += heap.capacity_bytes;
    report.heap.carved_bytes += heap.carved_bytes;
    report.heap.free_bytes += heap.free_bytes;
  }
  report.resident_bytes = bench::ResidentBytes();
  return report;
}

}  // namespace gannet::cli
