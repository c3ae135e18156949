// Measures one engine, in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/peers/data.h"
#include "bench/peers/engine.h"
#include "bench/peers/operations.h"

namespace gannet::bench::peers {

// A number that is measured in one run: the rate of an operation, in units per second, or a size in bytes per row.
struct Figure {
  std::string id;  // Operation::id, or one of the sizes below
  double value = 0;
  uint64_t digest = 0;  // what the engine answered; the same for every engine. 0: nothing was read
};

// Sizes, for each table T: "T.memory", by which the process grew, and "T.counted", Engine::CountedBytes, both per row
// after the load and a read of all rows. "files": of all files per row, in a durable database after Engine::Settle.
inline constexpr const char* kMemorySuffix = ".memory";
inline constexpr const char* kCountedSuffix = ".counted";
inline constexpr const char* kFilesId = "files";

// How the time of an operation is measured.
enum class ClockKind : uint8_t {
  kWall,
  // The processor time of its threads, without the time in which others ran or the disk worked: for machines that are
  // not idle. Threads that an engine has in the background do not count. Durable operations, which wait for the disk,
  // are measured by kWall all the same.
  kCpu,
};

struct MeasureOptions {
  ClockKind clock = ClockKind::kWall;
  // Each operation is repeated, with other keys, until it has taken at least this long.
  absl::Duration at_least = absl::Milliseconds(300);
  uint64_t seed = 1;
};

// `directory` is empty, and has what the engine wrote afterwards. Errors name the operation.
StatusOr<std::vector<Figure>> Measure(const EngineKind& kind, const Data& data, const std::string& directory,
                                      const std::vector<Operation>& operations, const MeasureOptions& options);

}  // namespace gannet::bench::peers
