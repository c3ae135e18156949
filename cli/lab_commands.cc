#include "cli/lab_commands.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/common/exit_codes.h"

namespace gannet::cli {
namespace {

constexpr const char* kProgram = "gannet-lab";

// Returns only if the program is not there.
int StartLab(const std::string& command, const std::vector<std::string>& rest) {
  std::vector<std::string> words = {std::string(kCalledByGannet), command};
  words.insert(words.end(), rest.begin(), rest.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  // The program lies next to this one, where it is installed; in its folder, where it is built; on the PATH.
  execv((folder / kProgram).c_str(), argv.data());
  execv((folder.parent_path() / "lab" / "cli" / kProgram).c_str(), argv.data());
  execvp(kProgram, argv.data());
  absl::FPrintF(stderr,
                "gannet %s: this is a command of the program %s, which is neither in %s nor on the PATH; install the "
                "package %s, or build it: ./dev build release\n",
                command, kProgram, folder.string(), kProgram);
  return kExitFailed;
}

}  // namespace

void AddLabCommands(CLI::App& app, int* exit_code) {
  for (const LabCommand& each : {kCrashCommand, kSimCommand, kReproduceCommand}) {
    CLI::App* command = app.add_subcommand(each.name, each.about);
    command->set_help_flag();   // gannet-lab explains it
    command->prefix_command();  // all that comes behind is for gannet-lab
    command->callback([command, exit_code] { *exit_code = StartLab(command->get_name(), command->remaining()); });
  }
}

}  // namespace gannet::cli
