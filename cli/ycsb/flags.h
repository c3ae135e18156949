#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/ycsb/options.h"
#include "cli/report/report_files.h"

namespace CLI {
class App;
}

namespace gannet::cli {

// The flags of `gannet ycsb` that are not options of the run.
struct YcsbFlags {
  ReportFlags report;
  std::string cluster;                 // file of the cluster whose servers are other processes; empty: none
  std::optional<absl::Duration> wait;  // for these servers
};

// Adds the flags of `gannet ycsb`. Parsing them fills *options and *flags, which must live until then. A wrong value is
// a CLI::ValidationError "--flag value: what to do"; Complete() reports values that do not fit together.
void AddYcsbFlags(CLI::App& command, bench::YcsbOptions* options, YcsbFlags* flags);

// The first flag on the command line that sets something that a cluster file sets; empty if there is none.
std::string FlagOfServers(const CLI::App& command);

// "15x24".
StatusOr<bench::ClientThreads> ParseClients(const std::string& text);

}  // namespace gannet::cli
