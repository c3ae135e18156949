#include "log/file/kill_point.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gannet::log {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(KillPoint::kCount)> kNames = {
    "commit-locked",        "commit-appended",  "commit-installed", "batch-collected",  "batch-written",
    "segment-created",      "segment-grown",    "segment-begun",    "segment-removed",  "log-end-noted",
    "manifest-written",     "manifest-renamed", "checkpoint-begun", "checkpoint-table", "checkpoint-finished",
    "checkpoint-published", "recovery-read",    "recovery-loaded",
};
static_assert(!kNames.back().empty(), "a kill point has no name");

// Passages that the process still survives. Only the armed point uses it.
std::atomic<uint64_t> passages_left{0};

}  // namespace

std::string_view KillPointName(KillPoint point) {
  return kNames.at(static_cast<size_t>(point));
}

std::vector<std::string_view> KillPointNames() {
  return {kNames.begin(), kNames.end()};
}

Status ArmKillPoint(std::string_view name, uint64_t count) {
  if (count == 0)
    return absl::InvalidArgumentError("a kill point is armed for its 1st passage or a later one, not for the 0th");
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] != name) continue;
    internal::armed_point.store(-1, std::memory_order_seq_cst);
    passages_left.store(count, std::memory_order_seq_cst);
    internal::armed_point.store(static_cast<int>(i), std::memory_order_seq_cst);
    return absl::OkStatus();
  }
  std::string known;
  for (std::string_view each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no kill point '", absl::string_view(name.data(), name.size()), "'; the kill points are ", known));
}

namespace internal {

std::atomic<int> armed_point{-1};

void Passed(KillPoint point) {
  // Arming concurrently with a passage may count that passage or not; crash tests arm once, before the workload.
  if (armed_point.load(std::memory_order_acquire) != static_cast<int>(point)) return;
  if (passages_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // SIGKILL runs no handler and no destructor, and flushes no stream, like a power cut.
  std::raise(SIGKILL);
}

}  // namespace internal
}  // namespace gannet::log
