#include "lab/scenario/crash/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

extern char** environ;

namespace gannet::scenario::crash {
namespace {

constexpr int kPipeBytes = 1 << 20;  // so that the child seldom waits for the parent; the kernel may give less

Status SystemError(const char* what, int error) {
  return absl::InternalError(absl::StrFormat("cannot %s: %s", what, std::strerror(error)));
}

}  // namespace

StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("make a pipe", errno);
  fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  std::vector<std::string> words = {"gannet"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // The child gets its own process group: Ctrl-C is for the test, which ends after this cycle.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return ChildProcess(pid, ends[0]);
  close(ends[0]);
  return SystemError("start a child process", error);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)), partial_(std::move(other.partial_)) {}

ChildProcess::~ChildProcess() {
  if (pipe_ >= 0) close(pipe_);
  if (pid_ <= 0) return;
  Kill();
  waitpid(pid_, nullptr, 0);
}

void ChildProcess::Kill() {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

StatusOr<int> ChildProcess::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) != pid_) {
    if (errno != EINTR) return SystemError("wait for the child", errno);
  }
  pid_ = -1;
  return status;
}

StatusOr<ChildProcess::Result> ChildProcess::Read(absl::Duration timeout, std::vector<Message>* messages) {
  messages->clear();
  pollfd wanted{.fd = pipe_, .events = POLLIN, .revents = 0};
  const absl::Duration patience = std::clamp(timeout, absl::ZeroDuration(), absl::Seconds(1));
  const timespec wait = absl::ToTimespec(patience);
  const int ready = ppoll(&wanted, 1, &wait, nullptr);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Result::kNothing;
  if (ready < 0) return SystemError("wait for the child's messages", errno);
  std::array<char, 1 << 16> buffer;
  const ssize_t got = read(pipe_, buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return Result::kNothing;
  if (got < 0) return SystemError("read the child's messages", errno);
  if (got == 0) return Result::kEnd;
  partial_.append(buffer.data(), static_cast<size_t>(got));
  messages->resize(partial_.size() / sizeof(Message));
  const size_t whole = messages->size() * sizeof(Message);
  if (whole != 0) std::memcpy(messages->data(), partial_.data(), whole);
  partial_.erase(0, whole);
  return messages->empty() ? Result::kNothing : Result::kMessages;
}

}  // namespace gannet::scenario::crash
