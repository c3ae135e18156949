#include "cli/help_command.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/app_text.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/words.h"

namespace gannet::cli {
namespace {

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
  CLI::App* completion =
      app.add_subcommand("completion", "Print a completion script for bash or zsh, or the man page.");
  completion->footer(
      "`cmake --install` puts all three where bash, zsh and man look for them.\n\n"
      "Example: source <(gannet completion bash)");
  Add(*completion, "KIND", text.get(), ParseKind, "KIND", "bash, zsh or man")->required();
  completion->callback([&app, text, exit_code] {
    absl::PrintF("%s", *text == Text::kBash  ? BashCompletion(app)
                       : *text == Text::kZsh ? ZshCompletion(app)
                                             : ManPage(app, GANNET_VERSION));
    *exit_code = kExitOk;
  });
}

}  // namespace gannet::cli
