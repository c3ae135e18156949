#include "cli/help/app_text.h"

#include <algorithm>
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

std::string ForProgram(const CLI::App& app, const std::string& script) {
  return absl::StrReplaceAll(script, {{"@PROGRAM@", app.get_name()}});
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

namespace {

// The values of a flag, or argument, that has a few: its error about another value names them.
std::vector<std::string> ValuesOf(CLI::Option& option) {
  constexpr std::string_view kMust = "must be ";
  std::string error;
  try {
    option.add_result("?");
    option.run_callback();
  } catch (const CLI::Error& wrong) {
    error = wrong.what();
  }
  option.clear();
  const size_t begin = error.find(kMust);
  if (begin == std::string::npos) return {};
  std::vector<std::string> values =
      absl::StrSplit(absl::StrReplaceAll(error.substr(begin + kMust.size()), {{" or ", ", "}}), ", ");
  const auto is_word = [](const std::string& word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
  };
  if (values.size() < 2 || !std::ranges::all_of(values, is_word)) return {};
  return values;
}

CLI::App* FindCommand(CLI::App& app, const std::string& name) {
  for (CLI::App* const command : app.get_subcommands([](CLI::App* each) { return !each->get_group().empty(); })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

CLI::Option* FindOption(CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name);
}

// The places of a command where the name of a table of the directory DIR may come.
bool TakesTable(CLI::App& command) {
  return FindOption(command, "TABLE") != nullptr;
}
bool IsOfTable(const std::string& flag) {
  return flag == "--table" || flag == "--by";
}

// Calls `visit` for each command that can be changed, as Visit.
void VisitAll(CLI::App& app, const std::function<void(CLI::App&, const std::string&)>& visit) {
  Visit(app, "", [&visit](const CLI::App& command, const std::string& words) {
    visit(const_cast<CLI::App&>(command), words);  // `app` can be changed, so its commands can
  });
}

}  // namespace

std::vector<std::string> CompletionsOf(CLI::App& app, const std::vector<std::string>& before,
                                       const std::string& partial,
                                       absl::FunctionRef<std::vector<std::string>()> tables) {
  CLI::App* command = &app;
  std::string last;      // word
  size_t arguments = 0;  // of the command
  for (const std::string& word : before) {
    CLI::App* const next = arguments == 0 ? FindCommand(*command, word) : nullptr;
    if (next != nullptr) {
      command = next;
    } else if (!word.starts_with('-') && !last.starts_with("--")) {
      ++arguments;
    }
    last = word;
  }
  std::vector<std::string> choices;
  CLI::Option* const flag = last.starts_with("--") ? FindOption(*command, last) : nullptr;
  if (flag != nullptr && flag->get_expected_min() > 0) {
    choices = IsOfTable(last) ? tables() : ValuesOf(*flag);
  } else if (partial.starts_with('-')) {
    for (const CLI::Option* each : FlagsOf(*command)) choices.push_back("--" + each->get_lnames().front());
  } else if (const std::vector<const CLI::App*> next = CommandsOf(*command); !next.empty()) {
    for (const CLI::App* each : next) choices.push_back(each->get_name());
  } else if (arguments == 0 && TakesTable(*command)) {
    choices = tables();
  }
  std::erase_if(choices, [&partial](const std::string& choice) { return !choice.starts_with(partial); });
  return choices;
}

std::string BashCompletion(CLI::App& app) {
  std::string commands;
  std::string values;
  std::string cases;
  VisitAll(app, [&](CLI::App& command, const std::string& words) {
    if (!words.empty()) absl::StrAppend(&commands, "      '", words, "') command=$next arguments=() ;;\n");
    std::vector<std::string> choices;
    for (const CLI::App* next : CommandsOf(command)) choices.push_back(next->get_name());
    for (CLI::Option* option : command.get_options()) {
      if (option->get_group().empty() || option->get_expected_min() == 0) continue;
      const std::vector<std::string> of_option = ValuesOf(*option);
      const bool positional = option->get_lnames().empty();
      if (positional) choices.insert(choices.end(), of_option.begin(), of_option.end());
      if (positional || (of_option.empty() && !IsOfTable(option->get_name()))) continue;
      absl::StrAppend(&values, "    '", words, " --", option->get_lnames().front(), "') ",
                      of_option.empty() ? "choices=$(_@PROGRAM@_tables)"
                                        : absl::StrCat("choices='", absl::StrJoin(of_option, " "), "'"),
                      " ;;\n");
    }
    for (const CLI::Option* flag : FlagsOf(command)) choices.push_back("--" + flag->get_lnames().front());
    absl::StrAppend(&cases, "      '", words, "') choices='", absl::StrJoin(choices, " "), "'",
                    TakesTable(command) ? " tables=1" : "", " ;;\n");
  });
  const std::string script = absl::StrCat(
      "# bash completion of @PROGRAM@; made by @PROGRAM@ completion bash\n"
      "_@PROGRAM@_tables() {\n"
      "  [[ -n ${arguments[0]} ]] || return\n"
      "  \"${COMP_WORDS[0]}\" tables \"${arguments[0]/#\\~/$HOME}\" --json 2>/dev/null </dev/null |\n"
      "    sed -n 's/^{\"table\":\"\\([^\"\\\\ ]*\\)\".*/\\1/p'\n"
      "}\n"
      "_@PROGRAM@() {\n"
      "  local command='' next choices='' tables='' word current=${COMP_WORDS[COMP_CWORD]} i\n"
      "  local last=${COMP_WORDS[COMP_CWORD-1]} arguments=()\n"
      "  for (( i = 1; i < COMP_CWORD; ++i )); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    next=${command:+$command }$word\n"
      "    case $next in\n",
      commands,
      "      *) [[ $word == -* || ${COMP_WORDS[i-1]} == --* ]] || arguments+=(\"$word\") ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command $last\" in\n",
      values, "    *) case $command in\n", cases,
      "    esac\n"
      "    if [[ -n $tables && $current != -* && ${#arguments[@]} == 1 ]]; then choices=$(_@PROGRAM@_tables); fi ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
      "}\n"
      "complete -o default -F _@PROGRAM@ @PROGRAM@\n");
  return ForProgram(app, script);
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

std::string ZshCompletion(CLI::App& app) {
  std::string cases;
  std::string values;
  std::vector<std::string> commands;
  VisitAll(app, [&](CLI::App& command, const std::string& words) {
    if (!words.empty()) commands.push_back("'" + words + "'");
    std::vector<std::pair<std::string, std::string>> next;
    for (const CLI::App* each : CommandsOf(command)) next.emplace_back(each->get_name(), each->get_description());
    std::vector<std::pair<std::string, std::string>> flags;
    std::vector<std::string> with_value;
    for (CLI::Option* option : command.get_options()) {
      if (option->get_group().empty()) continue;
      const std::vector<std::string> of_option =
          option->get_expected_min() == 0 ? std::vector<std::string>() : ValuesOf(*option);
      if (option->get_lnames().empty()) {
        for (const std::string& value : of_option) next.emplace_back(value, "");
        continue;
      }
      const std::string flag = "--" + option->get_lnames().front();
      flags.emplace_back(flag, option->get_description());
      if (option->get_expected_min() > 0) with_value.push_back(flag);
      if (of_option.empty() && !IsOfTable(flag)) continue;
      absl::StrAppend(&values, "    '", words, " ", flag, "') choices=(",
                      of_option.empty() ? "$(_@PROGRAM@_tables)" : absl::StrJoin(of_option, " "), ") ;;\n");
    }
    absl::StrAppend(&cases, "    '", words, "')\n", ZshArray("commands", next), ZshArray("flags", flags),
                    "      valued=(", absl::StrJoin(with_value, " "), ") tables=", TakesTable(command) ? "1" : "''",
                    " ;;\n");
  });
  const std::string script = absl::StrCat(
      "#compdef @PROGRAM@\n"
      "# zsh completion of @PROGRAM@; made by @PROGRAM@ completion zsh\n"
      "_@PROGRAM@_tables() {\n"
      "  [[ -n $arguments[1] ]] || return\n"
      "  ${words[1]} tables ${arguments[1]/#\\~/$HOME} --json 2>/dev/null </dev/null |\n"
      "    sed -n 's/^{\"table\":\"\\([^\"\\\\ ]*\\)\".*/\\1/p'\n"
      "}\n"
      "_@PROGRAM@() {\n"
      "  local command='' next i tables=''\n"
      "  local -a commands flags valued choices arguments\n"
      "  for (( i = 2; i < CURRENT; ++i )); do\n"
      "    next=${command:+$command }${words[i]}\n"
      "    case $next in\n"
      "      ",
      absl::StrJoin(commands, "|"),
      ") command=$next arguments=() ;;\n"
      "      *) [[ ${words[i]} == -* || ${words[i-1]} == --* ]] || arguments+=(${words[i]}) ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "  case \"$command ${words[CURRENT-1]}\" in\n",
      values,
      "  esac\n"
      "  if [[ -n $tables && ${words[CURRENT]} != -* && $#arguments == 1 ]] && (( ! $#choices )); then\n"
      "    choices=($(_@PROGRAM@_tables))\n"
      "  fi\n"
      "  if (( $#choices )); then\n"
      "    _describe value choices\n"
      "  elif (( ${valued[(Ie)${words[CURRENT-1]}]} )); then\n"
      "    _files\n"
      "  elif [[ ${words[CURRENT]} == -* ]]; then\n"
      "    _describe -o flag flags\n"
      "  elif (( ${#commands} )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}\n"
      "# As a file of $fpath this is the body of _@PROGRAM@; sourced, it only registers the function.\n"
      "if [[ $funcstack[1] == _@PROGRAM@ ]]; then _@PROGRAM@ \"$@\"; else compdef _@PROGRAM@ @PROGRAM@; fi\n");
  return ForProgram(app, script);
}

namespace {

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n0: done. 1: the work failed, or its result is wrong. 2: the command line is\n"
    "wrong, and nothing was done. 3: there is no such row. 130 or 143: a signal stopped it.\n";

// `command`: the program's name and the words after it, such as "gannet tpcc run".
std::string PageName(const std::string& command) {
  return absl::StrReplaceAll(command, {{" ", "-"}});
}

std::string PageBegin(const std::string& command, const std::string& version, const std::string& what) {
  const std::string program = command.substr(0, command.find(' '));
  return absl::StrCat(".TH ", ForMan(absl::AsciiStrToUpper(PageName(command))), " 1 \"\" \"", ForMan(program), " ",
                      ForMan(version), "\" \"User Commands\"\n.SH NAME\n", ForMan(PageName(command)), " \\- ", what,
                      "\n");
}

std::string PageOf(const CLI::App& command, const std::string& called, const std::string& version) {
  std::string text = PageBegin(called, version, ForMan(command.get_description()));
  absl::StrAppend(&text, ".SH SYNOPSIS\n.B ", ForMan(called), "\n");
  if (!CommandsOf(command).empty()) absl::StrAppend(&text, ".I COMMAND\n");
  std::string arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty()) continue;
    const std::string name = option->get_name(/*positional=*/true);
    absl::StrAppend(&arguments, arguments.empty() ? "" : " ", option->get_required() ? name : "[" + name + "]");
  }
  absl::StrAppend(&text, ".I ", ForMan(arguments), arguments.empty() ? "" : " ", "[FLAGS]\n");
  if (!command.get_footer().empty()) absl::StrAppend(&text, ".SH DESCRIPTION\n", ForMan(command.get_footer()), "\n");
  absl::StrAppend(&text, ".SH OPTIONS\n");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty() || option->get_name() == "--help") continue;
    const bool positional = option->get_lnames().empty();
    absl::StrAppend(&text, ".TP\n.B ", ForMan(positional ? option->get_name(true) : WithValue(*option)), "\n",
                    ForMan(option->get_description()), "\n");
  }
  return absl::StrCat(text, kExitStatus, ".SH SEE ALSO\n.BR ", ForMan(called.substr(0, called.find(' '))), " (1)\n");
}

}  // namespace

std::vector<ManPage> ManPages(const CLI::App& app, const std::string& version) {
  const std::string program = app.get_name();
  std::vector<ManPage> pages = {{.name = program, .text = ""}};
  std::string list;
  Visit(app, "", [&](const CLI::App& command, const std::string& words) {
    if (words.empty()) return;
    const std::string name = program + " " + words;
    pages.push_back({.name = PageName(name), .text = PageOf(command, name, version)});
    absl::StrAppend(&list, ".TP\n.BR ", ForMan(PageName(name)), " (1)\n", ForMan(command.get_description()), "\n");
  });
  pages.front().text =
      absl::StrCat(PageBegin(program, version, ForMan(app.get_description())), ".SH SYNOPSIS\n.B ", ForMan(program),
                   "\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH COMMANDS\nEach has a page of its own:\n.B man ",
                   ForMan(program), " help\n", list, kExitStatus);
  return pages;
}

}  // namespace gannet::cli
