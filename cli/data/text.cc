#include "cli/data/text.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/common/table.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string WallTime(uint64_t nanos) {
  if (nanos == 0) return "never";
  return absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC", absl::FromUnixNanos(static_cast<int64_t>(nanos)),
                          absl::UTCTimeZone());
}

std::string Speed(uint64_t bytes, double seconds) {
  if (seconds <= 0) return "";
  return absl::StrFormat("%.2f GB/s", static_cast<double>(bytes) * 1e-9 / seconds);
}

}  // namespace

std::string ToText(const std::vector<NodeRecovery>& nodes) {
  Table table({"", "read", "seconds", "speed", "records", "transactions", "epoch"});
  uint64_t peak = 0;
  std::string details;
  for (const NodeRecovery& node : nodes) {
    const txn::RecoveryReport& r = node.report;
    peak = std::max(peak, r.peak_memory_bytes);
    table.Add({node.path, FormatBytes(node.bytes_read()), absl::StrFormat("%.3f", node.seconds()),
               Speed(node.bytes_read(), node.seconds()), WithCommas(r.records), WithCommas(r.transactions),
               WithCommas(r.recovered_epoch)});
    details += absl::StrFormat("\n%s\n", node.path);
    details += r.checkpoint_id == 0
                   ? "  no checkpoint\n"
                   : absl::StrFormat("  checkpoint %d: %s\n", r.checkpoint_id, FormatBytes(r.checkpoint_bytes));
    details += absl::StrFormat("  log: %d segments, %s, %s changes, read in %.3f s (%s); tables made in %.3f s\n",
                               r.log_segments, FormatBytes(r.log_bytes), WithCommas(r.changes), r.log_seconds,
                               Speed(r.log_bytes, r.log_seconds), r.load_seconds);
    details += absl::StrFormat("  last durable epoch %d; the last commit in the log is of %s\n", r.recovered_epoch,
                               WallTime(r.last_commit_wall_nanos));
    details += absl::StrFormat("  left out: %s transactions that were not durable yet, %s parts without a decision\n",
                               WithCommas(r.undone_transactions), WithCommas(r.undecided_parts));
    for (const std::string& replaced : r.replaced) {
      details += absl::StrFormat("  DAMAGED: %s\n", replaced);
    }
    if (r.older_checkpoint_id != 0) {
      details += absl::StrFormat(
          "  checkpoint %d and the log replaced the damaged data: nothing is lost. Take a checkpoint, and check the "
          "disk\n",
          r.older_checkpoint_id);
    }
    if (r.torn_tail) details += "  the last write was torn, as a crash leaves it\n";
    for (const std::string& damage : r.damages) details += "  DAMAGED, left out: " + damage + "\n";
  }
  return table.ToString() + details + absl::StrFormat("\npeak memory: %s\n", FormatBytes(peak));
}

std::string ToText(const txn::Verification& verification) {
  Table table(
      {"", "checkpoints", "their bytes", "their records", "segments", "batches", "transactions", "log bytes", "epoch"});
  for (const txn::NodeVerification& node : verification.nodes) {
    table.Add({node.path, WithCommas(node.checkpoints), FormatBytes(node.checkpoint_bytes),
               WithCommas(node.checkpoint_records), WithCommas(node.log.segments), WithCommas(node.log.batches),
               WithCommas(node.log.transactions), FormatBytes(node.log.bytes_read),
               WithCommas(node.log.end.recovered_epoch)});
  }
  std::string text = table.ToString();
  for (const txn::NodeVerification& node : verification.nodes) {
    if (node.log.torn_tail) text += absl::StrFormat("%s: a torn end, as a crash leaves it\n", node.log.torn_tail_place);
  }
  for (const std::string& note : verification.notes) text += note + "\n";
  for (const txn::Problem& problem : verification.problems) text += "WRONG: " + txn::ToText(problem) + "\n";
  if (verification.problems.empty()) return text + "all is well\n";
  return text +
         "gannet recover says whether the next start loses something. If it does, restore a backup, or save what is "
         "left in a new directory: gannet backup --salvage DIR NEW\n";
}

Json ToJson(const std::vector<NodeRecovery>& nodes) {
  Json json{{"nodes", Json::array()}};
  for (const NodeRecovery& node : nodes) {
    const txn::RecoveryReport& r = node.report;
    json["nodes"].push_back(
        {{"path", node.path},
         {"recovered_epoch", r.recovered_epoch},
         {"records", r.records},
         {"transactions", r.transactions},
         {"changes", r.changes},
         {"checkpoint", r.checkpoint_id == 0 ? Json() : Json(r.checkpoint_id)},
         {"checkpoint_bytes", r.checkpoint_bytes},
         {"log_segments", r.log_segments},
         {"log_bytes", r.log_bytes},
         {"log_seconds", r.log_seconds},
         {"load_seconds", r.load_seconds},
         {"last_commit", r.last_commit_wall_nanos == 0 ? Json() : Json(WallTime(r.last_commit_wall_nanos))},
         {"undone_transactions", r.undone_transactions},
         {"undecided_parts", r.undecided_parts},
         {"torn_tail", r.torn_tail},
         {"older_checkpoint", r.older_checkpoint_id == 0 ? Json() : Json(r.older_checkpoint_id)},
         {"replaced", r.replaced},
         {"left_out", r.damages},
         {"peak_memory_bytes", r.peak_memory_bytes}});
  }
  return json;
}

Json ToJson(const txn::Verification& verification) {
  Json json{{"nodes", Json::array()}, {"problems", Json::array()}, {"notes", verification.notes}};
  for (const txn::NodeVerification& node : verification.nodes) {
    json["nodes"].push_back({{"path", node.path},
                             {"checkpoints", node.checkpoints},
                             {"checkpoint_bytes", node.checkpoint_bytes},
                             {"checkpoint_records", node.checkpoint_records},
                             {"log_segments", node.log.segments},
                             {"log_batches", node.log.batches},
                             {"log_transactions", node.log.transactions},
                             {"log_bytes", node.log.bytes_read},
                             {"recovered_epoch", node.log.end.recovered_epoch},
                             {"torn_tail", node.log.torn_tail ? Json(node.log.torn_tail_place) : Json()}});
  }
  for (const txn::Problem& problem : verification.problems) {
    json["problems"].push_back({{"file", problem.file}, {"offset", problem.offset}, {"what", problem.what}});
  }
  return json;
}

}  // namespace gannet::cli
