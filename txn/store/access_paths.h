// How transactions reached records of other nodes: plain data for reports. txn/path/offload_chooser.h chooses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gannet::txn {

enum class AccessPath : uint8_t { kOneSided, kCall };

enum class AccessKind : uint8_t { kGet, kGetMany, kScan, kSearch, kChange, kInsert, kRemove };
inline constexpr size_t kAccessKinds = 7;
// The names by AccessKind; also the keys of JSON reports and the labels of metrics.
inline constexpr std::array<const char*, kAccessKinds> kAccessKindNames = {"get",    "get_many", "scan",  "search",
                                                                           "change", "insert",   "remove"};

// The accesses of one kind to one table. A GetMany counts once for each table and node that it asks.
struct PathStatistics {
  uint64_t one_sided = 0;
  uint64_t calls = 0;

  // The members below count both paths, with ReadPathPolicy::kAdaptive.
  uint64_t backed_off = 0;     // one-sided although a call seemed cheaper: the owner announced that it is busy
  uint64_t estimated = 0;      // accesses for which both paths were compared; the sums below are of these
  double one_sided_nanos = 0;  // estimated cost of the one-sided path, summed
  double call_nanos = 0;       // estimated cost of the call, summed
  uint64_t contrary = 0;       // went the dearer path, to measure it
  double contrary_nanos = 0;   // what these took longer than the cheaper path was estimated to take, summed

  uint64_t accesses() const { return one_sided + calls; }
  // Averages in nanoseconds; 0 if there is nothing to average.
  double one_sided_estimate() const { return Each(one_sided_nanos, estimated); }
  double call_estimate() const { return Each(call_nanos, estimated); }
  double contrary_cost() const { return Each(contrary_nanos, contrary); }

  PathStatistics& operator+=(const PathStatistics& other) {
    one_sided += other.one_sided;
    calls += other.calls;
    backed_off += other.backed_off;
    estimated += other.estimated;
    one_sided_nanos += other.one_sided_nanos;
    call_nanos += other.call_nanos;
    contrary += other.contrary;
    contrary_nanos += other.contrary_nanos;
    return *this;
  }
  // `earlier`: the same statistics at an earlier time.
  PathStatistics Since(const PathStatistics& earlier) const {
    PathStatistics since = *this;
    since.one_sided -= earlier.one_sided;
    since.calls -= earlier.calls;
    since.backed_off -= earlier.backed_off;
    since.estimated -= earlier.estimated;
    since.one_sided_nanos -= earlier.one_sided_nanos;
    since.call_nanos -= earlier.call_nanos;
    since.contrary -= earlier.contrary;
    since.contrary_nanos -= earlier.contrary_nanos;
    return since;
  }

 private:
  static double Each(double sum, uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

struct TablePaths {
  std::string table;
  AccessKind kind;
  PathStatistics paths;
};

// Adds each entry of `part` to that of the same table and kind in *sum, or at its end.
inline void AddPaths(const std::vector<TablePaths>& part, std::vector<TablePaths>* sum) {
  for (const TablePaths& each : part) {
    const auto same = std::find_if(sum->begin(), sum->end(), [&each](const TablePaths& other) {
      return other.table == each.table && other.kind == each.kind;
    });
    if (same == sum->end()) {
      sum->push_back(each);
    } else {
      same->paths += each.paths;
    }
  }
}

// What came between two times. Entries without an access are left out.
inline std::vector<TablePaths> PathsBetween(const std::vector<TablePaths>& earlier,
                                            const std::vector<TablePaths>& later) {
  std::vector<TablePaths> between;
  for (const TablePaths& each : later) {
    TablePaths since = each;
    for (const TablePaths& before : earlier) {
      if (before.table == each.table && before.kind == each.kind) since.paths = each.paths.Since(before.paths);
    }
    if (since.paths.accesses() > 0) between.push_back(since);
  }
  return between;
}

}  // namespace gannet::txn
