#include "lab/scenario/crash/crash_test.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/stop.h"
#include "lab/scenario/crash/load.h"

namespace gannet::scenario::crash {
namespace {

// A machine may be busy, but a child that takes longer than this is stuck.
constexpr absl::Duration kPatience = absl::Seconds(120);
// How long an armed kill point may take to be passed, from the first operation on; then the clock kills.
constexpr absl::Duration kPatienceForPoint = absl::Seconds(20);

double SecondsSince(uint64_t start) {
  return static_cast<double>(NowNanos() - start) * 1e-9;
}

absl::Duration Since(uint64_t start) {
  return absl::Nanoseconds(static_cast<int64_t>(NowNanos() - start));
}

std::string NameOf(const CyclePlan& plan) {
  if (!plan.kill_point.empty()) return plan.kill_point;
  return plan.kill_in_recovery ? "(by the clock, in recovery)" : "(by the clock)";
}

}  // namespace

ChildOptions CrashTest::ChildOf(const CyclePlan& plan, bool finish) const {
  ChildOptions child;
  child.test = options_;
  child.test.directory = directory_;
  child.test.lists = judge_->ListsToTell(finish);
  child.cycle = plan.cycle;
  child.checkpoint_every = plan.checkpoint_every;
  child.group_commit = plan.group_commit;
  child.create = !created_;
  child.finish = finish;
  if (!finish && !plan.kill_point.empty()) {
    child.kill_point = plan.kill_point;
    child.kill_count = plan.kill_count;
    child.armed_from_start = plan.armed_from_start;
  }
  return child;
}

Status CrashTest::Take(const Message& message) {
  switch (message.kind) {
    case MessageKind::kRecovered: {
      created_ = true;
      const double seconds = static_cast<double>(message.b) * 1e-9;
      ++report_.recoveries;
      report_.recovery_seconds += seconds;
      report_.longest_recovery_seconds = std::max(report_.longest_recovery_seconds, seconds);
      break;
    }
    case MessageKind::kRunning:
      running_ = true;
      break;
    case MessageKind::kClosed:
      closed_ = true;
      break;
    default:
      break;
  }
  return judge_->Take(message);
}

Status CrashTest::Follow(ChildProcess* child, const CyclePlan* plan) {
  running_ = closed_ = killed_ = false;
  uint64_t since = NowNanos();  // of the start, then of the first operation
  std::vector<Message> messages;
  while (true) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop_now_, "a child was at work"));
    // Before the first kill, a start without a kill would have nothing to judge.
    if (report_.cycles == 0 && !running_) GANNET_RETURN_IF_ERROR(CheckStop(stop_, "the first child was at work"));
    absl::Duration left = kPatience - Since(since);
    if (plan != nullptr) {
      if (running_ && IsStopRequested(stop_) && !killed_) {
        child->Kill();
        killed_ = true;
      }
      if (running_ || plan->kill_in_recovery) {
        left = (plan->kill_point.empty() ? plan->kill_after : kPatienceForPoint) - Since(since);
      }
      if (left <= absl::ZeroDuration() && (running_ || plan->kill_in_recovery) && !killed_) {
        child->Kill();
        killed_ = true;
        left = kPatience;
      }
    }
    if (killed_) left = kPatience;
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("the child is stuck");
    const bool was_running = running_;
    const StatusOr<ChildProcess::Result> result = child->Read(left, &messages);
    if (!result.ok()) return result.status();
    for (const Message& message : messages) GANNET_RETURN_IF_ERROR(Take(message));
    if (*result == ChildProcess::Result::kEnd) return absl::OkStatus();
    if (running_ && !was_running && (plan == nullptr || !plan->kill_in_recovery)) since = NowNanos();
  }
}

Status CrashTest::RunCycle(const CyclePlan& plan) {
  StatusOr<ChildProcess> child = ChildProcess::Start(program_.child_arguments(ChildOf(plan, /*finish=*/false)));
  if (!child.ok()) return child.status();
  GANNET_RETURN_IF_ERROR(Follow(&*child, &plan));
  const StatusOr<int> status = child->Wait();
  if (!status.ok()) return status.status();
  judge_->ChildDied();
  if (!WIFSIGNALED(*status) || WTERMSIG(*status) != SIGKILL) {
    return absl::InternalError(
        WIFSIGNALED(*status)
            ? absl::StrFormat("the child died by itself, of signal %d", WTERMSIG(*status))
            : absl::StrFormat("the child ended with exit code %d; its messages are above", WEXITSTATUS(*status)));
  }
  KillStatistics& kills = report_.kills[NameOf(plan)];
  ++kills.planned;
  if (plan.kill_point.empty() || !killed_) ++kills.happened;
  return absl::OkStatus();
}

