// What does the log cost a worker, and how long until a commit is durable?
//
//   Commit            one thread: Reserve, Enter, encode, Append, Leave, Release; `encode` is encoding alone
//   DurableLatency    workers that commit continuously, with some other work between two commits: the time from Append
//                     until the worker sees that the commit is durable, p50, p99 and p99.9 in microseconds
//
// The log is in GANNET_BENCH_DIR or, if that is not set, in the current directory; it is removed afterwards.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "benchmark/benchmark.h"
#include "log/file/posix_file_system.h"
#include "log/format/transaction_format.h"
#include "log/log.h"

namespace gannet::log {
namespace {

constexpr uint64_t kMostSegments = 8;  // older ones are removed from time to time

class Directory {
 public:
  Directory() {
    const char* parent = std::getenv("GANNET_BENCH_DIR");
    path_ = std::string(parent == nullptr ? "." : parent) + "/log_bench." + std::to_string(getpid());
    std::filesystem::create_directory(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<Log> StartLog(FileSystem* files, const Directory& directory, const LogOptions& options) {
  StatusOr<std::unique_ptr<Log>> log = Log::Create(files, directory.path(), {}, options);
  GANNET_CHECK(log.ok(), "%s", log.status().ToString());
  GANNET_CHECK((*log)->Start(nullptr).ok(), "it starts");
  return std::move(*log);
}

size_t Encode(std::byte* at, uint64_t epoch, int changes, size_t payload_bytes) {
  TransactionEncoder encoder(at);
  for (uint64_t i = 0; i < static_cast<uint64_t>(changes); ++i) {
    std::byte* payload = encoder.Add(ChangeKind::kPut, 1, i, std::as_bytes(std::span(&i, 1)), payload_bytes);
    std::memset(payload, 7, payload_bytes);
  }
  return encoder.Finish(epoch);
}

uint64_t Commit(LogWriter* writer, int changes, size_t payload_bytes) {
  const size_t most = kTransactionOverheadBytes + static_cast<size_t>(changes) * MaxChangeBytes(8, payload_bytes);
  bool wait = true;
  Status reserved;
  while (!(reserved = writer->Reserve(most, &wait)).ok() && wait) std::this_thread::yield();
  GANNET_CHECK(reserved.ok(), "%s", reserved.ToString());
  const uint64_t epoch = writer->Enter();
  writer->Append(epoch, Encode(writer->Room(most), epoch, changes, payload_bytes), static_cast<uint32_t>(changes),
                 static_cast<size_t>(changes) * payload_bytes);
  writer->Leave(epoch);
  writer->Release(most);
  return epoch;
}

// Arguments: changes, bytes of each payload.
void BM_Commit(benchmark::State& state) {
  const auto changes = static_cast<int>(state.range(0));
  const auto payload_bytes = static_cast<size_t>(state.range(1));
  PosixFileSystem files;
  const Directory directory;
  auto log = StartLog(&files, directory, {});
  auto writer = log->OpenWriter().value();
  uint64_t commits = 0;
  for (auto _ : state) {
    Commit(writer.get(), changes, payload_bytes);
    if (++commits % 64 != 0) continue;
    // Measures the commit, not the disk: the buffer is never full here.
    state.PauseTiming();
    GANNET_CHECK(log->WaitDurable(log->last_dirty_epoch(), absl::Minutes(1)).ok(), "it is durable");
    if (const uint64_t segment = log->statistics().segments; segment > kMostSegments)
      GANNET_CHECK(log->RemoveSegmentsBelow(segment - 1).ok(), "segments are removed");
    state.ResumeTiming();
  }
  const LogStatistics statistics = log->statistics();
  state.counters["bytes"] = static_cast<double>(statistics.record_bytes) / static_cast<double>(commits);
}
BENCHMARK(BM_Commit)->Args({1, 64})->Args({4, 100})->Args({14, 60})->Iterations(64 * 500);

void BM_Encode(benchmark::State& state) {
  const auto changes = static_cast<int>(state.range(0));
  const auto payload_bytes = static_cast<size_t>(state.range(1));
  std::vector<std::byte> buffer(1 << 16);
  for (auto _ : state) benchmark::DoNotOptimize(Encode(buffer.data(), 1, changes, payload_bytes));
}
BENCHMARK(BM_Encode)->Args({1, 64})->Args({4, 100})->Args({14, 60});

struct Load {
  std::vector<uint64_t> latencies;  // ns
  uint64_t commits = 0;
};

// Commits until `stop_at`, with `work_nanos` of other work before each commit.
Load Run(Log* log, uint64_t work_nanos, uint64_t stop_at) {
  auto writer = log->OpenWriter().value();
  Load load;
  struct InFlight {
    uint64_t epoch;
    uint64_t since;
  };
  std::vector<InFlight> in_flight;
  size_t first = 0;
  for (uint64_t now = NowNanos(); now < stop_at;) {
    const uint64_t busy_until = now + work_nanos;
    while (now < busy_until) now = NowNanos();
    in_flight.push_back({Commit(writer.get(), 14, 60), now});
    ++load.commits;
    for (const uint64_t durable = log->durable_epoch(); first < in_flight.size() && in_flight[first].epoch <= durable;
         ++first)
      load.latencies.push_back(now - in_flight[first].since);
  }
  return load;
}

double Percentile(std::vector<uint64_t>& nanos, double part) {
  if (nanos.empty()) return 0;
  const auto at = nanos.begin() + static_cast<ptrdiff_t>(part * static_cast<double>(nanos.size() - 1));
  std::nth_element(nanos.begin(), at, nanos.end());
  return static_cast<double>(*at) / 1000;
}

// Arguments: workers, ns of other work per commit, group commit in us.
void BM_DurableLatency(benchmark::State& state) {
  const auto workers = static_cast<size_t>(state.range(0));
  PosixFileSystem files;
  std::vector<uint64_t> latencies;
  uint64_t commits = 0;
  double seconds = 0;
  for (auto _ : state) {
    const Directory directory;
    auto log = StartLog(&files, directory, {.group_commit = absl::Microseconds(state.range(2))});
    std::vector<Load> loads(workers);
    std::vector<std::thread> threads;
    const uint64_t begun = NowNanos();
    for (Load& load : loads)
      threads.emplace_back(
          [&] { load = Run(log.get(), static_cast<uint64_t>(state.range(1)), begun + 2'000'000'000); });
    for (std::thread& thread : threads) thread.join();
    seconds += static_cast<double>(NowNanos() - begun) / 1e9;
    for (const Load& load : loads) {
      latencies.insert(latencies.end(), load.latencies.begin(), load.latencies.end());
      commits += load.commits;
    }
    const LogStatistics statistics = log->statistics();
    state.counters["MB/s"] = static_cast<double>(statistics.disk_bytes) / seconds / 1e6;
    state.counters["batches/s"] = static_cast<double>(statistics.batches) / seconds;
  }
  state.counters["commits/s"] = static_cast<double>(commits) / seconds;
  state.counters["p50_us"] = Percentile(latencies, 0.5);
  state.counters["p99_us"] = Percentile(latencies, 0.99);
  state.counters["p999_us"] = Percentile(latencies, 0.999);
  state.counters["max_us"] = Percentile(latencies, 1);
}
BENCHMARK(BM_DurableLatency)
    ->ArgsProduct({{1, 2}, {10'000, 30'000}, {200, 500, 1000}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gannet::log

BENCHMARK_MAIN();
