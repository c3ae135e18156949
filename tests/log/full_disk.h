// FullDisk: a disk on which no file of this process grows beyond a limit, as long as the object lives.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <cstdint>

namespace gannet::log {

// A process limit takes the place of a full disk, because it needs no root.
class FullDisk {
 public:
  explicit FullDisk(uint64_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  sighandler_t handler_;
};

}  // namespace gannet::log
