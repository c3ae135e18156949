// gannet sim: seeded runs of a simulated cluster.
#pragma once

#include "CLI/CLI.hpp"

namespace gannet::cli {

// Adds `sim` to `app`; when it runs, *exit_code is what the program returns.
void AddSimCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
