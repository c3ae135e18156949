#include "base/helper_threads.h"

#include <system_error>

namespace gannet {

HelperThreads::HelperThreads(const std::string& name, int count, const std::function<void(int number)>& body) {
  for (int number = 1; number <= count; ++number) {
    try {
      threads_.emplace_back(name, [body, number] { body(number); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void HelperThreads::Join() {
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace gannet
