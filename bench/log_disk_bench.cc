// How long does a durable write take? One thread, WriteDurably into a preallocated file, front to back, as the log does
// it. p50, p99 and p99.9 in microseconds. The disk is that of GANNET_BENCH_DIR or, if that is not set, of the current
// directory.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "benchmark/benchmark.h"
#include "log/file/aligned_buffer.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"

namespace gannet::log {
namespace {

constexpr uint64_t kFileBytes = uint64_t{64} << 20;

enum Kind : int64_t { kPosix, kPosixPlain, kPosixCached, kPmem, kPosixZeroAhead };

std::unique_ptr<FileSystem> Make(int64_t kind) {
  switch (kind) {
    case kPosix:
      return std::make_unique<PosixFileSystem>(PosixOptions{.zero_ahead = false});
    case kPosixPlain:
      return std::make_unique<PosixFileSystem>(PosixOptions{.io_uring = false, .zero_ahead = false});
    case kPosixCached:
      return std::make_unique<PosixFileSystem>(PosixOptions{.direct = false});
    case kPosixZeroAhead:
      return std::make_unique<PosixFileSystem>();
    default:
      return std::make_unique<PmemFileSystem>();
  }
}

void Require(const Status& status) {
  GANNET_CHECK(status.ok(), "%s", status.ToString());
}

std::unique_ptr<File> NewFile(FileSystem& files, const std::string& path, bool zeroed) {
  if (const Status removed = files.Remove(path); !absl::IsNotFound(removed)) Require(removed);
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kCreate);
  Require(file.status());
  Require((*file)->Allocate(kFileBytes));
  const AlignedBuffer zeros(size_t{1} << 20);
  for (uint64_t at = 0; zeroed && at < kFileBytes; at += zeros.size()) Require((*file)->Write(at, zeros.span()));
  Require((*file)->Sync());
  return std::move(*file);
}

double Percentile(std::vector<uint64_t>& nanos, double part) {
  const auto at = nanos.begin() + static_cast<ptrdiff_t>(part * static_cast<double>(nanos.size() - 1));
  std::nth_element(nanos.begin(), at, nanos.end());
  return static_cast<double>(*at) / 1000;
}

// Arguments: kind; bytes of a write; 1: the file was filled with zeros before, not only allocated.
void WriteDurably(benchmark::State& state) {
  const char* directory = std::getenv("GANNET_BENCH_DIR");
  const std::string path =
      std::string(directory == nullptr ? "." : directory) + "/log_disk_bench." + std::to_string(getpid());
  const std::unique_ptr<FileSystem> files = Make(state.range(0));
  const auto bytes = static_cast<size_t>(state.range(1));
  std::unique_ptr<File> file = NewFile(*files, path, state.range(2) != 0);
  AlignedBuffer buffer(bytes);
  std::fill(buffer.span().begin(), buffer.span().end(), std::byte{0x5a});

  std::vector<uint64_t> nanos;
  uint64_t offset = 0;
  for (auto _ : state) {
    if (offset + bytes > kFileBytes) {
      state.PauseTiming();
      file = NewFile(*files, path, state.range(2) != 0);
      offset = 0;
      state.ResumeTiming();
    }
    const uint64_t begin = NowNanos();
    Require(file->WriteDurably(offset, buffer.span()));
    nanos.push_back(NowNanos() - begin);
    offset += bytes;
  }
  state.counters["p50_us"] = Percentile(nanos, 0.5);
  state.counters["p99_us"] = Percentile(nanos, 0.99);
  state.counters["p999_us"] = Percentile(nanos, 0.999);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
  state.SetLabel(files->Description());
  file.reset();
  Require(files->Remove(path));
}

BENCHMARK(WriteDurably)
    ->ArgNames({"kind", "bytes", "zeroed"})
    ->ArgsProduct({{kPosix, kPosixPlain, kPosixCached, kPmem}, {4096, 64 << 10, 1 << 20}, {0, 1}})
    ->ArgsProduct({{kPosixZeroAhead}, {4096, 64 << 10, 1 << 20}, {0}})
    ->UseRealTime()
    ->MinTime(0.5);

}  // namespace
}  // namespace gannet::log

BENCHMARK_MAIN();