Status CrashTest::RunInPeace(uint64_t cycle) {
  CyclePlan plan = PlanCycle(options_, cycle);
  StatusOr<ChildProcess> child = ChildProcess::Start(program_.child_arguments(ChildOf(plan, /*finish=*/true)));
  if (!child.ok()) return child.status();
  GANNET_RETURN_IF_ERROR(Follow(&*child, nullptr));
  const StatusOr<int> status = child->Wait();
  if (!status.ok()) return status.status();
  judge_->ChildDied();
  if (closed_ && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return absl::OkStatus();
  return absl::InternalError("a child that was to close the database and end did not; its messages are above");
}

Status CrashTest::Explain(const Status& status, uint64_t cycle, const std::string& what) const {
  if (absl::IsCancelled(status)) return status;  // nothing went wrong
  return absl::Status(
      status.code(),
      absl::StrFormat("seed %d, cycle %d (%s): %s\nthe directory is kept: %s\nto repeat it: %s", options_.seed, cycle,
                      what, status.message(), options_.directory, program_.replay_command(options_, cycle)));
}

Status CrashTest::BeginDirectory(uint64_t cycle) {
  if (options_.workload == WorkloadKind::kLoad) {
    if (cycle != 0) {  // the state that the last kill in the previous directory has left
      const Status ended = RunInPeace(cycle);
      if (!ended.ok()) return Explain(ended, cycle, "before it, the last start in a directory, without a kill");
    }
    directory_ = absl::StrCat(options_.directory, "/", cycle / kLoadCycles);
    std::error_code error;
    std::filesystem::create_directories(options_.directory, error);
    if (error) return absl::InternalError(absl::StrCat("cannot make ", options_.directory, ": ", error.message()));
    judge_->NewDirectory();
    created_ = false;
  }
  // TPC-C's load is not under test, and a kill in recovery needs something to recover. Then the first start has no
  // kill.
  if (options_.workload != WorkloadKind::kTpcc && !PlanCycle(options_, cycle).kill_point.starts_with("recovery-")) {
    return absl::OkStatus();
  }
  const Status prepared = RunInPeace(cycle);
  return prepared.ok() ? prepared : Explain(prepared, cycle, "before it, a start without a kill");
}

Status CrashTest::RunCycles(const std::function<void(uint64_t)>& progress) {
  const uint64_t start = NowNanos();
  std::string last = "nothing was killed yet";
  for (uint64_t cycle = 0; cycle < options_.cycles && !IsStopRequested(stop_); ++cycle) {
    if (cycle == 0 || (options_.workload == WorkloadKind::kLoad && cycle % kLoadCycles == 0)) {
      GANNET_RETURN_IF_ERROR(BeginDirectory(cycle));
    }
    const CyclePlan plan = PlanCycle(options_, cycle);
    const uint64_t cycle_start = NowNanos();
    const Status status = RunCycle(plan);
    if (const double seconds = SecondsSince(cycle_start); seconds > report_.longest_cycle_seconds) {
      report_.longest_cycle_seconds = seconds;
      report_.longest_cycle = Describe(plan);
    }
    report_.operations = judge_->statistics();
    report_.seconds = SecondsSince(start);
    const std::string now = "to be killed " + Describe(plan);
    if (!status.ok()) return Explain(status, cycle, absl::StrCat(last, "; ", now));
    last = absl::StrFormat("the one before was killed %s", Describe(plan));
    ++report_.cycles;
    if (progress) progress(cycle);
  }
  const Status ended = RunInPeace(options_.cycles);
  report_.operations = judge_->statistics();
  report_.seconds = SecondsSince(start);
  return ended.ok() ? ended : Explain(ended, options_.cycles, last + "; the last start, without a kill");
}

Status CrashTest::Run(const std::function<void(uint64_t)>& progress, const std::atomic<bool>* stop,
                      const std::atomic<bool>* stop_now) {
  stop_ = stop;
  stop_now_ = stop_now;
  Status done = RunCycles(progress);
  if (absl::IsCancelled(done)) return done;  // the last child reported only a part
  judge_->ChildDied();
  const Status judged = judge_->Finish();
  report_.verdict = judge_->Verdict();
  if (done.ok() && !judged.ok()) done = Explain(judged, options_.cycles, "all cycles together");
  return done;
}

}  // namespace gannet::scenario::crash
