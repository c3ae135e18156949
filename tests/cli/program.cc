#include "tests/cli/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "base/check.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace {

// The text without the lines "...: 3 s", which only a slow machine has (cli/common/progress.h).
std::string WithoutSilentSteps(const std::string& text) {
  std::string rest;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    const size_t number = line.rfind(": ");
    const bool silent = number != std::string::npos && line.ends_with(" s\n") &&
                        line.find_first_not_of("0123456789", number + 2) == line.size() - 3;
    if (!silent) rest += line;
  }
  return rest;
}

// Two ends of a pipe or a terminal: what is written to `write` can be read from `read`.
struct Ends {
  int read;
  int write;
};

Ends MakePipe() {
  std::array<int, 2> ends{};
  GANNET_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "errno %d", errno);
  return {ends[0], ends[1]};
}

Ends MakeTerminal() {
  const int control = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  GANNET_CHECK(control >= 0 && grantpt(control) == 0 && unlockpt(control) == 0, "errno %d", errno);
  std::array<char, 128> name{};
  GANNET_CHECK(ptsname_r(control, name.data(), name.size()) == 0, "errno %d", errno);
  const int terminal = open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  GANNET_CHECK(terminal >= 0, "errno %d", errno);
  return {control, terminal};
}

// True if `process` is running and has not received a signal that was sent to it.
bool IsPending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:") && line.find('Z') != std::string::npos) return false;
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::stoull(line.substr(line.find('\t') + 1), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

void Limit(decltype(RLIMIT_FSIZE) what, uint64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  setrlimit(what, &limit);
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  std::vector<char*> argv = {const_cast<char*>(GANNET_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const Ends out = MakePipe();
  const Ends err = surroundings.err_is_terminal || surroundings.all_is_terminal ? MakeTerminal() : MakePipe();
  pid_ = fork();
  GANNET_CHECK(pid_ >= 0, "errno %d", errno);
  if (pid_ == 0) {
    dup2(surroundings.out.empty() ? out.write : open(surroundings.out.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(err.write, STDERR_FILENO);
    if (surroundings.all_is_terminal) {
      dup2(err.write, STDIN_FILENO);
      dup2(err.write, STDOUT_FILENO);
    }
    if (!surroundings.in.empty()) dup2(open(surroundings.in.c_str(), O_RDONLY), STDIN_FILENO);
    if (surroundings.output_is_closed) {
      close(STDOUT_FILENO);
      close(STDERR_FILENO);
    }
    if (!surroundings.temporary_directory.empty()) setenv("TMPDIR", surroundings.temporary_directory.c_str(), 1);
    Limit(RLIMIT_FSIZE, surroundings.most_file_bytes);
    Limit(RLIMIT_AS, surroundings.most_address_space_bytes);
    execv(GANNET_PROGRAM, argv.data());
    _exit(127);
  }
  close(out.write);
  close(err.write);
  out_ = out.read;
  err_ = err.read;
  if (surroundings.all_is_terminal) {
    close(out.read);
    out_ = std::exchange(err_, -1);
  }
}

Program::~Program() {
  if (pid_ >= 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

bool Program::ReadMore() {
  std::array<pollfd, 2> ends = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  GANNET_CHECK(poll(ends.data(), ends.size(), -1) >= 0 || errno == EINTR, "errno %d", errno);
  for (const pollfd& end : ends) {
    if (end.fd < 0 || end.revents == 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t n = read(end.fd, buffer.data(), buffer.size());
    if (n > 0) {
      (end.fd == out_ ? outcome_.out : outcome_.err).append(buffer.data(), static_cast<size_t>(n));
    } else if (n == 0 || errno != EINTR) {  // reading a terminal without writers gives EIO
      int& fd = end.fd == out_ ? out_ : err_;
      close(fd);
      fd = -1;
    }
  }
  return true;
}

bool Program::WaitFor(const std::string& said, const std::string& text) {
  while (said.find(text) == std::string::npos) {
    if (!ReadMore()) return false;
  }
  return true;
}

void Program::Type(const std::string& text) {
  const ssize_t written = write(out_, text.data(), text.size());
  GANNET_CHECK(written == static_cast<ssize_t>(text.size()), "errno %d", errno);
}

void Program::Signal(int signal) {
  kill(pid_, signal);
  while (IsPending(pid_, signal)) usleep(1000);
}

Outcome Program::Wait() {
  while (ReadMore()) {
  }
  int status = 0;
  GANNET_CHECK(waitpid(pid_, &status, 0) == pid_, "errno %d", errno);
  pid_ = -1;
  outcome_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome_.err = WithoutSilentSteps(outcome_.err);
  return std::move(outcome_);
}

}  // namespace gannet::cli
