// ShareWork: does pieces of work on the calling thread and on threads that it makes for them.
//
//   return ShareWork("rebuild", files.size(), threads, [&](size_t piece, int) { return Read(files[piece]); });
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace gannet {

// Calls work(piece, thread) for each piece < `pieces`, and begins them in this order. `thread` is below `threads`; two
// calls with the same number never run at once. Number 0 is the calling thread; the others are called `name`. After a
// call that fails no further one begins. Returns the first failure, when all calls have returned.
//
// The system may have fewer threads to give (ulimit -u, or the limit of a container): then fewer share the work. So no
// piece may wait for another one.
//
// oneTBB has no such promises: it begins pieces in another order, on at most one thread per core, and on one only in a
// forked process that had used it before; it ends the process if the system has no thread (its issue 255); and no
// simulation can own its threads.
Status ShareWork(const std::string& name, size_t pieces, int threads,
                 absl::FunctionRef<Status(size_t piece, int thread)> work);

}  // namespace gannet
