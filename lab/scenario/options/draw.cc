// Draws the options that a scenario leaves open from its seed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "index/catfish/catfish.h"
#include "lab/scenario/options/fields.h"
#include "lab/scenario/options/options.h"

namespace gannet::scenario {
namespace {

constexpr uint64_t kLeastSettleNanos = 30'000'000;
constexpr uint64_t kDisksSettleNanos = 300'000'000;  // after an error the log tries again within 100 ms

constexpr uint64_t kMillisecond = 1'000'000;
// This timeout is longer than a pause or a stuck message (faults.h), shorter than the time to settle after the faults.
constexpr uint64_t kLongCallTimeoutNanos = 10 * kMillisecond;
// This is for terminals of TPC-C, which accept no error. With the most frequent pauses a node stands still for 10 ms
// and more, because one pause begins before the last has ended. A call may wait for a leaf whose lock another node
// holds, and that node for stuck completions of several verbs; or until a claim has ended whose holder died
// (index::kClaimTerm).
constexpr uint64_t kPatientCallTimeoutNanos = 100 * kMillisecond;
constexpr uint64_t kLongDurableWithinNanos = 10'000 * kMillisecond;
constexpr uint64_t kLargeSegmentBytes = uint64_t{256} << 10;
constexpr uint64_t kLargeBufferBytes = uint64_t{64} << 10;
constexpr uint64_t kLongPrecedenceAfterNanos = 100 * kMillisecond;
constexpr uint64_t kLongPrecedenceLimitNanos = 10'000 * kMillisecond;
constexpr uint64_t kShortRowWords = 40;
constexpr uint64_t kNoRestNanos = 1;

template <size_t kSize>
const char* OneOf(const std::array<const char*, kSize>& names, Random* random) {
  return names[random->Below(kSize)];
}

// Makes faults so frequent that they coincide: a call is lost, and its repetition too, while a node pauses.
void MakeHarsh(rdma::sim::Faults* faults) {
  constexpr double kTimes = 20;
  for (double* const each : {&faults->slow_completion, &faults->stuck_completion, &faults->lost_request,
                             &faults->lost_response, &faults->disconnect}) {
    *each *= kTimes;
  }
  faults->slow_completion = std::min(faults->slow_completion, 0.2);
  faults->stuck_completion *= 3;
  faults->cut_nanos *= 4;
  constexpr double kTimesOfDisks = 5;
  for (double* const each : {&faults->disk_write_error, &faults->disk_short_write, &faults->disk_sync_error}) {
    *each *= kTimesOfDisks;
  }
  faults->pause_every /= static_cast<uint64_t>(kTimes);
  faults->cut_every /= static_cast<uint64_t>(kTimes);
}

// Draws the options of the databases, and some of the workload. Most values are too large to have an effect in a short
// run.
void DrawOptions(Random* random, bool harsh, ScenarioOptions* o) {
  const auto draw = [](auto* field, auto value) {
    if (*field == 0) *field = value;
  };
  draw(&o->server_threads, random->OneIn(3) ? 2 + static_cast<int>(random->Below(2)) : 1);
  const uint64_t path = random->Below(4);
  if (o->read_path.empty()) o->read_path = path == 0 ? "calls" : path == 1 ? "one_sided" : "adaptive";
  const uint64_t call_timeout = 100'000 << random->Below(5);
  draw(&o->call_timeout_nanos, random->OneIn(harsh ? 1 : 4) ? call_timeout : kLongCallTimeoutNanos);
  const uint64_t durable_within = kMillisecond << random->Below(4);
  draw(&o->durable_within_nanos, random->OneIn(3) ? durable_within : kLongDurableWithinNanos);
  const uint64_t segment = kLargeSegmentBytes >> (2 + random->Below(3));
  draw(&o->log_segment_bytes, random->OneIn(2) ? segment : kLargeSegmentBytes);
  const uint64_t buffer = kLargeBufferBytes >> (3 + random->Below(2));
  draw(&o->log_buffer_bytes, random->OneIn(3) ? buffer : kLargeBufferBytes);
  const uint64_t after = 50'000 << random->Below(4);
  const uint64_t limit = 2 * kMillisecond << random->Below(4);
  const bool precedence = random->OneIn(4);
  draw(&o->precedence_after_nanos, precedence ? after : kLongPrecedenceAfterNanos);
  draw(&o->precedence_limit_nanos, precedence ? limit : kLongPrecedenceLimitNanos);
  const uint64_t session = 100'000 + random->Below(kMillisecond);
  draw(&o->session_nanos, random->OneIn(3) ? session : kWholeRun);
  const uint64_t rows = random->Below(harsh ? 4 : 24);
  draw(&o->row_words, rows == 0 ? 6000 : rows < 4 ? 300 : kShortRowWords);
}

// Draws mostly nodes of few entries, so that few rectangles make a high tree that splits often.
std::string DrawIndexOptions(Random* random) {
  constexpr std::array<uint32_t, 8> kNodeEntries = {4, 4, 5, 5, 6, 6, 8, 30};
  index::CatfishOptions options;
  options.variant = static_cast<index::CatfishVariant>(random->Below(3));
  options.node_entries = kNodeEntries[random->Below(kNodeEntries.size())];
  if (random->OneIn(2)) options.world = index::Rectangle{0, 0, 64, 64};
  return index::ToText(options);
}

template <class T>
Status CheckField(const char* name, const T& value, const Range& valid) {
  if (std::cmp_greater_equal(value, valid.low) && std::cmp_less_equal(value, valid.high)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("field '", name, "' of the scenario is ", value, "; it must be from ",
                                                 valid.low, " to ", valid.high));
}

Status CheckField(const char* name, const std::string& value, const Names& valid) {
  if (value.empty() || std::ranges::find(valid, value) != valid.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("field '", name, "' of the scenario is '", value,
                                                 "'; it must be one of ", absl::StrJoin(valid, ", ")));
}

}  // namespace

const std::vector<std::string>& WorkloadNames() {
  static const std::vector<std::string> names = {"registers", "rectangles", "append", kTpccWorkload};
  return names;
}

Status CheckScenario(const ScenarioOptions& options) {
  Status status = index::CatfishOptionsOf(options.index_options).status();
  ForEachField(&options, [&status](const char* name, const auto* field, const auto&... valid) {
    if constexpr (sizeof...(valid) > 0) status.Update(CheckField(name, *field, valid...));
  });
  return status;
}

// Every draw is made whether its result is used or not, so that setting one field changes no other.
ScenarioOptions Drawn(const ScenarioOptions& options) {
  Random random(Mix64(options.seed) ^ 0x5ce0a210);
  ScenarioOptions drawn = options;
  const int nodes = 1 + static_cast<int>(random.Below(4));
  const int workers = 1 + static_cast<int>(random.Below(2));
  const int coroutines = 1 + static_cast<int>(random.Below(5));
  const uint64_t keys = uint64_t{4} << random.Below(5);
  const uint64_t workload = random.Below(10);
  const bool coherent = !random.OneIn(4);
  const char* nic = OneOf(std::array{"ideal", "cx4-100g", "cx5-100g", "cx6-200g"}, &random);
  const bool durable = random.OneIn(3);
  const int power_cuts = static_cast<int>(random.Below(3));
  const rdma::sim::Faults faults = rdma::sim::Faults::Draw(&random);

  const int deaths = static_cast<int>(random.Below(4));  // drawn last: keeps older draws
  const bool client = random.OneIn(2);
  const int checks = random.OneIn(2) ? 1 + static_cast<int>(random.Below(2)) : 0;
  const bool many_keys = random.OneIn(40);
  const bool harsh = random.OneIn(6);
  const bool long_preemptions = random.OneIn(4);
  DrawOptions(&random, harsh, &drawn);
  const bool rectangles = random.OneIn(4);
  const std::string index_options = DrawIndexOptions(&random);
  const uint64_t rest = random.OneIn(4) ? 200'000 + random.Below(4 * kMillisecond) : kNoRestNanos;
  const uint64_t ordered = random.Below(8);
  const bool owner_only = random.OneIn(4);

  if (drawn.nodes == 0) drawn.nodes = nodes;
  if (drawn.workers_per_node == 0) drawn.workers_per_node = workers;
  if (drawn.coroutines == 0) drawn.coroutines = coroutines;
  if (drawn.keys == 0) drawn.keys = many_keys ? kManyKeys : keys;
  if (drawn.workload.empty()) {
    drawn.workload = workload == 9 ? kTpccWorkload : rectangles ? "rectangles" : workload < 6 ? "registers" : "append";
  }
  if (drawn.index_options.empty()) drawn.index_options = index_options;
  if (drawn.ordered_index.empty()) {
    constexpr std::array kKinds = {"blink", "blink", "rolex", "dex", "dex", "dolphin", "dolphin", "xstore"};
    drawn.ordered_index = kKinds[ordered];
  }
  // No client can change an XStore, whatever the field says.
  if (drawn.ordered_index == "xstore") drawn.index_rights = "owner";
  if (drawn.index_rights.empty()) drawn.index_rights = owner_only ? "owner" : "clients";
  if (drawn.rest_nanos == 0) drawn.rest_nanos = rest;
  if (!drawn.coherent.has_value()) drawn.coherent = coherent;
  if (drawn.nic.empty()) drawn.nic = nic;
  if (drawn.durability.empty()) drawn.durability = durable ? "sync" : "none";
  if (drawn.power_cuts < 0) drawn.power_cuts = power_cuts;
  if (drawn.durability == "none") drawn.power_cuts = 0;
  const bool tpcc = drawn.workload == kTpccWorkload;
  if (!drawn.client.has_value()) drawn.client = client;
  // A database with a log has no client nodes.
  if (drawn.nodes == 1 || drawn.durability != "none") drawn.client = false;
  if (drawn.deaths < 0) drawn.deaths = deaths;
  // A single node has no survivors. A terminal of TPC-C needs all warehouses.
  if (drawn.nodes == 1 || (tpcc && drawn.durability == "none" && !*drawn.client)) drawn.deaths = 0;
  if (drawn.durability == "none" && !*drawn.client) drawn.deaths = std::min(drawn.deaths, drawn.nodes - 1);
  if (drawn.checks < 0) drawn.checks = checks;
  if (!drawn.faults.has_value()) {
    drawn.faults = faults;
    if (harsh) MakeHarsh(&*drawn.faults);
    if (long_preemptions) {  // as by a scheduler that runs another process
      drawn.faults->preempt /= 20;
      drawn.faults->preempt_nanos = 500'000;
    }
    // A terminal of TPC-C does not accept that a node is unreachable; the run would end.
    if (tpcc) {
      drawn.faults->disconnect = drawn.faults->lost_request = drawn.faults->lost_response = 0;
      drawn.faults->cut_every = 0;
    }
    if (tpcc || drawn.durability == "none") {
      drawn.faults->disk_write_error = drawn.faults->disk_short_write = drawn.faults->disk_sync_error = 0;
      drawn.faults->disk_full_every = 0;
    }
  }
  // A terminal of TPC-C accepts no error, and without faults there must be none.
  if (options.call_timeout_nanos == 0 && (tpcc || !drawn.faults->Any())) {
    const bool stands_still = drawn.faults->pause_every != 0 || drawn.faults->stuck_completion > 0;
    const bool waits_for_claims = drawn.ordered_index == "dex" && drawn.deaths > 0;
    drawn.call_timeout_nanos = stands_still || waits_for_claims ? kPatientCallTimeoutNanos : kLongCallTimeoutNanos;
  }
  if (options.durable_within_nanos == 0 && (tpcc || !drawn.faults->OfDisks())) {
    drawn.durable_within_nanos = kLongDurableWithinNanos;
  }
  if (drawn.settle_nanos == 0) {
    // A transaction may lose against others until it has precedence.
    drawn.settle_nanos = kLeastSettleNanos + drawn.precedence_after_nanos +
                         (drawn.precedence_limit_nanos < kLeastSettleNanos ? 4 * drawn.precedence_limit_nanos : 0) +
                         2 * std::max({drawn.faults->stuck_nanos, drawn.faults->pause_nanos, drawn.faults->cut_nanos}) +
                         (drawn.faults->OfDisks() ? kDisksSettleNanos : 0);
  }
  return drawn;
}

std::string Describe(const ScenarioOptions& drawn) {
  const auto if_short = [](const char* name, uint64_t nanos, uint64_t usual) {
    return nanos == usual ? "" : absl::StrCat(", ", name, " ", nanos / 1000, " us");
  };
  const auto if_other = [](const char* name, uint64_t value, uint64_t usual) {
    return value == usual ? "" : absl::StrCat(", ", name, " ", value);
  };
  return absl::StrCat(
      drawn.workload, ", ", drawn.nodes, " nodes x ", drawn.workers_per_node, " workers x ", drawn.coroutines,
      " coroutines, ", drawn.keys, " keys, ", drawn.nic, *drawn.coherent ? "" : " (atomics of the NIC only)",
      ", durability ", drawn.durability,
      drawn.power_cuts > 0 ? absl::StrCat(", ", drawn.power_cuts, " power cuts") : "",
      *drawn.client ? ", one without data" : "", drawn.deaths > 0 ? absl::StrCat(", ", drawn.deaths, " deaths") : "",
      drawn.checks > 0 ? absl::StrCat(", ", drawn.checks, " checks") : "",
      if_other("server threads", static_cast<uint64_t>(drawn.server_threads), 1),
      drawn.read_path == "adaptive" ? "" : absl::StrCat(", reads by ", drawn.read_path),
      if_short("call timeout", drawn.call_timeout_nanos, kLongCallTimeoutNanos),
      if_short("durable within", drawn.durable_within_nanos, kLongDurableWithinNanos),
      if_other("segment bytes", drawn.log_segment_bytes, kLargeSegmentBytes),
      if_other("buffer bytes", drawn.log_buffer_bytes, kLargeBufferBytes),
      if_short("precedence after", drawn.precedence_after_nanos, kLongPrecedenceAfterNanos),
      if_short("precedence limit", drawn.precedence_limit_nanos, kLongPrecedenceLimitNanos),
      drawn.workload == "rectangles" ? absl::StrCat(", ", drawn.index_options) : "",
      drawn.ordered_index == "xstore"
          ? ""
          : absl::StrCat(", ordered by ", drawn.ordered_index, drawn.index_rights == "owner" ? " of the owner" : ""),
      if_short("sessions of", drawn.session_nanos, kWholeRun), if_short("threads rest", drawn.rest_nanos, kNoRestNanos),
      if_other("row words", drawn.row_words, kShortRowWords),
      drawn.faults->Any() ? absl::StrCat("; ", drawn.faults->ToString()) : "; no faults");
}

}  // namespace gannet::scenario
