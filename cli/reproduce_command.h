#pragma once

namespace CLI {
class App;
}

namespace gannet::cli {

// Adds `gannet reproduce xstore` to `app`. When it was the one given, *exit_code says how it went.
void AddReproduceCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
