// `gannet recover`, `verify`, `log dump`, `backup` and `restore`: data directories from outside.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// As AddTpccCommand.
void AddDataCommands(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
