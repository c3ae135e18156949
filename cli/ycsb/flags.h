#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/ycsb/options.h"
#include "cli/common/flags.h"
#include "cli/report/report_files.h"

namespace gannet::cli {

// The flags of `gannet ycsb` that are not options of the run.
struct YcsbFlags {
  ReportFlags report;
  std::string cluster;                 // file of the cluster whose servers are other processes; empty: none
  std::optional<absl::Duration> wait;  // for these servers
};

// All flags of `gannet ycsb`. Complete() reports values that do not fit together.
Flags FlagsOfYcsb(bench::YcsbOptions* options, YcsbFlags* others);

// The options in effect, for the report (bench::YcsbResult).
nlohmann::ordered_json YcsbConfiguration(bench::YcsbOptions options, YcsbFlags others = {});

// "15x24".
StatusOr<bench::ClientThreads> ParseClients(const std::string& text);

}  // namespace gannet::cli
