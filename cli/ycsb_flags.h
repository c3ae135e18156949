#pragma once

#include <string>

#include "base/status.h"
#include "bench/ycsb/options.h"

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds the flags of `gannet ycsb`. Parsing them fills *options and *json (the file for the report; empty: none), which
// must live until then. A value that is wrong by
// itself is a CLI::ValidationError "--flag value: what to do"; what is wrong together, Complete() says.
void AddYcsbFlags(CLI::App& command, bench::YcsbOptions* options, std::string* json);

// "15x24".
StatusOr<bench::ClientThreads> ParseClients(const std::string& text);

}  // namespace gannet::cli
