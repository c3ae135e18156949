// `gannet devices`: the RDMA devices of this machine.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the command to `app`, as AddTpccCommand does.
void AddDevicesCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
