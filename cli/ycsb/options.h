// Checks combinations of the flags of `gannet ycsb`.
#pragma once

#include <string>

#include "base/status.h"
#include "bench/ycsb/options.h"
#include "cli/ycsb/flags.h"

namespace gannet::cli {

// Sets the defaults that depend on other flags, and says which flags contradict each other or the machine:
// InvalidArgument with "--flag value: what to do".
Status Complete(bench::YcsbOptions* options);

// Sets in *options what the file of flags.cluster says, if there is one; before Complete. `flag_of_servers` is a flag
// that was given although the file says it, `flag_of_one_process` one that needs servers in this process; both may be
// empty. Errors as Complete.
Status ReadCluster(const YcsbFlags& flags, const std::string& flag_of_servers, const std::string& flag_of_one_process,
                   bench::YcsbOptions* options);

}  // namespace gannet::cli
