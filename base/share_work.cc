#include "base/share_work.h"

#include <atomic>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/thread.h"

namespace gannet {

Status ShareWork(const std::string& name, size_t pieces, int threads,
                 absl::FunctionRef<Status(size_t piece, int thread)> work) {
  std::atomic<size_t> next{0};
  Mutex mutex;
  Status result;
  const auto share = [&](int thread) {
    for (size_t piece = next++; piece < pieces; piece = next++) {
      Status status = work(piece, thread);
      if (status.ok()) continue;
      next = pieces;
      const std::lock_guard lock(mutex);
      result.Update(std::move(status));
    }
  };
  std::vector<Thread> others;
  {
    const absl::Cleanup join = [&others] {
      for (Thread& thread : others) thread.join();
    };
    try {
      for (int thread = 1; thread < threads && static_cast<size_t>(thread) < pieces; ++thread) {
        others.emplace_back(name, [&share, thread] { share(thread); });
      }
    } catch (const std::system_error&) {
      // There is no further thread.
    }
    share(0);
  }
  return result;
}

}  // namespace gannet
