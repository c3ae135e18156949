// Texts made of a program's commands and flags: help, completions, and man pages.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/functional/function_ref.h"

namespace gannet::cli {

// The commands of `command` that are not hidden, in their order.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// What `command --help` prints; `before` are the words before its name. CLI::App::help prints that of the command that
// was parsed last instead.
std::string HelpText(const CLI::App& command, const std::string& before);

// Returns the words that begin with `partial` and may follow the words `before` of a command line: commands, flags,
// values of a flag, tables. `tables` returns their names. It is called only where the name of a table may come.
std::vector<std::string> CompletionsOf(CLI::App& app, const std::vector<std::string>& before,
                                       const std::string& partial,
                                       absl::FunctionRef<std::vector<std::string>()> tables);

// A script for bash: after a command's words it offers its commands and flags, the values of a flag, the tables of a
// data directory, and files for everything else. It tries the flags of `app` with a wrong value, whose errors name the
// right ones, so `app` is not to be used afterwards.
std::string BashCompletion(CLI::App& app);
// A script like that of BashCompletion for zsh, with descriptions: to source, or as the file _gannet in a directory of
// $fpath.
std::string ZshCompletion(CLI::App& app);

struct ManPage {
  std::string name;  // without ".1": "gannet", "gannet-tpcc-run"
  std::string text;  // in man's macros
};
// gannet(1), which lists the commands, and a page for each command.
std::vector<ManPage> ManPages(const CLI::App& app, const std::string& version);

}  // namespace gannet::cli
