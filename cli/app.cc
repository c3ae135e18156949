#include "cli/app.h"

#include "CLI/CLI.hpp"
#include "cli/common/exit_codes.h"
#include "cli/data/command.h"
#include "cli/help/command.h"
#include "cli/lab_commands.h"
#include "cli/rows/commands/command.h"
#include "cli/run_app.h"
#include "cli/serve/command.h"
#include "cli/serve/devices_command.h"
#include "cli/shell/command.h"
#include "cli/tpcc/command.h"
#include "cli/ycsb/command.h"

namespace gannet::cli {

int RunGannet(int argc, char** argv) {
  PrepareProcess();
  int exit_code = kExitOk;
  return RunApp(argc, argv, MakeApp(&exit_code), &exit_code);
}

std::unique_ptr<CLI::App> MakeApp(int* exit_code) {
  auto app = std::make_unique<CLI::App>("Gannet: a transactional OLTP engine on memory that other machines can reach.",
                                        "gannet");
  app->set_version_flag("--version", "gannet " GANNET_VERSION, "Print the version and exit");
  app->require_subcommand(1);
  AddTpccCommand(*app, exit_code);
  AddYcsbCommand(*app, exit_code);
  AddServeCommand(*app, exit_code);
  AddDevicesCommand(*app, exit_code);
  AddRowCommands(*app, exit_code);
  AddShellCommand(*app, exit_code);
  AddDataCommands(*app, exit_code);
  AddLabCommands(*app, exit_code);
  AddHelpCommand(*app, exit_code);
  // The footer comes last, because a command that is added later would get it, too.
  app->footer(
      "Ctrl-C or SIGTERM stops a command soon: it says what is left, and exits with 130 or 143 (gannet serve: with "
      "0).\n"
      "Start with: gannet tpcc run --warehouses 2 --threads 2 --duration 10s");
  return app;
}

}  // namespace gannet::cli
