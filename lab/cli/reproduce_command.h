#pragma once

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds `gannet reproduce xstore` to `app`. When it runs, it sets *exit_code.
void AddReproduceCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
