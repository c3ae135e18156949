#include "rdma/base/sometimes.h"

namespace gannet {
namespace {

// Marks are made before main, in any order.
std::vector<Mark*>& Registry() {
  static auto* const marks = new std::vector<Mark*>;
  return *marks;
}

}  // namespace

Mark::Mark(const char* name) : name_(name) {
  std::vector<Mark*>& marks = Registry();
  marks.insert(std::ranges::upper_bound(marks, name_, {}, &Mark::name), this);
}

const std::vector<Mark*>& Mark::All() {
  return Registry();
}

void Mark::Reset() {
  for (Mark* mark : Registry()) mark->reached_ = 0;
}

}  // namespace gannet
