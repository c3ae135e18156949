// `gannet recover`, `verify`, `log dump`, `backup` and `restore`: commands for data directories.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Like AddTpccCommand.
void AddDataCommands(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
