#include "rdma/shm/process_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/check.h"

namespace gannet::rdma::shm {
namespace {

struct ProcessStat {
  char state = 'X';  // of the first thread; 'X': no such process
  uint64_t threads = 0;
  uint64_t start_time = 0;
};

// Parses the number at *at and moves *at behind it.
uint64_t TakeNumber(std::string_view line, size_t* at) {
  uint64_t number = 0;
  for (; *at < line.size() && line[*at] >= '0' && line[*at] <= '9'; ++*at) {
    number = number * 10 + static_cast<uint64_t>(line[*at] - '0');
  }
  return number;
}

// Fields 3, 20 and 22 of /proc/<pid>/stat. Field 2, the name, may hold any characters, but it is the only one in
// brackets.
ProcessStat Parse(std::string_view line) {
  ProcessStat stat;
  const size_t bracket = line.rfind(')');
  if (bracket == std::string_view::npos || bracket + 2 >= line.size()) return stat;
  size_t at = bracket + 2;
  const char state = line[at];
  for (int field = 4; field <= 22; ++field) {
    at = line.find(' ', at);
    if (at == std::string_view::npos) return stat;
    ++at;
    if (field == 20) stat.threads = TakeNumber(line, &at);
    if (field == 22) stat.start_time = TakeNumber(line, &at);
  }
  stat.state = state;
  return stat;
}

ProcessStat Stat(uint64_t pid) {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%llu/stat", static_cast<unsigned long long>(pid));
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 1024> line;
  const ssize_t n = read(fd, line.data(), line.size());
  close(fd);
  return n <= 0 ? ProcessStat{} : Parse({line.data(), static_cast<size_t>(n)});
}

}  // namespace

ProcessIdentity ThisProcess() {
  const auto pid = static_cast<uint64_t>(getpid());
  const ProcessStat stat = Stat(pid);
  GANNET_CHECK(stat.state != 'X', "/proc/%d/stat cannot be read: mount /proc", pid);
  return {pid, stat.start_time};
}

// The first thread of a process may end before the other threads do.
bool IsRunning(const ProcessIdentity& process) {
  const ProcessStat stat = Stat(process.pid);
  const bool ended = stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
  return !ended && stat.start_time == process.start_time;
}

}  // namespace gannet::rdma::shm
