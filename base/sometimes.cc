#include "base/sometimes.h"

namespace gannet {
namespace {

// Marks are made before main, in any order.
std::vector<Mark*>& Registry() {
  static auto* const marks = new std::vector<Mark*>;
  return *marks;
}

}  // namespace

Mark::Mark(const char* name, bool in_scenarios) : name_(name), in_scenarios_(in_scenarios) {
  std::vector<Mark*>& marks = Registry();
  marks.insert(std::ranges::upper_bound(marks, name_, {}, &Mark::name), this);
}

const std::vector<Mark*>& Mark::All() {
  return Registry();
}

uint64_t Mark::Reached(std::string_view name) {
  for (const Mark* mark : Registry()) {
    if (mark->name_ == name) return mark->reached_;
  }
  return 0;
}

void Mark::Reset() {
  for (Mark* mark : Registry()) mark->reached_ = 0;
}

}  // namespace gannet
