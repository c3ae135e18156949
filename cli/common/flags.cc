#include "cli/common/flags.h"

#include "absl/strings/match.h"

namespace gannet::cli {

nlohmann::ordered_json JsonOf(absl::Duration value, const std::string& key) {
  if (value == absl::InfiniteDuration()) return {};
  return absl::EndsWith(key, "_us") ? absl::ToDoubleMicroseconds(value) : absl::ToDoubleSeconds(value);
}

Flag& Flags::Add(Flag flag) {
  flag.group = group_;
  return all_.emplace_back(std::move(flag));
}

Flag& Flags::AddSwitch(std::string name, std::string key, bool* target, std::string help, Marks marks, bool value) {
  Flag flag = {.name = std::move(name), .key = std::move(key), .word = {}, .help = std::move(help)};
  flag.marks = marks;
  flag.set = [target, value](const std::string&) {
    *target = value;
    return absl::OkStatus();
  };
  flag.text = [target, value, given = flag.name] { return *target == value ? given : ""; };
  flag.json = [target] { return nlohmann::ordered_json(*target); };
  return Add(std::move(flag));
}

CLI::Option* AddTo(CLI::App* command, const Flag& flag) {
  const auto set = [set = flag.set, name = flag.name](const std::string& text) {
    const Status status = set(text);
    if (!status.ok()) throw CLI::ValidationError(name + " " + text, std::string(status.message()));
  };
  CLI::Option* const option = flag.word.empty() ? command->add_flag_callback(
                                                      flag.name, [set] { set(""); }, flag.help)
                                                : command->add_option_function<std::string>(flag.name, set, flag.help)
                                                      ->type_name(flag.word)
                                                      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!flag.group.empty()) option->group(flag.group);
  if (!flag.excluded.empty()) option->excludes(command->get_option(flag.excluded));
  return option;
}

void Flags::AddTo(CLI::App* command) const {
  for (const Flag& flag : all_) cli::AddTo(command, flag);
}

nlohmann::ordered_json Flags::Values(Marks with, Marks without) const {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const Flag& flag : all_) {
    if (flag.key.empty() || (flag.marks & with) != with || (flag.marks & without) != 0) continue;
    if (nlohmann::ordered_json value = flag.json(); !value.is_null()) values[flag.key] = std::move(value);
  }
  return values;
}

std::vector<std::string> Flags::Arguments(Marks with) const {
  std::vector<std::string> words;
  for (const Flag& flag : all_) {
    const std::string text = (flag.marks & with) == with ? flag.text() : "";
    if (text.empty()) continue;
    words.push_back(flag.name);
    if (!flag.word.empty()) words.push_back(text);
  }
  return words;
}

std::string Flags::FirstGiven(const CLI::App& command, Marks marks) const {
  for (const Flag& flag : all_) {
    if ((flag.marks & marks) == marks && command.count(flag.name) > 0) return flag.name;
  }
  return "";
}

}  // namespace gannet::cli
