// The model test of the whole API: random programs compared with the promises of the headers.
//
// A run is determined by its seed: the world (fabric, nodes, tables, durability; generator.h) and its steps. Steps are
// transactions of all operations with all options; between them are checkpoints, closing and opening, crashes, and
// changes of tables. All results are compared with a std::map (model.h, driver.h).
//
// Then many threads use the same world at once. Their transactions preserve invariants of each row and of all rows
// together (crowd.h).
//
//   api_model_test                                what ctest runs: fixed seeds, some seconds
//   api_model_test --seconds 14400 --seed $RANDOM   for hours, each run with the next seed
//   api_model_test --fabric shm-torn --seconds 600  on one fabric only
//   api_model_test --seed 7 --runs 1              seed 7 again; --trace prints each operation before it is begun
//   api_model_test --seed 7 --runs 1 --steps 42 --skip 0-17,20    with fewer steps
//   api_model_test --seed 7 --runs 1 --shrink     finds the steps that a failure needs, also for a crash or a hang
//   api_model_test --without reuse                avoids a known defect (driver.h, DriverOptions)
//
//   api_model_test --steps 0 --crowd 5000         only many threads, each with this many transactions
//
// A failure prints the seed, the step, the operations of the transaction and a line that repeats it.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "tests/model/crowd.h"
#include "tests/model/driver.h"
#include "tests/model/fabrics.h"
#include "tests/model/generator.h"
#include "tests/model/trial.h"

namespace gannet::model {
namespace {

struct Flags {
  uint64_t seed = 1;
  uint64_t runs = 20;
  uint64_t seconds = 0;  // 0: limited by `runs`
  uint64_t steps = 60;
  std::optional<FabricKind> fabric;
  std::set<uint64_t> skip;
  uint64_t crowd = 60;  // transactions per thread; 0: none
  DriverOptions driver;
  bool shrink = false;
};

std::string NamesOfFabrics() {
  std::string names;
  for (int i = 0; i < kFabricKinds; ++i) absl::StrAppend(&names, " ", NameOf(static_cast<FabricKind>(i)));
  return names;
}

[[noreturn]] void Usage(const std::string& error) {
  std::cerr << error
            << "\nusage: api_model_test [--seed N] [--runs N | --seconds N] [--steps N] [--skip N,N-N,...] [--crowd N]"
               " [--fabric NAME] [--without reuse|write-again|own-pages]... [--trace] [--shrink]\nfabrics:"
            << NamesOfFabrics() << "\n";
  std::exit(2);
}

std::set<uint64_t> ParseSteps(const std::string& text) {
  std::set<uint64_t> steps;
  const std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& part : parts) {
    const std::vector<std::string> ends = absl::StrSplit(part, '-');
    uint64_t first = 0;
    uint64_t last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) {
      Usage(absl::StrCat("--skip ", text, ": not a list of steps"));
    }
    for (uint64_t step = first; step <= last; ++step) steps.insert(step);
  }
  return steps;
}

std::string ToText(const std::set<uint64_t>& steps) {
  std::string text;
  for (auto it = steps.begin(); it != steps.end();) {
    const uint64_t first = *it;
    uint64_t last = first;
    while (++it != steps.end() && *it == last + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", first, first == last ? "" : absl::StrCat("-", last));
  }
  return text;
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--trace") {
      flags.driver.trace = true;
      continue;
    }
    if (name == "--shrink") {
      flags.shrink = true;
      continue;
    }
    if (i + 1 == argc) Usage(absl::StrCat(name, ": no such flag, or its value is missing"));
    const std::string value = argv[++i];
    if (name == "--without") {
      bool* const feature = value == "reuse"         ? &flags.driver.reuse
                            : value == "write-again" ? &flags.driver.write_again
                            : value == "own-pages"   ? &flags.driver.own_pages
                                                     : nullptr;
      if (feature == nullptr) Usage(absl::StrCat("--without ", value, ": no such feature"));
      *feature = false;
    } else if (name == "--skip") {
      flags.skip = ParseSteps(value);
    } else if (name == "--fabric") {
      flags.fabric = FabricKindOf(value);
      if (!flags.fabric.has_value()) Usage(absl::StrCat("there is no fabric ", value));
    } else {
      uint64_t* const number = name == "--seed"      ? &flags.seed
                               : name == "--runs"    ? &flags.runs
                               : name == "--seconds" ? &flags.seconds
                               : name == "--steps"   ? &flags.steps
                               : name == "--crowd"   ? &flags.crowd
                                                     : nullptr;
      if (number == nullptr || !absl::SimpleAtoi(value, number)) Usage(absl::StrCat(name, " ", value, "?"));
    }
  }
  return flags;
}

// Runs in a child process with a time limit.
std::optional<Failure> Try(uint64_t seed, const Flags& flags, uint64_t steps, const std::set<uint64_t>& skip) {
  constexpr uint64_t kMostSeconds = 120;
  return RunInChild(kMostSeconds, [&](std::atomic<uint64_t>* progress) {
    DriverOptions options = flags.driver;
    options.progress = progress;
    return Driver(DrawWorld(seed, flags.fabric.has_value() ? &*flags.fabric : nullptr), options).Run(steps, skip);
  });
}

std::optional<Failure> RunOnce(uint64_t seed, const Flags& flags, uint64_t steps, const std::set<uint64_t>& skip,
                               DriverStatistics* statistics) {
  if (flags.shrink) {  // it may crash
    *statistics = {};
    return Try(seed, flags, steps, skip);
  }
  Driver driver(DrawWorld(seed, flags.fabric.has_value() ? &*flags.fabric : nullptr), flags.driver);
  std::optional<Failure> failure = driver.Run(steps, skip);
  *statistics = driver.statistics();
  return failure;
}

