#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "cli/table.h"

namespace gannet::cli {

Progress::Progress() : enabled_(isatty(STDERR_FILENO) == 1) {}

void Progress::Step(const std::string& what) {
  if (!enabled_) return;
  std::lock_guard lock(mutex_);
  absl::FPrintF(stderr, "%s\n", what);
}

void Progress::Loaded(const tpcc::LoadProgress& progress) {
  if (!enabled_) return;
  std::lock_guard lock(mutex_);
  absl::FPrintF(stderr, "\rloading: warehouse %d of %d, %s rows", progress.warehouses_loaded, progress.warehouses,
                WithCommas(progress.rows));
  if (progress.warehouses_loaded == progress.warehouses) std::fputc('\n', stderr);
  std::fflush(stderr);
}

void Progress::Ran(const tpcc::IntervalReport& interval) {
  if (!enabled_) return;
  const double seconds = std::max(interval.seconds, 1e-9);
  const auto attempts = static_cast<double>(std::max<uint64_t>(interval.transactions + interval.aborts, 1));
  std::lock_guard lock(mutex_);
  absl::FPrintF(stderr, "%7.1f s %12s transactions/s %12s NewOrders/min %7.2f%% aborted%s\n", interval.at_seconds,
                WithCommas(static_cast<uint64_t>(static_cast<double>(interval.transactions) / seconds)),
                WithCommas(static_cast<uint64_t>(static_cast<double>(interval.new_orders) * 60 / seconds)),
                100 * static_cast<double>(interval.aborts) / attempts, interval.warming_up ? "  (warming up)" : "");
}

void Progress::Loaded(uint64_t keys, uint64_t of) {
  if (!enabled_) return;
  std::lock_guard lock(mutex_);
  absl::FPrintF(stderr, "\rloading: %s of %s keys%s", WithCommas(keys), WithCommas(of), keys == of ? "\n" : "");
  std::fflush(stderr);
}

void Progress::Ran(const ycsb::IntervalReport& interval) {
  if (!enabled_) return;
  const double seconds = std::max(interval.seconds, 1e-9);
  std::lock_guard lock(mutex_);
  absl::FPrintF(stderr, "%9.4f s %14s operations/s%s\n", interval.at_seconds,
                WithCommas(static_cast<uint64_t>(static_cast<double>(interval.operations) / seconds)),
                interval.warming_up ? "  (warming up)" : "");
}

}  // namespace gannet::cli
