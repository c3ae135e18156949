// How fast does Open replay a log, compared with the execution of the same transactions by as many threads?
//
//   recovery_bench [--seconds N] [--threads N] [--warehouses N] [--opens N] [--sync] [--keep]
//   recovery_bench --open DIRECTORY [--threads N] [--warehouses N] [--opens N]
//
// Loads TPC-C, takes a checkpoint, runs the mix (durability async, or with --sync sync), and leaves the directory
// without another checkpoint, as a crash does. Then it opens the directory several times. The first form makes the
// directory in GANNET_BENCH_DIR or, if that is not set, in the current directory, and removes it at the end, or with
// --keep prints its name; the second form opens such a directory again: so two versions of the program can be compared
// in turn. Each open adds a small segment to the log.
//
// Only transactions that wrote something are in the log, so both rates count only these. `cpu` is the time of all
// threads, in user code and in the kernel.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "tpcc/driver.h"
#include "tpcc/loader.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"

namespace gannet {
namespace {

struct Options {
  int seconds = 5;
  int threads = 2;
  int warehouses = 2;
  int opens = 3;
  bool sync = false;
  bool keep = false;
  std::string open;  // a directory that is there
};

struct Time {
  double seconds = 0;
  double cpu_seconds = 0;
};

struct Recovered : Time {
  txn::RecoveryReport report;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double SecondsSince(uint64_t start) {
  return static_cast<double>(NowNanos() - start) * 1e-9;
}

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return *std::move(result);
}
void Must(const Status& status) {
  GANNET_CHECK(status.ok(), "%s", status.ToString());
}

std::unique_ptr<txn::Database> Open(const std::string& directory, const Options& options, bool create) {
  txn::DatabaseOptions database_options;
  database_options.create_if_missing = create;
  database_options.durability = options.sync ? txn::DurabilityMode::kSync : txn::DurabilityMode::kAsync;
  database_options.durable_within = absl::Minutes(1);
  database_options.checkpoint_log_multiple = 0;
  database_options.recovery_threads = options.threads;
  database_options.memory_bytes = uint64_t{32} << 30;
  return Must(txn::Database::Open(directory, database_options));
}

tpcc::Tables TablesOf(txn::Database& database, const Options& options) {
  return Must(tpcc::Tables::Create(database, {.warehouses = static_cast<uint32_t>(options.warehouses)}));
}

// Returns the time of the run.
Time MakeDirectory(const std::string& directory, const Options& options) {
  const std::unique_ptr<txn::Database> database = Open(directory, options, /*create=*/true);
  const tpcc::Tables tables = TablesOf(*database, options);
  Must(database->Start());
  txn::Database* const nodes[] = {database.get()};
  Must(tpcc::Load(nodes, std::span(&tables, 1), {.threads = options.threads}, nullptr));
  Must(database->Checkpoint());
  tpcc::RunOptions run;
  run.threads = options.threads;
  run.warmup = absl::ZeroDuration();
  run.duration = absl::Seconds(options.seconds);
  run.in_flight = 1000;
  const double cpu = CpuSeconds();
  const uint64_t start = NowNanos();
  const tpcc::RunReport report = Must(tpcc::RunBenchmark(nodes, std::span(&tables, 1), run, nullptr));
  const Time time{.seconds = SecondsSince(start), .cpu_seconds = CpuSeconds() - cpu};
  std::printf("executed  %12.0f transactions/s of all kinds, %d threads, %.2f s, cpu %.2f s\n",
              report.transactions_per_second, options.threads, time.seconds, time.cpu_seconds);
  Must(database->CloseWithoutCheckpoint());
  return time;
}

Recovered Reopen(const std::string& directory, const Options& options) {
  const std::unique_ptr<txn::Database> database = Open(directory, options, /*create=*/false);
  Recovered recovered;
  const double cpu = CpuSeconds();
  const uint64_t start = NowNanos();
  Must(database->Start());
  recovered.seconds = SecondsSince(start);
  recovered.cpu_seconds = CpuSeconds() - cpu;
  recovered.report = database->recovery();
  Must(database->CloseWithoutCheckpoint());
  return recovered;
}

void Run(const Options& options) {
  std::string directory = options.open;
  Time executed;
  if (directory.empty()) {
    const char* parent = std::getenv("GANNET_BENCH_DIR");
    directory = std::string(parent == nullptr ? "." : parent) + "/recovery_bench." + std::to_string(getpid());
    executed = MakeDirectory(directory, options);
  }
  std::vector<Recovered> opens;
  for (int i = 0; i < options.opens; ++i) {
    opens.push_back(Reopen(directory, options));
    const Recovered& one = opens.back();
    std::printf(
        "open %d    %12.0f transactions/s: %.2f s (log %.2f, tables %.2f), cpu %.2f s, %.0f ns cpu/change, peak %llu "
        "MiB\n",
        i + 1, static_cast<double>(one.report.transactions) / one.seconds, one.seconds, one.report.log_seconds,
        one.report.load_seconds, one.cpu_seconds, one.cpu_seconds * 1e9 / static_cast<double>(one.report.changes),
        static_cast<unsigned long long>(one.report.peak_memory_bytes >> 20));
  }
  std::ranges::sort(opens, {}, &Recovered::seconds);
  const Recovered& median = opens[opens.size() / 2];
  const txn::RecoveryReport& report = median.report;
  std::printf("log       %llu transactions, %llu changes, %llu MiB; %llu records\n",
              static_cast<unsigned long long>(report.transactions), static_cast<unsigned long long>(report.changes),
              static_cast<unsigned long long>(report.log_bytes >> 20), static_cast<unsigned long long>(report.records));
  if (executed.seconds != 0) {
    const auto transactions = static_cast<double>(report.transactions);
    std::printf("median    %.2f times as fast as executed: %.0f against %.0f logged transactions/s\n",
                executed.seconds / median.seconds, transactions / median.seconds, transactions / executed.seconds);
    std::printf("          %.2f times as fast by cpu time: %.2f against %.2f us per logged transaction\n",
                executed.cpu_seconds / median.cpu_seconds, median.cpu_seconds * 1e6 / transactions,
                executed.cpu_seconds * 1e6 / transactions);
  }
  if (options.keep) {
    std::printf("directory %s\n", directory.c_str());
  } else if (options.open.empty()) {
    std::filesystem::remove_all(directory);
  }
}

int Usage(const char* what) {
  std::fprintf(stderr,
               "recovery_bench: %s\nusage: recovery_bench [--seconds N] [--threads N] [--warehouses N] [--opens N] "
               "[--sync] [--keep] [--open DIRECTORY]\n",
               what);
  return 2;
}

int Main(std::span<char* const> arguments) {
  Options options;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--sync") {
      options.sync = true;
      continue;
    }
    if (name == "--keep") {
      options.keep = true;
      continue;
    }
    if (i + 1 == arguments.size()) return Usage("a value is missing");
    const char* const value = arguments[++i];
    if (name == "--open") {
      options.open = value;
      continue;
    }
    int* const number = name == "--seconds"      ? &options.seconds
                        : name == "--threads"    ? &options.threads
                        : name == "--warehouses" ? &options.warehouses
                        : name == "--opens"      ? &options.opens
                                                 : nullptr;
    if (number == nullptr) return Usage("an unknown option");
    *number = std::atoi(value);
    if (*number < 1) return Usage("a number must be at least 1");
  }
  Run(options);
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  return gannet::Main(std::span(argv, static_cast<size_t>(argc)));
}
