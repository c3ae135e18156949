// Texts made of a program's commands and flags: help, a completion script, and a man page.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace gannet::cli {

// The commands of `command` that are not hidden, in their order.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// What `command --help` prints; `before` are the words before its name. CLI::App::help prints that of the command that
// was parsed last instead.
std::string HelpText(const CLI::App& command, const std::string& before);

// A script for bash: after a command's words it offers its commands and flags, and files for everything else.
std::string BashCompletion(const CLI::App& app);
// The same for zsh, with descriptions: to source, or as the file _gannet in a directory of $fpath.
std::string ZshCompletion(const CLI::App& app);
// gannet(1), in man's macros.
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace gannet::cli
