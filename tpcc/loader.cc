#include "tpcc/loader.h"

#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/share_work.h"
#include "base/thread.h"
#include "tpcc/population.h"

namespace gannet::tpcc {
namespace {

// Counts loaded parts of warehouses and calls the callback after each. Thread-safe.
class Progress {
 public:
  Progress(uint32_t warehouses, const LoadCallback& callback) : callback_(callback) {
    state_.parts = warehouses * kPartsPerWarehouse;
  }

  void Loaded(uint32_t w, uint64_t rows) {
    std::lock_guard lock(mutex_);
    state_.rows += rows;
    if (w == 0) return;  // the items, which belong to no warehouse
    ++state_.parts_loaded;
    if (callback_) callback_(state_);
  }

 private:
  Mutex mutex_;
  const LoadCallback& callback_;
  LoadProgress state_;
};

struct Job {
  txn::Database* database;
  PopulationPart part;
  const PopulationContext* context;
};

Status RunJob(const Job& job) {
  StatusOr<std::unique_ptr<txn::Session>> session = job.database->OpenSession();
  if (!session.ok()) return session.status();
  return job.part(**session, *job.context);
}

std::vector<uint32_t> WarehousesOf(const txn::Database& database, uint32_t warehouses, int num_nodes) {
  std::vector<uint32_t> result;
  if (!database.owns_rows()) return result;
  for (uint32_t w = database.node_id() + 1u; w <= warehouses; w += static_cast<uint32_t>(num_nodes)) {
    result.push_back(w);
  }
  return result;
}

}  // namespace

Status Load(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const LoadOptions& options,
            const LoadCallback& progress) {
  if (nodes.empty() || nodes.size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d nodes with %d sets of tables: give one of each per node", nodes.size(), tables.size()));
  }
  if (options.threads < 1) return absl::InvalidArgumentError("0 loading threads: choose at least 1");
  const int num_nodes = nodes[0]->data_nodes();
  const Date now = static_cast<Date>(WallNanos() / 1'000'000'000);

  std::vector<PopulationContext> contexts(nodes.size());
  uint32_t warehouses = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    contexts[n] = {.tables = &tables[n],
                   .warehouses = WarehousesOf(*nodes[n], tables[n].warehouses, num_nodes),
                   .seed = options.seed,
                   .date = options.date != 0 ? options.date : now,
                   .non_uniform = NonUniform::ForLoad(options.seed),
                   .loaded = nullptr};
    warehouses += static_cast<uint32_t>(contexts[n].warehouses.size());
  }
  Progress state(warehouses, progress);
  std::vector<Job> jobs;
  for (const PopulationPart part : kPopulationParts) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      contexts[n].loaded = [&state](uint32_t w, uint64_t rows) { state.Loaded(w, rows); };
      jobs.push_back({.database = nodes[n], .part = part, .context = &contexts[n]});
    }
  }
  return ShareWork("load", jobs.size(), options.threads, [&jobs](size_t i, int) { return RunJob(jobs[i]); });
}

}  // namespace gannet::tpcc
