#include "cli/common/explain.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/common/words.h"

namespace gannet::cli {
namespace {

std::string DidYouMean(const std::string& word, const std::vector<std::string>& choices) {
  const std::string nearest = Nearest(word, choices);
  return nearest.empty() ? "" : absl::StrFormat("; did you mean %s?", nearest);
}

std::vector<std::string> FlagNamesOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

}  // namespace

const CLI::App* DeepestCommand(const CLI::App& app, std::string* name) {
  const CLI::App* command = &app;
  *name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    *name += (name->empty() ? "" : " ") + command->get_name();
  }
  return command;
}

std::string ExplainError(const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = command.remaining();
  std::vector<std::string> choices;
  for (const CLI::App* choice : command.get_subcommands({})) {
    if (!choice->get_group().empty()) choices.push_back(choice->get_name());  // the others are hidden
  }
  if (!choices.empty() && (unknown.empty() || !unknown.front().starts_with('-'))) {
    const std::string said = unknown.empty() ? "" : absl::StrFormat("there is no command '%s'", unknown.front());
    const std::string meant = unknown.empty() ? "" : DidYouMean(unknown.front(), choices);
    if (!meant.empty()) return said + meant;
    return said + (said.empty() ? "" : "; ") + "give a command: " + absl::StrJoin(choices, ", ");
  }
  if (!unknown.empty()) {
    // What comes behind -- is no flag.
    const auto end = std::ranges::find(unknown, "--");
    const auto flag = std::find_if(unknown.begin(), end, [](const std::string& word) { return word.starts_with('-'); });
    if (flag != end) {
      const std::string name = flag->substr(0, flag->find('='));
      return absl::StrFormat("%s: there is no such flag%s", *flag, DidYouMean(name, FlagNamesOf(command)));
    }
    const std::string& word = end == unknown.begin() && unknown.size() > 1 ? unknown[1] : unknown.front();
    return absl::StrFormat("'%s': is no flag, and the command takes no such argument; leave it out", word);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string text = error.what();
    return text.substr(0, text.find(':')) + ": needs a value";
  }
  return error.what();
}

}  // namespace gannet::cli
