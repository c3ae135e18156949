// Command line flags of the tpcc verbs.
#pragma once

#include "cli/common/flags.h"
#include "cli/tpcc/options.h"

namespace gannet::cli {

// The flags that `options->verb` takes. Complete() reports values that do not fit together.
Flags TpccFlags(TpccOptions* options);

}  // namespace gannet::cli
