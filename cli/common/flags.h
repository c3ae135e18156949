// Command line options whose values are parsed by cli/common/parse.h.
#pragma once

#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "cli/common/parse.h"

namespace gannet::cli {

// An option whose text `parse` converts into *target. If it is given several times, the last one counts.
template <class Parse, class T>
CLI::Option* Add(CLI::App& command, const std::string& flag, T* target, Parse parse, const std::string& type,
                 const std::string& description) {
  const auto set = [flag, target, parse](const std::string& text) {
    auto value = parse(text);
    if (!value.ok()) throw CLI::ValidationError(flag + " " + text, std::string(value.status().message()));
    *target = T(*std::move(value));
  };
  CLI::Option* option = command.add_option_function<std::string>(flag, set, description);
  return option->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <class T>
CLI::Option* AddInteger(CLI::App& command, const std::string& flag, T* target, int64_t low, int64_t high,
                        const std::string& description) {
  return Add(
      command, flag, target, [low, high](const std::string& text) { return ParseInteger(text, low, high); }, "N",
      description);
}

template <class T>
CLI::Option* AddDuration(CLI::App& command, const std::string& flag, T* target, absl::Duration low,
                         const std::string& description) {
  return Add(
      command, flag, target, [low](const std::string& text) { return ParseDuration(text, low); }, "TIME", description);
}

// A path, a name or an address. An empty value is refused: a script passes it if its variable is not set, and it does
// not mean that the flag was left out. `flag` without dashes is a positional argument.
inline CLI::Option* AddPath(CLI::App& command, const std::string& flag, std::string* target, const std::string& type,
                            const std::string& description) {
  return Add(command, flag, target, ParseText, type, description);
}

}  // namespace gannet::cli
