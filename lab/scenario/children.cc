#include "lab/scenario/children.h"

#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace gannet::scenario {
namespace {

constexpr int kPollMillis = 200;
// The limit of a child's elapsed time, as a multiple of the limit of its CPU time: generous, because the machine may be
// busy.
constexpr uint64_t kMostWaiting = 20;
// Separates the child's text on stderr from the result of the work.
constexpr char kMark[] = "\nRESULT\n";

// A child process. It is killed if this object is destroyed before the process has ended.
class Child {
 public:
  static StatusOr<Child> Start(size_t number, uint64_t limit_seconds,
                               const std::function<StatusOr<std::string>(size_t)>& work);
  ~Child() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    Reap();
  }
  Child(Child&& other) noexcept { *this = std::move(other); }
  Child& operator=(Child&& other) noexcept {
    std::swap(killed_, other.killed_);
    std::swap(pid_, other.pid_);
    std::swap(output_, other.output_);
    std::swap(number_, other.number_);
    std::swap(limit_seconds_, other.limit_seconds_);
    std::swap(deadline_nanos_, other.deadline_nanos_);
    std::swap(text_, other.text_);
    return *this;
  }

  size_t number() const { return number_; }
  int output() const { return output_; }
  // Kills a child that exceeds its elapsed time. Its end follows soon, and its result is an error.
  void KillIfLate();
  // Returns false at the end of the output.
  bool ReadMore();
  // Called after the child's end.
  StatusOr<std::string> Result();

 private:
  Child() = default;
  int Reap();

  bool killed_ = false;
  pid_t pid_ = -1;
  int output_ = -1;
  size_t number_ = 0;
  uint64_t limit_seconds_ = 0;
  uint64_t deadline_nanos_ = 0;
  std::string text_;
};

// Makes malloc keep freed memory. A child lives for some tens of milliseconds, and would spend a good part of them on
// page faults of memory that it released and took again.
void KeepMemory() {
  constexpr int kLeastOwnMapping = 32 << 20;
  constexpr int kMostKept = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLeastOwnMapping);
  mallopt(M_TRIM_THRESHOLD, kMostKept);
}

// SIGXCPU ends this process after `seconds` of CPU time.
void LimitWork(uint64_t seconds) {
  const rlimit limit{.rlim_cur = seconds, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
  signal(SIGXCPU, SIG_DFL);
}

void WriteAll(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

StatusOr<Child> Child::Start(size_t number, uint64_t limit_seconds,
                             const std::function<StatusOr<std::string>(size_t)>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (pid == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    KeepMemory();
    LimitWork(limit_seconds);
    const StatusOr<std::string> result = work(number);
    WriteAll(ends[1], result.ok() ? absl::StrCat(kMark, *result) : std::string(result.status().message()));
    _exit(result.ok() ? 0 : 1);
  }
  close(ends[1]);
  Child child;
  child.pid_ = pid;
  child.output_ = ends[0];
  child.number_ = number;
  child.limit_seconds_ = limit_seconds;
  child.deadline_nanos_ = NowNanos() + kMostWaiting * limit_seconds * 1'000'000'000;
  return child;
}

void Child::KillIfLate() {
  if (killed_ || NowNanos() <= deadline_nanos_) return;
  killed_ = true;
  kill(pid_, SIGKILL);
}

bool Child::ReadMore() {
  std::array<char, 65536> buffer;
  const ssize_t n = read(output_, buffer.data(), buffer.size());
  if (n > 0) text_.append(buffer.data(), static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

int Child::Reap() {
  close(output_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

StatusOr<std::string> Child::Result() {
  const int status = Reap();
  const size_t mark = text_.find(kMark);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && mark != std::string::npos) {
    return text_.substr(mark + sizeof kMark - 1);
  }
  const bool worked_too_long = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
  if (killed_ || worked_too_long) {
    return absl::DeadlineExceededError(absl::StrCat("did not end within ", limit_seconds_, " s of work\n", text_));
  }
  if (WIFEXITED(status) && text_.empty())
    text_ = absl::StrCat("ended without a result, exit code ", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) text_ = absl::StrCat("died: ", strsignal(WTERMSIG(status)), "\n", text_);
  return absl::InternalError(text_);
}

// Waits until some child has written something. Returns the children that have ended.
std::vector<size_t> Ended(std::vector<Child>* children) {
  std::vector<pollfd> polled;
  for (const Child& child : *children) polled.push_back({.fd = child.output(), .events = POLLIN, .revents = 0});
  if (poll(polled.data(), polled.size(), kPollMillis) <= 0) return {};
  std::vector<size_t> ended;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0 && !(*children)[i].ReadMore()) ended.push_back(i);
  }
  return ended;
}

}  // namespace

Status RunInChildren(size_t count, int jobs, uint64_t limit_seconds,
                     const std::function<StatusOr<std::string>(size_t)>& work,
                     const std::function<Status(size_t, const StatusOr<std::string>&)>& done,
                     const std::atomic<bool>* stop) {
  std::vector<Child> children;
  for (size_t next = 0; next < count || !children.empty();) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return absl::CancelledError("stopped");
    while (next < count && children.size() < static_cast<size_t>(std::max(jobs, 1))) {
      StatusOr<Child> child = Child::Start(next++, limit_seconds, work);
      if (!child.ok()) return child.status();
      children.push_back(*std::move(child));
    }
    const std::vector<size_t> ended = Ended(&children);
    for (auto at = ended.rbegin(); at != ended.rend(); ++at) {
      Child child = std::move(children[*at]);
      children.erase(children.begin() + static_cast<ptrdiff_t>(*at));
      GANNET_RETURN_IF_ERROR(done(child.number(), child.Result()));
    }
    for (Child& child : children) child.KillIfLate();
  }
  return absl::OkStatus();
}

}  // namespace gannet::scenario
