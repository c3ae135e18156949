#include "lab/cli/app.h"

#include "CLI/CLI.hpp"
#include "cli/common/exit_codes.h"
#include "cli/help/command.h"
#include "cli/lab_commands.h"
#include "cli/run_app.h"
#include "lab/cli/crash_command.h"
#include "lab/cli/reproduce_command.h"
#include "lab/cli/sim_command.h"

namespace gannet::cli {

int RunLab(int argc, char** argv) {
  PrepareProcess();
  int exit_code = kExitOk;
  return RunApp(argc, argv, MakeLabApp(argc > 0 ? argv[0] : "", &exit_code), &exit_code);
}

std::unique_ptr<CLI::App> MakeLabApp(std::string_view called, int* exit_code) {
  auto app = std::make_unique<CLI::App>("What proves and measures Gannet: simulated runs, crashes, figures of papers.",
                                        called == kCalledByGannet ? "gannet" : "gannet-lab");
  app->set_version_flag("--version", "gannet-lab " GANNET_VERSION, "Print the version and exit");
  app->require_subcommand(1);
  AddSimCommand(*app, exit_code);
  AddCrashCommand(*app, exit_code);
  AddReproduceCommand(*app, exit_code);
  AddHelpCommand(*app, exit_code);
  app->footer(
      "Ctrl-C or SIGTERM stops a command soon: it says what is left, and exits with 130 or 143.\n"
      "Start with: gannet-lab sim --seeds 20");
  return app;
}

}  // namespace gannet::cli