void Report(uint64_t seed, const Flags& flags, const Failure& failure, uint64_t steps, const std::set<uint64_t>& skip) {
  const World world = DrawWorld(seed, flags.fabric.has_value() ? &*flags.fabric : nullptr);
  std::cout << "FAILED: seed " << seed << ", step " << failure.step << ": " << failure.what << "\n"
            << "world: " << world.ToString() << "\noperations:\n";
  for (const std::string& operation : failure.operations) std::cout << "  " << operation << "\n";
  std::cout << "replay: api_model_test --seed " << seed << " --runs 1 --steps " << steps;
  if (flags.fabric.has_value()) std::cout << " --fabric " << NameOf(*flags.fabric);
  if (!skip.empty()) std::cout << " --skip " << ToText(skip);
  if (!flags.driver.reuse) std::cout << " --without reuse";
  if (!flags.driver.write_again) std::cout << " --without write-again";
  if (!flags.driver.own_pages) std::cout << " --without own-pages";
  std::cout << "\n" << std::flush;
}

// Leaves out steps as long as the rest still fails, in halves at first, until each remaining step is needed. A failure
// that does not occur each time is tried several times.
void Shrink(uint64_t seed, const Flags& flags, Failure failure) {
  constexpr int kMostTries = 20;
  uint64_t steps = std::min(flags.steps, failure.step + 1);
  std::set<uint64_t> skip = flags.skip;
  int tries = 0;
  for (bool again = false; !again && tries < kMostTries; ++tries) again = Try(seed, flags, steps, skip).has_value();
  if (tries > 1) std::cout << "it does not fail each time: each choice of steps is tried " << tries << " times\n";
  bool changed = true;
  for (uint64_t piece = std::max<uint64_t>(steps / 2, 1); changed || piece > 1;
       piece = std::max<uint64_t>(piece / 2, 1)) {
    changed = false;
    for (uint64_t first = 0; first + 1 < steps; first += piece) {
      std::set<uint64_t> more = skip;
      for (uint64_t step = first; step < std::min(first + piece, steps - 1); ++step) more.insert(step);
      if (more == skip) continue;
      std::optional<Failure> again;
      for (int i = 0; i < tries && !again.has_value(); ++i) again = Try(seed, flags, steps, more);
      if (!again.has_value()) continue;
      failure = *std::move(again);
      skip = std::move(more);
      steps = std::min(steps, failure.step + 1);  // later steps are not needed
      skip.erase(skip.lower_bound(steps), skip.end());
      changed = true;
    }
  }
  std::cout << "with " << steps - skip.size() << " steps:\n";
  Report(seed, flags, failure, steps, skip);
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const uint64_t begun = NowNanos();
  DriverStatistics total;
  for (uint64_t run = 0; flags.seconds > 0 ? NowNanos() - begun < flags.seconds * 1'000'000'000 : run < flags.runs;
       ++run) {
    const uint64_t seed = flags.seed + run;
    const FabricKind kind = DrawWorld(seed, flags.fabric.has_value() ? &*flags.fabric : nullptr).fabric;
    std::cout << "seed " << seed << " (" << NameOf(kind) << ")" << std::flush;
    const uint64_t start = NowNanos();
    DriverStatistics statistics;
    const std::optional<Failure> failure = RunOnce(seed, flags, flags.steps, flags.skip, &statistics);
    std::cout << ": " << statistics.transactions << " transactions, " << statistics.operations << " operations, "
              << statistics.committed << " committed, " << statistics.repeated << " repeated, " << statistics.unknown
              << " unknown, " << statistics.reopened << " reopened, " << statistics.table_changes
              << " changes of tables, " << (NowNanos() - start) / 1'000'000 << " ms\n"
              << std::flush;
    if (failure.has_value()) {
      Report(seed, flags, *failure, std::min(flags.steps, failure->step + 1), flags.skip);
      if (flags.shrink) Shrink(seed, flags, *failure);
      return 1;
    }
    if (flags.crowd > 0) {
      CrowdStatistics crowd;
      const uint64_t crowd_start = NowNanos();
      World world = DrawWorld(seed, flags.fabric.has_value() ? &*flags.fabric : nullptr);
      world.log_bytes = 0;
      const std::optional<std::string> wrong = RunCrowd(world, flags.crowd, &crowd);
      std::cout << "  crowd: " << crowd.committed << " committed, " << crowd.refused << " refused, " << crowd.totals
                << " totals, " << crowd.unknown << " unknown, " << crowd.table_changes << " changes of tables, "
                << (NowNanos() - crowd_start) / 1'000'000 << " ms\n"
                << std::flush;
      if (wrong.has_value()) {
        std::cout
            << "FAILED: seed " << seed << ", many threads: " << *wrong << "\nworld: " << world.ToString()
            << "\nreplay (the order of threads is not the seed's, but on simulated fabrics): api_model_test --seed "
            << seed << " --runs 1 --steps 0 --crowd " << flags.crowd
            << (flags.fabric.has_value() ? absl::StrCat(" --fabric ", NameOf(*flags.fabric)) : "") << "\n";
        return 1;
      }
    }
    total.transactions += statistics.transactions;
    total.operations += statistics.operations;
  }
  std::cout << "all as the model has it: " << total.transactions << " transactions, " << total.operations
            << " operations, " << (NowNanos() - begun) / 1'000'000 << " ms\n";
  return 0;
}

}  // namespace
}  // namespace gannet::model

int main(int argc, char** argv) {
  return gannet::model::Main(argc, argv);
}
