#include "cli/app_text.h"

#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace gannet::cli {
namespace {

std::vector<const CLI::Option*> FlagsOf(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty() && !option->get_group().empty()) flags.push_back(option);
  }
  return flags;
}

// Calls `visit` for each command, with its words after the program's name: "", "tpcc", "tpcc run".
void Visit(const CLI::App& command, const std::string& words,
           const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(command, words);
  for (const CLI::App* next : CommandsOf(command)) {
    Visit(*next, words.empty() ? next->get_name() : words + " " + next->get_name(), visit);
  }
}

// "--limit", or "--limit N".
std::string WithValue(const CLI::Option& flag) {
  const std::string name = "--" + flag.get_lnames().front();
  return flag.get_expected_min() == 0 ? name : name + " " + flag.get_type_name();
}

// Text for man: a line must not begin with a control character, and a backslash is an escape.
std::string ForMan(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  std::vector<std::string> lines = absl::StrSplit(escaped, '\n');
  for (std::string& line : lines) {
    if (!line.empty() && (line.front() == '.' || line.front() == '\'')) line.insert(0, "\\&");
  }
  return absl::StrJoin(lines, "\n.br\n");
}

}  // namespace

std::vector<const CLI::App*> CommandsOf(const CLI::App& command) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* next : command.get_subcommands({})) {
    if (!next->get_group().empty()) commands.push_back(next);
  }
  return commands;
}

std::string HelpText(const CLI::App& command, const std::string& before) {
  return command.get_formatter()->make_help(
      &command, before.empty() ? command.get_name() : before + " " + command.get_name(), CLI::AppFormatMode::Normal);
}

std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  Visit(app, "", [&cases](const CLI::App& command, const std::string& words) {
    std::vector<std::string> choices;
    for (const CLI::App* next : CommandsOf(command)) choices.push_back(next->get_name());
    for (const CLI::Option* flag : FlagsOf(command)) choices.push_back("--" + flag->get_lnames().front());
    absl::StrAppend(&cases, "    '", words, "') choices='", absl::StrJoin(choices, " "), "' ;;\n");
  });
  std::string commands;
  Visit(app, "", [&commands](const CLI::App&, const std::string& words) {
    if (!words.empty()) absl::StrAppend(&commands, "      '", words, "') command=$next ;;\n");
  });
  return absl::StrCat(
      "# bash completion of gannet; made by gannet completion bash\n"
      "_gannet() {\n"
      "  local command='' next choices='' word i\n"
      "  for (( i = 1; i < COMP_CWORD; ++i )); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    next=${command:+$command }$word\n"
      "    case $next in\n",
      commands,
      "    esac\n"
      "  done\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$choices\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "}\n"
      "complete -o default -F _gannet gannet\n");
}

namespace {

// Text for a description in a zsh array: its first sentence. (Of colons only the first one in a word means something.)
std::string ForZsh(const std::string& text) {
  std::string first = text.substr(0, text.find('\n'));
  if (const size_t end = first.find(". "); end != std::string::npos) first.resize(end);
  while (!first.empty() && (first.back() == '.' || first.back() == ':')) first.pop_back();
  return absl::StrReplaceAll(first, {{"'", "'\\''"}});
}

std::string ZshArray(const char* name, const std::vector<std::pair<std::string, std::string>>& words) {
  std::string text = absl::StrCat("      ", name, "=(");
  for (const auto& [word, description] : words) {
    absl::StrAppend(&text, "\n        '", word, description.empty() ? "" : ":", ForZsh(description), "'");
  }
  return text + ")\n";
}

}  // namespace

std::string ZshCompletion(const CLI::App& app) {
  std::string cases;
  std::vector<std::string> commands;
  Visit(app, "", [&](const CLI::App& command, const std::string& words) {
    if (!words.empty()) commands.push_back("'" + words + "'");
    std::vector<std::pair<std::string, std::string>> next;
    for (const CLI::App* each : CommandsOf(command)) next.emplace_back(each->get_name(), each->get_description());
    std::vector<std::pair<std::string, std::string>> flags;
    std::vector<std::string> with_value;
    for (const CLI::Option* flag : FlagsOf(command)) {
      flags.emplace_back("--" + flag->get_lnames().front(), flag->get_description());
      if (flag->get_expected_min() > 0) with_value.push_back("--" + flag->get_lnames().front());
    }
    absl::StrAppend(&cases, "    '", words, "')\n", ZshArray("commands", next), ZshArray("flags", flags),
                    "      valued=(", absl::StrJoin(with_value, " "), ") ;;\n");
  });
  return absl::StrCat(
      "#compdef gannet\n"
      "# zsh completion of gannet; made by gannet completion zsh\n"
      "_gannet() {\n"
      "  local command='' next i\n"
      "  local -a commands flags valued\n"
      "  for (( i = 2; i < CURRENT; ++i )); do\n"
      "    next=${command:+$command }${words[i]}\n"
      "    case $next in\n"
      "      ",
      absl::StrJoin(commands, "|"),
      ") command=$next ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "  if (( ${valued[(Ie)${words[CURRENT-1]}]} )); then\n"
      "    _files\n"
      "  elif [[ ${words[CURRENT]} == -* ]]; then\n"
      "    _describe -o flag flags\n"
      "  elif (( ${#commands} )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}\n"
      "# As a file of $fpath this is the body of _gannet; sourced, it only registers the function.\n"
      "if [[ $funcstack[1] == _gannet ]]; then _gannet \"$@\"; else compdef _gannet gannet; fi\n");
}

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string text = absl::StrCat(".TH GANNET 1 \"\" \"gannet ", ForMan(version), "\" \"User Commands\"\n.SH NAME\n",
                                  "gannet \\- a transactional OLTP engine on memory that other machines can reach\n",
                                  ".SH SYNOPSIS\n.B gannet\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH COMMANDS\n");
  Visit(app, "", [&](const CLI::App& command, const std::string& words) {
    if (words.empty()) return;
    absl::StrAppend(&text, ".SS \"gannet ", ForMan(words));
    for (const CLI::Option* option : command.get_options()) {
      if (!option->get_lnames().empty()) continue;
      const std::string name = option->get_name(/*positional=*/true);
      absl::StrAppend(&text, " ", ForMan(option->get_required() ? name : "[" + name + "]"));
    }
    absl::StrAppend(&text, "\"\n", ForMan(command.get_description()), "\n");
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group().empty() || option->get_name() == "--help") continue;
      const bool positional = option->get_lnames().empty();
      absl::StrAppend(&text, ".TP\n.B ", ForMan(positional ? option->get_name(true) : WithValue(*option)), "\n",
                      ForMan(option->get_description()), "\n");
    }
    if (!command.get_footer().empty()) absl::StrAppend(&text, ".PP\n", ForMan(command.get_footer()), "\n");
  });
  absl::StrAppend(&text, ".SH EXIT STATUS\n0: done. 1: the work failed, its result is wrong, or a row was not found.\n",
                  "2: the command line is wrong, and nothing was done. 130 or 143: a signal stopped it.\n");
  return text;
}

}  // namespace gannet::cli
