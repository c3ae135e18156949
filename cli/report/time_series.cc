#include "cli/report/time_series.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace gannet::cli {
namespace {

void AddLine(const bench::Interval& interval, const std::string& name, const bench::KindInterval& k,
             std::string* text) {
  absl::StrAppendFormat(text, "%.6f,%.6f,%s,%d,%.3f,%d,%.3f,%.3f,%.3f,%.3f\n", interval.at_seconds, interval.seconds,
                        name, k.operations, interval.Rate(k.operations), k.aborts, k.p50_us, k.p95_us, k.p99_us,
                        k.max_us);
}

}  // namespace

std::string TimeSeriesCsv(const std::vector<bench::Interval>& timeline, const std::vector<std::string>& names) {
  std::vector<bool> used(names.size(), false);
  for (const bench::Interval& interval : timeline) {
    for (size_t kind = 0; kind < std::min(names.size(), interval.kinds.size()); ++kind) {
      if (interval.kinds[kind].operations > 0) used[kind] = true;
    }
  }
  std::string text = "at_seconds,seconds,type,finished,finished_per_second,aborted,p50_us,p95_us,p99_us,max_us\n";
  for (const bench::Interval& interval : timeline) {
    for (size_t kind = 0; kind < names.size(); ++kind) {
      if (used[kind]) AddLine(interval, names[kind], interval.kinds[kind], &text);
    }
    AddLine(interval, "all", interval.all, &text);
  }
  return text;
}

}  // namespace gannet::cli
