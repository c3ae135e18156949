// Names of fixed and adaptive paths in the reports of racks.
#pragma once

namespace gannet::experiments {

// Names by txn::ReadPathPolicy.
inline constexpr const char* kReadPathNames[] = {"adaptive", "one-sided", "rpc", "ordered tables by rpc"};

}  // namespace gannet::experiments
