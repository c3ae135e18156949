// The program's command line: all commands and flags.
#pragma once

#include <memory>

#include "CLI/CLI.hpp"

namespace gannet::cli {

// Parsing a command line with it runs the command, whose exit code is stored in *exit_code.
std::unique_ptr<CLI::App> MakeApp(int* exit_code);

}  // namespace gannet::cli
