// What the processes of a cluster over verbs prove to each other that they know.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/cluster/config.h"

namespace gannet::cli {

// The environment variable that has it if the cluster file names no file. (A command line has none: everybody on the
// machine can read those.)
inline constexpr const char* kSecretVariable = "GANNET_CLUSTER_SECRET";
inline constexpr size_t kLeastSecretBytes = 16;

// A newline at the end is not part of it. FailedPrecondition if others than the file's owner may read it, or if it is
// short; no message ever shows any of it.
StatusOr<std::string> ReadSecret(const ClusterConfig& config);

}  // namespace gannet::cli
