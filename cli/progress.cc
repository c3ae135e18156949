#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "cli/terminal.h"

namespace gannet::cli {
namespace {

constexpr uint64_t kBetweenLinesNanos = 10'000'000'000;

std::string PerSecond(double rate) {
  return WithCommas(static_cast<uint64_t>(rate));
}

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1),
      next_nanos_(NowNanos() + kBetweenLinesNanos),
      tpcc_lines_({std::begin(tpcc::kProcedureNames), std::end(tpcc::kProcedureNames)}, TerminalWidth(STDERR_FILENO)),
      ycsb_lines_({std::begin(ycsb::kKindNames), std::end(ycsb::kKindNames)}, TerminalWidth(STDERR_FILENO)) {}

void Progress::Print(const std::string& lines) {
  absl::FPrintF(stderr, "%s%s", counting_ ? "\n" : "", lines);
  counting_ = false;
}

void Progress::Say(const std::string& line) {
  if (terminal_) {
    Print(line + "\n");
    return;
  }
  const uint64_t now = NowNanos();
  if (now < next_nanos_) return;
  next_nanos_ = now + kBetweenLinesNanos;
  absl::FPrintF(stderr, "%s\n", line);
}

void Progress::Step(const std::string& what) {
  std::lock_guard lock(mutex_);
  Say(what);
}

void Progress::Count(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (!terminal_) return Say(what);
  absl::FPrintF(stderr, "\r%s", what);
  std::fflush(stderr);
  counting_ = true;
}

void Progress::EndCount() {
  std::lock_guard lock(mutex_);
  if (counting_) std::fputc('\n', stderr);
  counting_ = false;
}

void Progress::Loaded(const tpcc::LoadProgress& progress) {
  Count(absl::StrFormat("loading: %d of %d parts of warehouses, %s rows", progress.parts_loaded, progress.parts,
                        WithCommas(progress.rows)));
  if (progress.parts_loaded == progress.parts) EndCount();
}

void Progress::Ran(const tpcc::IntervalReport& interval) {
  const auto attempts = static_cast<double>(std::max<uint64_t>(interval.transactions + interval.aborts, 1));
  const double aborted = 100 * static_cast<double>(interval.aborts) / attempts;
  std::lock_guard lock(mutex_);
  Print(tpcc_lines_.Next({{"transactions/s", PerSecond(interval.Rate(interval.transactions))},
                          {"NewOrders/min", PerSecond(60 * interval.Rate(interval.new_orders))},
                          {"aborted", absl::StrFormat("%.2f%%", aborted)}},
                         interval));
}

void Progress::Loaded(uint64_t keys, uint64_t of) {
  Count(absl::StrFormat("loading: %s of %s keys", WithCommas(keys), WithCommas(of)));
  if (keys == of) EndCount();
}

void Progress::Ran(const ycsb::IntervalReport& interval) {
  std::lock_guard lock(mutex_);
  Print(ycsb_lines_.Next({{"operations/s", PerSecond(interval.Rate(interval.operations))}}, interval));
}

bench::YcsbProgress YcsbProgressOf(Progress* progress) {
  return {.step = [progress](const std::string& what) { progress->Step(what); },
          .loaded = [progress](uint64_t keys, uint64_t of) { progress->Loaded(keys, of); },
          .ran = [progress](const ycsb::IntervalReport& interval) { progress->Ran(interval); }};
}

}  // namespace gannet::cli
