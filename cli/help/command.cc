#include "cli/help/command.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/common/command.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/words.h"
#include "cli/help/app_text.h"

namespace gannet::cli {
namespace {

// Writes each page into a file of the directory.
Status WritePages(const std::vector<ManPage>& pages, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const ManPage& page : pages) {
    const std::string path = absl::StrFormat("%s/%s.1", directory, page.name);
    std::ofstream file(path, std::ios::trunc);
    file << page.text;
    file.close();
    if (!file) return absl::UnavailableError(absl::StrFormat("--out %s: cannot write %s", directory, path));
  }
  return absl::OkStatus();
}

int Help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  std::string before;
  for (const std::string& word : words) {
    std::vector<std::string> choices;
    const CLI::App* next = nullptr;
    for (const CLI::App* choice : CommandsOf(*command)) {
      choices.push_back(choice->get_name());
      if (choice->get_name() == word) next = choice;
    }
    if (next == nullptr) {
      const std::string nearest = Nearest(word, choices);
      absl::FPrintF(stderr, "gannet help: %s has no command '%s'; %s%s\n", name, word,
                    nearest.empty() ? "it has: " : "did you mean ",
                    nearest.empty() ? absl::StrJoin(choices, ", ") : nearest + "?");
      return kExitBadFlags;
    }
    command = next;
    before = name;
    name += " " + word;
  }
  absl::PrintF("%s", HelpText(*command, before));
  return kExitOk;
}

enum class Text : uint8_t { kBash, kZsh, kMan };

StatusOr<Text> ParseKind(const std::string& text) {
  static constexpr std::array<std::string_view, 3> kNames = {"bash", "zsh", "man"};
  const StatusOr<size_t> choice = ParseChoice(text, kNames);
  if (!choice.ok()) return choice.status();
  return static_cast<Text>(*choice);
}

}  // namespace

void AddHelpCommand(CLI::App& app, int* exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "Explain a command: gannet help tpcc run.");
  help->add_option("COMMAND", *words, "The command. Default: list all");
  help->callback([&app, words, exit_code] { *exit_code = Help(app, *words); });

  const auto text = std::make_shared<Text>();
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for bash or zsh, or a man page.");
  completion->footer(
      "`cmake --install` puts all three where bash, zsh and man look for them. Each command has a man page of its "
      "own.\n\n"
      "Example: source <(gannet completion bash)");
  Add(*completion, "KIND", text.get(), ParseKind, "KIND", "bash, zsh or man")->required();
  const auto out = std::make_shared<std::string>();
  AddPath(*completion, "--out", out.get(), "DIR",
          "With man: write the pages of all commands into this directory. Default: print that of gannet");
  completion->callback([&app, text, out, exit_code] {
    *exit_code = kExitOk;
    if (*text == Text::kMan && !out->empty()) {
      const Status written = WritePages(ManPages(app, GANNET_VERSION), *out);
      if (!written.ok()) *exit_code = Fail("completion", written);
      return;
    }
    absl::PrintF("%s", *text == Text::kBash  ? BashCompletion(app)
                       : *text == Text::kZsh ? ZshCompletion(app)
                                             : ManPages(app, GANNET_VERSION).front().text);
  });
}

}  // namespace gannet::cli
