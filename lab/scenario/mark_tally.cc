#include "lab/scenario/mark_tally.h"

#include "base/sometimes.h"

namespace gannet::scenario {

MarkTally::MarkTally() {
  for (const Mark* mark : Mark::All()) {
    if (mark->in_scenarios()) seeds_.emplace(mark->name(), 0);
  }
}

void MarkTally::Add(const ScenarioReport& report) {
  for (const auto& [mark, times] : report.marks) ++seeds_[mark];
}

std::vector<std::string> MarkTally::NeverReached() const {
  std::vector<std::string> result;
  for (const auto& [mark, seeds] : seeds_) {
    if (seeds == 0) result.push_back(mark);
  }
  return result;
}

}  // namespace gannet::scenario
