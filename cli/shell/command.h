// gannet shell: the commands about tables and rows, one per line, in one open directory, and transactions of several of
// them.
#pragma once

#include "CLI/CLI.hpp"

namespace gannet::cli {

void AddShellCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
