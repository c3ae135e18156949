// `gannet serve`: one long-lived server process of a cluster.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the command to `app`, as AddTpccCommand does.
void AddServeCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
