#include "base/usable_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gannet {

uint64_t UsableMemoryBytes() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t limit = 0;
  // "max" if there is no limit: then nothing is read.
  if (std::ifstream group("/sys/fs/cgroup/memory.max"); group >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

}  // namespace gannet
