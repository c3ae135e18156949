// `gannet tpcc`: loads TPC-C, runs it, checks it and reports the results.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the command and its verbs to `app`. Parsing runs the given verb and sets *exit_code to its result.
void AddTpccCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
