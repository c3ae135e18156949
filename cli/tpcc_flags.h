// The command line of the tpcc verbs.
#pragma once

#include "CLI/App.hpp"
#include "cli/tpcc_options.h"

namespace gannet::cli {

// Adds the flags that `options->verb` takes. Parsing `command` fills `*options`, which must live until then. A value
// that is wrong by itself is a CLI::ValidationError "--flag value: what to do"; what is wrong together, Complete()
// says.
void AddTpccFlags(CLI::App& command, TpccOptions* options);

}  // namespace gannet::cli
