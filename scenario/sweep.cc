#include "scenario/sweep.h"

#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma/base/clock.h"
#include "scenario/report_json.h"

namespace gannet::scenario {
namespace {

struct Child {
  pid_t pid = -1;
  int output = -1;  // its report, then what it says on stderr if it dies
  uint64_t seed = 0;
  uint64_t deadline_nanos = 0;
  std::string text;
};

constexpr char kReportMark[] = "\nREPORT ";

StatusOr<Child> Launch(const SweepOptions& options, uint64_t seed) {
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
    ScenarioOptions scenario = options.scenario;
    scenario.seed = seed;
    const std::string report = absl::StrCat(kReportMark, ToJson(RunScenario(scenario)).dump(), "\n");
    for (size_t done = 0; done < report.size();) {
      const ssize_t n = write(ends[1], report.data() + done, report.size() - done);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) done += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  return Child{pid, ends[0], seed, NowNanos() + options.limit_seconds * 1'000'000'000, {}};
}

// Waits until some child has said something or a deadline has passed; true for the children that ended.
std::vector<size_t> ReadSome(std::vector<Child>* children) {
  std::vector<pollfd> polled;
  for (const Child& child : *children) polled.push_back({.fd = child.output, .events = POLLIN, .revents = 0});
  poll(polled.data(), polled.size(), 200);
  std::vector<size_t> ended;
  for (size_t i = 0; i < polled.size(); ++i) {
    Child& child = (*children)[i];
    if (NowNanos() > child.deadline_nanos) kill(child.pid, SIGKILL);
    if (polled[i].revents == 0) continue;
    std::array<char, 65536> buffer;
    const ssize_t n = read(child.output, buffer.data(), buffer.size());
    if (n > 0) child.text.append(buffer.data(), static_cast<size_t>(n));
    if (n == 0) ended.push_back(i);
  }
  return ended;
}

ScenarioReport Collect(const Child& child, const SweepOptions& options) {
  close(child.output);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  const size_t mark = child.text.find(kReportMark);
  if (mark != std::string::npos) {
    StatusOr<ScenarioReport> report = ReportFromJson(child.text.substr(mark + sizeof kReportMark - 1));
    if (report.ok()) return *report;
  }
  ScenarioReport report;
  report.seed = child.seed;
  report.verdict = NowNanos() > child.deadline_nanos ? absl::StrCat("did not end within ", options.limit_seconds, " s")
                   : WIFSIGNALED(status)             ? absl::StrCat("died: ", strsignal(WTERMSIG(status)))
                                         : absl::StrCat("ended without a report, exit code ", WEXITSTATUS(status));
  report.details = child.text;
  return report;
}

}  // namespace

Status RunSweep(const SweepOptions& options, const std::function<bool(const ScenarioReport& report)>& visit) {
  std::vector<Child> children;
  uint64_t launched = 0;
  bool go_on = true;
  while ((go_on && launched < options.seeds) || !children.empty()) {
    while (go_on && launched < options.seeds && children.size() < static_cast<size_t>(std::max(options.jobs, 1))) {
      StatusOr<Child> child = Launch(options, options.first_seed + launched);
      if (!child.ok()) return child.status();
      children.push_back(std::move(*child));
      ++launched;
    }
    const std::vector<size_t> ended = ReadSome(&children);
    for (auto i = ended.rbegin(); i != ended.rend(); ++i) {
      const ScenarioReport report = Collect(children[*i], options);
      children.erase(children.begin() + static_cast<ptrdiff_t>(*i));
      if (go_on) go_on = visit(report);
    }
    if (!go_on) {
      for (const Child& child : children) kill(child.pid, SIGKILL);
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::scenario
