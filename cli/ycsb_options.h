// Checks of the flags of `gannet ycsb`, taken together.
#pragma once

#include "base/status.h"
#include "bench/ycsb/options.h"

namespace gannet::cli {

// Sets the defaults that depend on other flags, and says which flags contradict each other or the machine:
// InvalidArgument with "--flag value: what to do".
Status Complete(bench::YcsbOptions* options);

}  // namespace gannet::cli
