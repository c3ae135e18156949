// The command lines of `gannet crashtest` and of its hidden child, `gannet crashtest-child`: conversion to options and
// back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/flags.h"
#include "lab/scenario/crash/child.h"
#include "lab/scenario/crash/options.h"

namespace gannet::cli {

Flags CrashFlags(scenario::crash::CrashOptions* options);
Flags CrashChildFlags(scenario::crash::ChildOptions* options);

// The values of CrashFlags, for reports.
nlohmann::ordered_json CrashValues(scenario::crash::CrashOptions options);

// The command line that CrashChildFlags reads as `child`, except for options that only the test itself needs.
std::vector<std::string> CrashChildArguments(scenario::crash::ChildOptions child);
// The command that repeats a test up to and with `cycle`, in a new directory.
std::string CrashReplayCommand(scenario::crash::CrashOptions options, uint64_t cycle);

}  // namespace gannet::cli
