// Command line flags of the tpcc verbs.
#pragma once

#include "CLI/App.hpp"
#include "cli/tpcc/options.h"

namespace gannet::cli {

// Adds the flags that `options->verb` takes. Parsing `command` fills `*options`, which must live until then. A wrong
// value is a CLI::ValidationError "--flag value: what to do"; Complete() reports values that do not fit together.
void AddTpccFlags(CLI::App& command, TpccOptions* options);

}  // namespace gannet::cli
