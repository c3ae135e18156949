#include "bench/harness/resident_memory.h"

#include <unistd.h>

#include <fstream>

namespace gannet::bench {

uint64_t ResidentBytes() {
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace gannet::bench
