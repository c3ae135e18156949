// Sometimes marks: places in the code that a simulated run reaches only when something goes wrong at the right moment.
//
//   if (!status.ok()) {
//     Sometimes<"commit: the outcome of a prepare is unknown">();
//     OweCall(...);
//   }
//
// A run that never reaches a place proves nothing about the code there. So the simulation counts: `gannet sim` prints
// how many seeds reached each mark, and with --require-marks a sweep that missed a mark fails (docs/simulation.md).
//
// A place that no scenario can reach, but another simulation does, has a SometimesInTests. Sweeps ignore it; the test
// that reaches it asserts this, and docs/simulation.md names both.
//
// A mark is registered under its name from the start of the program, also if no thread ever reaches it. Two places with
// one name are one mark. Outside a simulation a mark costs one predicted branch; it belongs where something goes wrong,
// not on a path that every transaction takes. Within a simulation all marks are used by one thread of the operating
// system.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/runtime.h"

namespace gannet {

class Mark {
 public:
  // `name` lives as long as the program. `in_scenarios`: some scenario should reach it.
  Mark(const char* name, bool in_scenarios);
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  void Reach() { ++reached_; }
  std::string_view name() const { return name_; }
  uint64_t reached() const { return reached_; }
  bool in_scenarios() const { return in_scenarios_; }

  // All marks of the program, by name. Not before main.
  static const std::vector<Mark*>& All();
  // Number of times that the current run has reached the mark `name`; 0 if there is no such mark.
  static uint64_t Reached(std::string_view name);
  // Called when a run begins.
  static void Reset();

 private:
  const std::string_view name_;
  const bool in_scenarios_;
  uint64_t reached_ = 0;
};

namespace internal {

// A string literal as a template argument.
template <size_t N>
struct MarkName {
  consteval MarkName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT: implicit
  char text[N];
};

template <MarkName kName, bool kInScenarios>
inline Mark mark_of{kName.text, kInScenarios};

}  // namespace internal

template <internal::MarkName kName>
inline void Sometimes() {
  if (Runtime::Current() != nullptr) [[unlikely]]
    internal::mark_of<kName, true>.Reach();
}

template <internal::MarkName kName>
inline void SometimesInTests() {
  if (Runtime::Current() != nullptr) [[unlikely]]
    internal::mark_of<kName, false>.Reach();
}

}  // namespace gannet
