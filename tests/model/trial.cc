#include "tests/model/trial.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace gannet::model {
namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    GANNET_CHECK(n > 0, "the pipe of a trial");
    done += static_cast<size_t>(n);
  }
}

std::string ReadAll(int fd) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    GANNET_CHECK(n >= 0, "the pipe of a trial");
    if (n == 0) return text;
    text.append(bytes, static_cast<size_t>(n));
  }
}

// Encodes what failed and the operations, separated by zero bytes.
std::string Encode(const Failure& failure) {
  std::string text = failure.what;
  for (const std::string& operation : failure.operations) absl::StrAppend(&text, std::string(1, '\0'), operation);
  return text;
}

Failure Decode(const std::string& text, uint64_t step) {
  Failure failure{.step = step, .what = {}, .operations = absl::StrSplit(text, '\0')};
  failure.what = failure.operations.front();
  failure.operations.erase(failure.operations.begin());
  return failure;
}

}  // namespace

std::optional<Failure> RunInChild(uint64_t seconds,
                                  const std::function<std::optional<Failure>(std::atomic<uint64_t>* step)>& trial) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  void* const shared = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                            /*fd=*/-1, /*offset=*/0);
  GANNET_CHECK(shared != MAP_FAILED, "no memory for a trial");
  auto* const step = new (shared) std::atomic<uint64_t>(0);
  int ends[2];
  GANNET_CHECK(pipe(ends) == 0, "no pipe for a trial");
  const pid_t child = fork();
  GANNET_CHECK(child >= 0, "no process for a trial");
  if (child == 0) {
    close(ends[0]);
    alarm(static_cast<unsigned>(seconds));  // SIGALRM ends a process that does not handle it
    const std::optional<Failure> failure = trial(step);
    if (failure.has_value()) {
      step->store(failure->step);
      WriteAll(ends[1], Encode(*failure));
    }
    _exit(failure.has_value() ? kFailed : kPassed);
  }
  close(ends[1]);
  const std::string told = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) GANNET_CHECK(errno == EINTR, "a trial cannot be waited for");
  const uint64_t reached = step->load();
  munmap(shared, sizeof(std::atomic<uint64_t>));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kPassed) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kFailed && !told.empty()) return Decode(told, reached);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return Failure{.step = reached, .what = absl::StrCat("it takes more than ", seconds, " s"), .operations = {}};
  }
  return Failure{.step = reached,
                 .what = WIFSIGNALED(status) ? absl::StrCat("it was ended by signal ", WTERMSIG(status), " (",
                                                            strsignal(WTERMSIG(status)), ")")
                                             : absl::StrCat("it exited with ", WEXITSTATUS(status)),
                 .operations = {"unknown: --trace prints them"}};
}

}  // namespace gannet::model
