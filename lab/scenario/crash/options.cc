#include "lab/scenario/crash/options.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "log/file/kill_point.h"

namespace gannet::scenario::crash {
namespace {

constexpr uint64_t kDeck = 32;
constexpr uint64_t kInRecovery = kDeck - 3;  // cards from here on

// A point is passed at least this often within a short time of work, so each of these passages is reached.
uint64_t MostPassages(std::string_view point) {
  if (point.starts_with("commit-")) return 400;
  if (point.starts_with("batch-")) return 60;
  if (point == "checkpoint-table") return 8;
  if (point == "segment-grown") return 1;  // when the first session is opened
  if (point.starts_with("checkpoint-")) return 3;
  if (point.starts_with("manifest-") || point.starts_with("segment-")) return 3;
  return 1;  // recovery-
}

bool NeedsCheckpoints(std::string_view point) {
  return point.starts_with("checkpoint-") || point.starts_with("manifest-") || point.starts_with("segment-");
}

// The card of this cycle: the number of a kill point, or a larger one for a kill by the clock.
uint64_t CardOf(const CrashOptions& options, uint64_t cycle) {
  Random random(Mix64(options.seed) ^ (cycle / kDeck));
  std::vector<uint64_t> deck(kDeck);
  std::iota(deck.begin(), deck.end(), 0);
  std::shuffle(deck.begin(), deck.end(), random);
  return deck[cycle % kDeck];
}

}  // namespace

CyclePlan PlanCycle(const CrashOptions& options, uint64_t cycle) {
  const std::vector<std::string_view> points = log::KillPointNames();
  Random random(Mix64(options.seed) + Mix64(cycle + 1));
  CyclePlan plan;
  plan.cycle = cycle;
  const uint64_t card = CardOf(options, cycle);
  if (options.kill_point == "random") {
    if (card < points.size()) plan.kill_point = std::string(points[card]);
  } else if (options.kill_point != "none") {
    plan.kill_point = options.kill_point;
  }
  // The very first start has nothing to recover, and no checkpoint of another run.
  plan.kill_in_recovery = plan.kill_point.empty() && card >= kInRecovery;
  plan.kill_count = static_cast<uint64_t>(random.Between(1, static_cast<int64_t>(MostPassages(plan.kill_point))));
  // For points that a start passes, too, some of the kills happen there.
  const bool at_start = plan.kill_point.starts_with("manifest-") || plan.kill_point.starts_with("segment-");
  plan.armed_from_start =
      plan.kill_point.starts_with("recovery-") || (at_start && random.OneIn(2)) || plan.kill_point == "segment-grown";
  plan.kill_after = options.cycle_time * (plan.kill_in_recovery ? 0.3 : 1.0) * random.Unit();
  static constexpr int kCheckpointMillis[] = {0, 20, 60};
  static constexpr int kGroupCommitMicros[] = {100, 500, 2000};
  plan.checkpoint_every = absl::Milliseconds(kCheckpointMillis[random.Below(3)]);
  if (NeedsCheckpoints(plan.kill_point)) plan.checkpoint_every = absl::Milliseconds(10);
  plan.group_commit = absl::Microseconds(kGroupCommitMicros[random.Below(3)]);
  return plan;
}

std::string Describe(const CyclePlan& plan) {
  if (!plan.kill_point.empty())
    return absl::StrFormat("at %s, passage %d%s", plan.kill_point, plan.kill_count,
                           plan.armed_from_start ? " from its start" : "");
  return absl::StrFormat("%s after its %s", absl::FormatDuration(absl::Trunc(plan.kill_after, absl::Microseconds(1))),
                         plan.kill_in_recovery ? "start" : "first operation");
}

}  // namespace gannet::scenario::crash
