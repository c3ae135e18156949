// The secret of a cluster over verbs: each process proves to the others that it knows it.
#pragma once

#include <string>

#include "base/status.h"
#include "cluster/config/config.h"

namespace gannet::cluster {

// The environment variable that holds the secret if the cluster file names no file. (There is no flag for it, because
// every user of the machine can read command lines.)
inline constexpr const char* kSecretVariable = "GANNET_CLUSTER_SECRET";
inline constexpr size_t kLeastSecretBytes = 16;

// The secret, without newlines at its end. FailedPrecondition if users other than the file's owner may read the file,
// or if the secret is short. No message shows any part of it.
StatusOr<std::string> ReadSecret(const Config& config);

}  // namespace gannet::cluster
