// The workloads of YCSB, and two that only write: the operations, their shares, and the distribution of their keys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/random.h"

namespace gannet::ycsb {

enum class Kind : uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };
inline constexpr int kKinds = 5;
inline constexpr std::string_view kKindNames[kKinds] = {"read", "update", "insert", "scan", "read_modify_write"};

enum class Distribution : uint8_t {
  kUniform,  // over all keys: the loaded ones and the client's own inserts
  kZipfian,  // over the loaded keys, theta 0.99, the popular ones scattered over the key space ("scrambled")
  kLatest,   // zipfian by age: the client's own newest insert is the most popular
};
inline constexpr std::string_view kDistributionNames[] = {"uniform", "zipfian", "latest"};

// Percentages in the order of Kind; the sum is 100.
using Mix = std::array<int, kKinds>;

struct Workload {
  std::string_view name;
  std::string_view title;
  Mix mix;
  Distribution distribution;  // YCSB's distribution for this workload
};

inline constexpr Workload kWorkloads[] = {
    {"a", "update heavy", {50, 50, 0, 0, 0}, Distribution::kZipfian},
    {"b", "read mostly", {95, 5, 0, 0, 0}, Distribution::kZipfian},
    {"c", "read only", {100, 0, 0, 0, 0}, Distribution::kZipfian},
    {"d", "read latest", {95, 0, 5, 0, 0}, Distribution::kLatest},
    {"e", "short ranges", {0, 0, 5, 95, 0}, Distribution::kZipfian},
    {"f", "read-modify-write", {50, 0, 0, 0, 50}, Distribution::kZipfian},
    {"load", "inserts only", {0, 0, 100, 0, 0}, Distribution::kUniform},
    {"update", "updates only", {0, 100, 0, 0, 0}, Distribution::kZipfian},
};

constexpr std::optional<Workload> FindWorkload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (name == workload.name) return workload;
  }
  return std::nullopt;
}

inline Kind DrawKind(const Mix& mix, Random* random) {
  int left = static_cast<int>(random->Below(100));
  int kind = 0;
  while (left >= mix[static_cast<size_t>(kind)]) left -= mix[static_cast<size_t>(kind++)];
  return static_cast<Kind>(kind);
}

// Records of a scan: uniform in [1, kMaxScan].
inline constexpr int kMaxScan = 100;

}  // namespace gannet::ycsb
