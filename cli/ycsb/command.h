// `gannet ycsb`.
#pragma once

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds the command to the program; when it runs, it sets *exit_code.
void AddYcsbCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
