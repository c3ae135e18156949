#include "lab/cli/crash_text.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/common/table.h"
#include "lab/cli/crash_flags.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {

namespace crash = scenario::crash;

std::string ToText(const crash::CrashOptions& options, const crash::CrashReport& report, int width) {
  Table table({"killed at", "planned", "happened"});
  for (const auto& [name, kills] : report.kills) {
    table.AddUnlessZero({name, WithCommas(kills.planned), WithCommas(kills.happened)});
  }
  const crash::JudgeStatistics& o = report.operations;
  std::string text = absl::StrFormat("%s: %s with seed %d, durability %s on %s, %s\n\n%s\n", NameOf(options.workload),
                                     Count(report.cycles, "cycle"), options.seed, FormatDurability(options.mode),
                                     FormatMedium(options.medium), Count(static_cast<uint64_t>(options.nodes), "node"),
                                     table.empty() ? "no kill was planned\n" : table.ToString(width));
  // A terminal of TPC-C reports only acknowledged operations.
  const std::string begun = options.workload == crash::WorkloadKind::kTpcc ? "" : WithCommas(o.begun) + " begun, ";
  text += absl::StrFormat("operations: %s%s acknowledged, %s seen by readers\n", begun, WithCommas(o.acknowledged),
                          WithCommas(o.observed));
  text += absl::StrFormat("recovered: %s and compared %s; %s survived without an acknowledgement\n",
                          Count(report.recoveries, "time"), Count(o.recoveries, "time"),
                          Count(o.recovered_unacknowledged, "operation"));
  if (options.mode == txn::DurabilityMode::kAsync) {
    text += absl::StrFormat(
        "acknowledged and lost, as async may: %s, at most %s in one crash, the oldest of them acknowledged %.1f ms "
        "before the last\n",
        WithCommas(o.lost), WithCommas(o.most_lost), static_cast<double>(o.longest_loss_nanos) * 1e-6);
    text += absl::StrFormat("operations reported durable must have survived: compared with %s\n",
                            Count(o.durable_reports, "report"));
  }
  if (!report.verdict.empty()) text += report.verdict + "\n";
  const double mean = report.recoveries == 0 ? 0.0 : report.recovery_seconds / static_cast<double>(report.recoveries);
  text += absl::StrFormat(
      "recovery: %.1f ms on average, %.1f ms at most; the longest cycle took %.2f s (killed %s), all "
      "of them %.1f s\n",
      mean * 1e3, report.longest_recovery_seconds * 1e3, report.longest_cycle_seconds, report.longest_cycle,
      report.seconds);
  return Wrap(text, width);
}

nlohmann::ordered_json ToJson(const crash::CrashOptions& options, const crash::CrashReport& report,
                              const Status& done) {
  using Json = nlohmann::ordered_json;
  const crash::JudgeStatistics& o = report.operations;
  Json kills = Json::object();
  for (const auto& [name, kill] : report.kills) kills[name] = {{"planned", kill.planned}, {"happened", kill.happened}};
  Json json = CrashValues(options);
  json.update({{"passed", done.ok()},
               {"error", done.ok() ? Json() : Json(std::string(done.message()))},
               {"cycles", report.cycles},
               {"kills", std::move(kills)},
               {"operations",
                {{"begun", o.begun},
                 {"acknowledged", o.acknowledged},
                 {"seen_by_readers", o.observed},
                 {"recovered_unacknowledged", o.recovered_unacknowledged},
                 {"lost", o.lost},
                 {"most_lost_in_one_crash", o.most_lost},
                 {"longest_loss_seconds", static_cast<double>(o.longest_loss_nanos) * 1e-9},
                 {"durable_reports", o.durable_reports}}},
               {"states_compared", o.recoveries},
               {"recoveries", report.recoveries},
               {"recovery_seconds", report.recovery_seconds},
               {"longest_recovery_seconds", report.longest_recovery_seconds},
               {"longest_cycle_seconds", report.longest_cycle_seconds},
               {"verdict", report.verdict},
               {"seconds", report.seconds}});
  return json;
}

}  // namespace gannet::cli
