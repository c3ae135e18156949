// The part that the main functions of all programs share.
#pragma once

#include <memory>

#include "CLI/CLI.hpp"

namespace gannet::cli {

// `app` runs the command that it parses, and stores its exit code in *exit_code. Returns that of the process.
int RunApp(int argc, char** argv, const std::unique_ptr<CLI::App>& app, const int* exit_code);

// Called at the beginning of main, before anything is opened.
void PrepareProcess();

}  // namespace gannet::cli
