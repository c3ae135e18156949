// --salvage of the commands that read a data directory: they go on after damage, and tell what they leave out.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace gannet::cli {

void AddSalvage(CLI::App& command, bool* salvage);
// Prints what salvage left out to standard error. Returns whether that was anything: the command then ends with
// kExitFailed.
bool TellLeftOut(const std::vector<std::string>& left_out);

}  // namespace gannet::cli
