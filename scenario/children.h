// Independent pieces of work, each in a process of its own: simulations do not share a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"

namespace gannet::scenario {

// `work(i)` for every i below `count`, each in a child process, `jobs` of them at once; what it returned is given to
// `done(i, result)`, in the order in which they end. `result` is an error if the work failed, the child died (what it
// said on stderr follows after the first line) or worked longer than `limit_seconds`. An error of `done` ends the other
// children and is returned. Cancelled, when the children have ended, soon after *stop (may be null) has become true.
// The caller has no other thread.
Status RunInChildren(size_t count, int jobs, uint64_t limit_seconds,
                     const std::function<StatusOr<std::string>(size_t)>& work,
                     const std::function<Status(size_t, const StatusOr<std::string>&)>& done,
                     const std::atomic<bool>* stop = nullptr);

}  // namespace gannet::scenario
