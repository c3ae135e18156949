#pragma once

#include <string>

#include "base/status.h"
#include "cli/ycsb_options.h"

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds the flags of `gannet ycsb`. Parsing them fills *options, which must live until then. A value that is wrong by
// itself is a CLI::ValidationError "--flag value: what to do"; what is wrong together, Complete() says.
void AddYcsbFlags(CLI::App& command, YcsbOptions* options);

// "15x24".
StatusOr<ClientThreads> ParseClients(const std::string& text);

}  // namespace gannet::cli
