// Trial: a run in a process of its own, so that the failure of one that crashes or hangs can be looked into, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "tests/model/driver.h"

namespace gannet::model {

// Runs `trial` in a child process, and returns what it returns. The trial stores the number of each step in *step when
// it begins it: if it crashes, or takes longer than `seconds`, that is the step of the failure. Not from a process that
// has other threads.
std::optional<Failure> RunInChild(uint64_t seconds,
                                  const std::function<std::optional<Failure>(std::atomic<uint64_t>* step)>& trial);

}  // namespace gannet::model
