#include "bench/harness/calibration.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"
#include "base/cache_line.h"
#include "base/clock.h"

namespace gannet::bench {
namespace {

constexpr uint64_t kReads = 400'000;
// The time is checked after this many reads, because an emulated machine would take seconds for all of them.
constexpr uint64_t kReadsPerLook = 10'000;
constexpr uint64_t kLongestNanos = 250'000'000;
constexpr absl::Duration kShortestCalibratedRun = absl::Seconds(1);

// A bijection of [0, 2^bits): the place of step `i` of the walk. It looks random to a prefetcher.
uint64_t PlaceOfStep(uint64_t i, int bits) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (const uint64_t multiplier : {0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull}) {
    i = (i * multiplier) & mask;
    i ^= i >> (bits / 2);
  }
  return i;
}

// Eight times the last-level cache, rounded to a power of two within 64 MiB and 256 MiB.
uint64_t BufferBytes() {
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  return std::clamp(std::bit_ceil(static_cast<uint64_t>(cache) * 8), uint64_t{64} << 20, uint64_t{256} << 20);
}

}  // namespace

StatusOr<Calibration> Calibrate() {
  const uint64_t bytes = BufferBytes();
  const int bits = std::countr_zero(bytes / kLineBytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrFormat("no memory for the %d bytes that measure how fast it is; raise the limit of this process "
                        "(ulimit -v), or of its "
                        "container",
                        bytes));
  // Huge pages, as in the fabric, so that page walks cost the same. This is advice; a refusal is no failure.
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto* lines = static_cast<std::byte*>(memory);
  for (uint64_t i = 0; i < bytes / kLineBytes; ++i) {
    StoreWord(lines + PlaceOfStep(i, bits) * kLineBytes, PlaceOfStep(i + 1, bits));
  }

  uint64_t place = 0;
  const uint64_t start = NowNanos();
  uint64_t reads = 0;
  uint64_t elapsed = 0;
  while (reads < kReads && elapsed < kLongestNanos) {
    for (uint64_t i = 0; i < kReadsPerLook; ++i) place = LoadWord(lines + place * kLineBytes);
    reads += kReadsPerLook;
    elapsed = NowNanos() - start;
  }
  // The walk's end depends on every read, so the compiler cannot leave one out.
  StoreWord(lines, place);
  munmap(memory, bytes);
  return Calibration{.dependent_read_ns = static_cast<double>(elapsed) / static_cast<double>(reads),
                     .buffer_bytes = bytes};
}

StatusOr<Calibration> CalibrateForRun(absl::Duration run) {
  if (run < kShortestCalibratedRun) return Calibration();
  return Calibrate();
}

}  // namespace gannet::bench
