// Independent pieces of work, each in a process of its own: simulations do not share a process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "rdma/base/status.h"

namespace gannet::cli {

// `work(i)` for every i below `count`, each in a child process, `jobs` of them at once; what it returned is given to
// `done(i, text)`, in the order in which they end. The first error (also one of `done`) ends the others and is
// returned; a child that takes longer than `limit_seconds` is one. The caller has no other thread.
Status RunInChildren(size_t count, int jobs, uint64_t limit_seconds,
                     const std::function<StatusOr<std::string>(size_t)>& work,
                     const std::function<Status(size_t, const std::string&)>& done);

}  // namespace gannet::cli
