// The program's command line: all commands and flags.
#pragma once

#include <memory>

namespace CLI {
class App;
}

namespace gannet::cli {

// Runs the command that the arguments of main name. Returns the exit code of the process.
int RunGannet(int argc, char** argv);

// Parsing a command line with it runs the command, whose exit code is stored in *exit_code.
std::unique_ptr<CLI::App> MakeApp(int* exit_code);

}  // namespace gannet::cli
