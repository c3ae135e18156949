// The commands of the program gannet-lab, which `gannet` starts for them, as git does: `gannet sim` is `gannet-lab
// sim`.
#pragma once

#include <string_view>

#include "CLI/CLI.hpp"

namespace gannet::cli {

struct LabCommand {
  const char* name;
  const char* about;
};
inline constexpr LabCommand kCrashCommand = {"crashtest",
                                             "Kill a database repeatedly and check that it keeps its promises."};
inline constexpr LabCommand kSimCommand = {
    "sim", "Run a cluster in a deterministic simulation, with faults, and check its results."};
inline constexpr LabCommand kReproduceCommand = {
    "reproduce", "The experiments of a paper, and our own on the choice of path, on a simulated rack."};

// The name by which gannet-lab is called then.
inline constexpr std::string_view kCalledByGannet = "gannet";

// Adds them to `app`. When one runs, gannet-lab takes the place of this process; if it is not there, *exit_code is set.
void AddLabCommands(CLI::App& app, int* exit_code);

}  // namespace gannet::cli
