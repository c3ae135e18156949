// gannet sim: seeded runs of a simulated cluster.
#pragma once

#include "CLI/CLI.hpp"

namespace gannet::cli {

// Adds `sim` to `app`; when it runs, it sets *exit_code.
void AddSimCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
