// What is wrong with a command line, in one clause.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace gannet::cli {

// The last command that was recognized, and its full name ("gannet tpcc run").
const CLI::App* DeepestCommand(const CLI::App& app, std::string* name);

// The error of parsing the command line of `command`. Of a command or flag that does not exist it says which one was
// probably meant.
std::string ExplainError(const CLI::App& command, const CLI::ParseError& error);

}  // namespace gannet::cli
