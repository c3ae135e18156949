#include "cli/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gannet::cli {

uint64_t UsableMemoryBytes() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t limit = 0;
  // "max" if there is no limit: then nothing is read.
  if (std::ifstream group("/sys/fs/cgroup/memory.max"); group >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

uint64_t ResidentBytes() {
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace gannet::cli
