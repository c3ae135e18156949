// `gannet crashtest`: kills a database again and again, and looks whether it keeps what it promised.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// As AddTpccCommand; also the hidden command of its child processes.
void AddCrashCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
