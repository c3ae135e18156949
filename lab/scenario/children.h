// Runs independent pieces of work, each in a process of its own: simulations do not share a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"

namespace gannet::scenario {

// Runs `work(i)` for every i below `count`, each in a child process, `jobs` of them at once. Passes each result to
// `done(i, result)`, in the order in which the children end. `result` is an error if the work failed, if the child died
// (its text on stderr follows after the first line), or if it worked longer than `limit_seconds`. An error of `done`
// ends the other children and is returned. Cancelled soon after *stop (may be null) has become true, when the children
// have ended. The caller must have no other thread.
Status RunInChildren(size_t count, int jobs, uint64_t limit_seconds,
                     const std::function<StatusOr<std::string>(size_t)>& work,
                     const std::function<Status(size_t, const StatusOr<std::string>&)>& done,
                     const std::atomic<bool>* stop = nullptr);

}  // namespace gannet::scenario
