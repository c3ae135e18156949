// A forked child of a test. It has a copy of the test's memory, but no other threads, and ends with this object.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>

#include "base/check.h"

namespace gannet::rdma {

class Forked {
 public:
  // The child's side.
  class Inside {
   public:
    Inside(int ready, int control) : ready_(ready), control_(control) {}
    void SayReady() const {
      const char sign = '.';
      GANNET_CHECK(write(ready_, &sign, 1) == 1, "errno %d", errno);
    }
    // Waits until the test ends the child.
    void AwaitEnd() const {
      char nothing = 0;
      while (read(control_, &nothing, 1) != 0) {
      }
    }

   private:
    int ready_;
    int control_;
  };

  // Must be called before there are other threads. `body` returns 0 on success.
  explicit Forked(const std::function<int(const Inside&)>& body) {
    std::array<int, 2> ready{};
    std::array<int, 2> control{};
    GANNET_CHECK(pipe2(ready.data(), O_CLOEXEC) == 0 && pipe2(control.data(), O_CLOEXEC) == 0, "errno %d", errno);
    std::fflush(nullptr);
    pid_ = fork();
    GANNET_CHECK(pid_ >= 0, "errno %d", errno);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // dies with the test
      close(ready[0]);
      close(control[1]);
      const int code = body(Inside(ready[1], control[0]));
      std::fflush(nullptr);
      _exit(code);
    }
    close(ready[1]);
    close(control[0]);
    ready_ = ready[0];
    control_ = control[1];
  }
  // Waits for the child's end, which must be a success.
  ~Forked() {
    close(control_);
    close(ready_);
    int status = 0;
    GANNET_CHECK(waitpid(pid_, &status, 0) == pid_ && status == 0, "a child ended with %d", status);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  // Waits until the child has called SayReady.
  void AwaitReady() const {
    char sign = 0;
    GANNET_CHECK(read(ready_, &sign, 1) == 1, "a child ended before it was ready");
  }

 private:
  pid_t pid_ = -1;
  int ready_ = -1;
  int control_ = -1;
};

}  // namespace gannet::rdma
