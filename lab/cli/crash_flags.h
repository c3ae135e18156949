// The command lines of `gannet crashtest` and of its hidden child, `gannet crashtest-child`: conversion to options and
// back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario/crash/child.h"
#include "lab/scenario/crash/options.h"

namespace CLI {
class App;
}

namespace gannet::cli {

// Parsing the flags fills *options, which must live until then.
void AddCrashFlags(CLI::App& command, scenario::crash::CrashOptions* options);
void AddCrashChildFlags(CLI::App& command, scenario::crash::ChildOptions* options);

// The command line that AddCrashChildFlags reads as `child`, except for options that only the test itself needs.
std::vector<std::string> CrashChildArguments(const scenario::crash::ChildOptions& child);
// The command that repeats a test up to and with `cycle`, in a new directory.
std::string CrashReplayCommand(const scenario::crash::CrashOptions& options, uint64_t cycle);

}  // namespace gannet::cli
