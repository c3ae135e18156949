// `gannet crashtest`: kills a database repeatedly and checks that it keeps its promises.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the command to `app`, as AddTpccCommand does, and the hidden command of its child processes.
void AddCrashCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
