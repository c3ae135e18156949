// A child of a crash test, as its parent sees it: a process to kill and a pipe to read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "lab/scenario/crash/message.h"

namespace gannet::scenario::crash {

class ChildProcess {
 public:
  // Starts this same program with these arguments.
  static StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments);
  // Kills it, if it lives.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  enum class Result { kMessages, kNothing, kEnd };
  // Waits up to `timeout` for messages and puts them in *messages. kEnd: the child is dead and all its messages were
  // read.
  StatusOr<Result> Read(absl::Duration timeout, std::vector<Message>* messages);
  void Kill();
  // Call it after kEnd. Returns the status from waitpid.
  StatusOr<int> Wait();

 private:
  ChildProcess(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string partial_;  // of a message
};

}  // namespace gannet::scenario::crash
