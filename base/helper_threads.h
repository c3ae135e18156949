// HelperThreads: threads that share the work of the thread that makes them.
//
//   HelperThreads others("log reader", threads - 1, [&](int number) { Work(number); });
//   Work(0);
//   others.Join();
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/thread.h"

namespace gannet {

class HelperThreads {
 public:
  // Starts `count` threads, which run body(1) to body(count). The system may have fewer to give (ulimit -u, or the
  // limit of a container): then there are fewer, with the lowest numbers. So the work must be done by any number of
  // them.
  HelperThreads(const std::string& name, int count, const std::function<void(int number)>& body);
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;
  ~HelperThreads() { Join(); }

  // Waits until all have returned.
  void Join();

 private:
  std::vector<Thread> threads_;
};

}  // namespace gannet
