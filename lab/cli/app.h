// The command line of the program gannet-lab: all commands and flags.
#pragma once

#include <memory>
#include <string_view>

namespace CLI {
class App;
}

namespace gannet::cli {

// Runs the command that the arguments of main name. Returns the exit code of the process.
int RunLab(int argc, char** argv);

// Makes the app of gannet-lab, as MakeApp makes gannet's. `called`: the program's name. If that is "gannet", which
// starts gannet-lab for its commands (cli/lab_commands.h), help and errors say what was typed.
std::unique_ptr<CLI::App> MakeLabApp(std::string_view called, int* exit_code);

}  // namespace gannet::cli
