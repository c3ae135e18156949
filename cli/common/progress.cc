#include "cli/common/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/terminal.h"

namespace gannet::cli {
namespace {

// Interval of the lines, in real time: NowNanos is virtual within a simulation.
constexpr std::chrono::seconds kBetweenLines{1};

std::string PerSecond(double rate) {
  return WithCommas(static_cast<uint64_t>(rate));
}

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1),
      told_(Clock::now()),
      step_begun_(told_),
      tpcc_lines_({std::begin(tpcc::kProcedureNames), std::end(tpcc::kProcedureNames)}, TerminalWidth(STDERR_FILENO)),
      ycsb_lines_({std::begin(ycsb::kKindNames), std::end(ycsb::kKindNames)}, TerminalWidth(STDERR_FILENO)),
      ticker_([this](const std::stop_token& stop) { Tick(stop); }) {}

Progress::~Progress() {
  ticker_.request_stop();
  ticker_.join();
  EndCount();
}

void Progress::Tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ended_.wait_until(lock, stop, told_ + kBetweenLines, [] { return false; });
    if (stop.stop_requested() || Clock::now() < told_ + kBetweenLines) continue;
    if (step_.empty()) {
      told_ = Clock::now();
      continue;
    }
    if (terminal_) {
      Print(step_ + "\n");
      step_.clear();
    } else {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - step_begun_);
      Say(absl::StrFormat("%s: %d s", step_, seconds.count()));
    }
  }
}

void Progress::Print(const std::string& lines) {
  absl::FPrintF(stderr, "%s%s", counting_ ? "\n" : "", lines);
  counting_ = false;
  told_ = Clock::now();
}

void Progress::Say(const std::string& line) {
  if (terminal_ || Clock::now() >= told_ + kBetweenLines) Print(line + "\n");
}

void Progress::SetStep(const std::string& what) {
  step_ = what;
  step_begun_ = Clock::now();
}

void Progress::Step(const std::string& what) {
  std::lock_guard lock(mutex_);
  SetStep(terminal_ ? "" : what);
  Say(what);
}

void Progress::Begin(const std::string& what) {
  std::lock_guard lock(mutex_);
  SetStep(what);
}

void Progress::Count(const std::string& what) {
  std::lock_guard lock(mutex_);
  SetStep(terminal_ ? "" : what);
  if (!terminal_) return Say(what);
  absl::FPrintF(stderr, "\r%s", what);
  std::fflush(stderr);
  counting_ = true;
}

void Progress::EndCount() {
  std::lock_guard lock(mutex_);
  if (counting_) std::fputc('\n', stderr);
  counting_ = false;
  step_.clear();
}

void Progress::Loaded(const tpcc::LoadProgress& progress) {
  Count(absl::StrFormat("loading: %d of %d parts of warehouses, %s", progress.parts_loaded, progress.parts,
                        gannet::Count(progress.rows, "row")));
  if (progress.parts_loaded == progress.parts) EndCount();
}

void Progress::Ran(const tpcc::IntervalReport& interval) {
  const auto attempts = static_cast<double>(std::max<uint64_t>(interval.transactions + interval.aborts, 1));
  const double aborted = 100 * static_cast<double>(interval.aborts) / attempts;
  std::lock_guard lock(mutex_);
  step_.clear();
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
  step_.clear();
  Print(ycsb_lines_.Next({{"operations/s", PerSecond(interval.Rate(interval.operations))}}, interval));
}

bench::YcsbProgress YcsbProgressOf(Progress* progress) {
  return {.step = [progress](const std::string& what) { progress->Step(what); },
          .loaded = [progress](uint64_t keys, uint64_t of) { progress->Loaded(keys, of); },
          .ran = [progress](const ycsb::IntervalReport& interval) { progress->Ran(interval); }};
}

}  // namespace gannet::cli
