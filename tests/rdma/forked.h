// A child of a test that ends when the test is done with it: forked, so it has what the test had, but no other threads.
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
    // Until the test is done with it.
    void AwaitEnd() const {
      char nothing = 0;
      while (read(control_, &nothing, 1) != 0) {
      }
    }

   private:
    int ready_;
    int control_;
  };

  // Fork before there are threads. `body` returns 0 if all was well.
  explicit Forked(const std::function<int(const Inside&)>& body) {
    std::array<int, 2> ready{};
    std::array<int, 2> control{};
    GANNET_CHECK(pipe2(ready.data(), O_CLOEXEC) == 0 && pipe2(control.data(), O_CLOEXEC) == 0, "errno %d", errno);
    std::fflush(nullptr);
    pid_ = fork();
    GANNET_CHECK(pid_ >= 0, "errno %d", errno);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // the test's end is the child's
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
  // Waits for its end, which must be a good one.
  ~Forked() {
    close(control_);
    close(ready_);
    int status = 0;
    GANNET_CHECK(waitpid(pid_, &status, 0) == pid_ && status == 0, "a child ended with %d", status);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  // Until it has said so.
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
