// `gannet ycsb`.
#pragma once

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds the command to the program; when it runs, *exit_code becomes what the program should exit with.
void AddYcsbCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
