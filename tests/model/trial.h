// Trial: a run in a child process, so that a run that crashes or hangs can be examined, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "tests/model/driver.h"

namespace gannet::model {

// Runs `trial` in a child process, and returns its result. The trial stores the number of each step in *step when the
// step begins: if the child crashes, or takes longer than `seconds`, that is the step of the failure. The calling
// process must have no other threads.
std::optional<Failure> RunInChild(uint64_t seconds,
                                  const std::function<std::optional<Failure>(std::atomic<uint64_t>* step)>& trial);

}  // namespace gannet::model
