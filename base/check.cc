#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gannet {

void CheckFailed(const char* file, int line, const char* condition, const std::string& state) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, state.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace gannet
