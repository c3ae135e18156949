// gannet help COMMAND, and the texts that are made of the commands and flags themselves: completion for shells, and the
// man page (cli/help/app_text.h).
#pragma once

#include "CLI/CLI.hpp"

namespace gannet::cli {

// Add it when all other commands are there. `app` must outlive its parsing.
void AddHelpCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
