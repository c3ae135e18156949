// The program `gannet`.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/crash_command.h"
#include "cli/data_command.h"
#include "cli/devices_command.h"
#include "cli/exit_codes.h"
#include "cli/reproduce_command.h"
#include "cli/serve_command.h"
#include "cli/sim_command.h"
#include "cli/tpcc_command.h"
#include "cli/ycsb_command.h"

namespace {

// The last command that was recognized, and its full name ("gannet tpcc run").
const CLI::App* Deepest(const CLI::App& app, std::string* name) {
  const CLI::App* command = &app;
  *name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    *name += " " + command->get_name();
  }
  return command;
}

// The error in the command line, in one clause.
std::string Explain(const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = command.remaining();
  std::vector<std::string> choices;
  for (const CLI::App* choice : command.get_subcommands({})) {
    if (!choice->get_group().empty()) choices.push_back(choice->get_name());  // the others are hidden
  }
  if (!choices.empty() && (unknown.empty() || unknown.front().front() != '-')) {
    const std::string said = unknown.empty() ? "" : absl::StrFormat("there is no command '%s'; ", unknown.front());
    return said + "give a command: " + absl::StrJoin(choices, ", ");
  }
  if (!unknown.empty()) {
    const auto flag = std::ranges::find_if(unknown, [](const std::string& word) { return word.front() == '-'; });
    if (flag != unknown.end()) return absl::StrFormat("%s: there is no such flag", *flag);
    return absl::StrFormat("'%s': is no flag, and the command takes no such argument; leave it out", unknown.front());
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string text = error.what();
    return text.substr(0, text.find(':')) + ": needs a value";
  }
  return error.what();
}

[[noreturn]] void EndWithoutMemory() {
  constexpr std::string_view kWhat =
      "gannet: no memory; give this process more (ulimit -v, or the limit of its container), or less to do\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhat.data(), kWhat.size());
  _exit(gannet::cli::kExitFailed);
}

// The output may still be in a buffer, and its disk may be full.
int FinishOutput(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return exit_code;
  absl::FPrintF(stderr, "gannet: cannot write to standard output%s%s; the output is not complete\n",
                errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno));
  return exit_code == gannet::cli::kExitOk ? gannet::cli::kExitFailed : exit_code;
}

}  // namespace

// An unexpected exception ends the program.
int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  std::set_new_handler(EndWithoutMemory);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error of its write, which says which file
  int exit_code = gannet::cli::kExitOk;
  CLI::App app("Gannet: a transactional OLTP engine on memory that other machines can reach.", "gannet");
  app.set_version_flag("--version", "gannet " GANNET_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  gannet::cli::AddTpccCommand(app, &exit_code);
  gannet::cli::AddYcsbCommand(app, &exit_code);
  gannet::cli::AddServeCommand(app, &exit_code);
  gannet::cli::AddDevicesCommand(app, &exit_code);
  gannet::cli::AddDataCommands(app, &exit_code);
  gannet::cli::AddCrashCommand(app, &exit_code);
  gannet::cli::AddSimCommand(app, &exit_code);
  gannet::cli::AddReproduceCommand(app, &exit_code);
  // Last, because a command that is added later would get the footer, too.
  app.footer(
      "Ctrl-C or SIGTERM stops a command soon: it says what is left, and exits with 130 or 143 (gannet serve: with "
      "0).\n"
      "Start with: gannet tpcc run --warehouses 2 --threads 2 --duration 10s");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return FinishOutput(app.exit(error));  // --help, --version
    std::string name;
    const CLI::App* command = Deepest(app, &name);
    absl::FPrintF(stderr, "%s: %s (see %s --help)\n", name, Explain(*command, error), name);
    return gannet::cli::kExitBadFlags;
  }
  return FinishOutput(exit_code);
}
