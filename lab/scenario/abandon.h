// Abandon: leaves an object to killed or stopped threads of a simulation.
#pragma once

#include <memory>
#include <vector>

namespace gannet::scenario {

// The object is never destroyed, because threads that will not run again still refer to it. A reference stays, so a
// leak checker does not report it. Not thread-safe: for the observer of a simulation.
template <class T>
void Abandon(std::unique_ptr<T> object) {
  static auto* const abandoned = new std::vector<T*>();
  abandoned->push_back(object.release());
}

}  // namespace gannet::scenario
