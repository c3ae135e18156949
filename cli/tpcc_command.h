// `gannet tpcc`: loads TPC-C, runs it, checks it, reports.
#pragma once

#include "CLI/App.hpp"

namespace gannet::cli {

// Adds the command and its verbs to `app`. When one of them was given, parsing sets `*exit_code` to what it ended with.
void AddTpccCommand(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
