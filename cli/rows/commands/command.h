// The commands about tables and rows of a data directory, which need no schema: get, put, delete, scan, count, import,
// tables, create-table, drop-table, rename-table, widen-table, create-index.
#pragma once

#include <memory>

#include "CLI/CLI.hpp"
#include "cli/rows/row_host.h"

namespace gannet::cli {

// Adds the commands of the program: each command opens the directory that it names.
void AddRowCommands(CLI::App& app, int* exit_code);
// Adds the same commands for any host.
void AddRowCommands(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code);

}  // namespace gannet::cli
