// `gannet recover`, `verify`, `log dump`, `backup` and `restore`: commands for data directories.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the commands to `app`, as AddTpccCommand does.
void AddDataCommands(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
