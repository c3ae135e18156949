// `gannet serve`: one long-lived server process of a cluster.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Like AddTpccCommand.
void AddServeCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
