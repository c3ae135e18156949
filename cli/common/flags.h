// Command line flags. A flag of a command with a report is declared once, in a `Flags`: its name, its value with
// bounds, the member of the options that it sets, its help, and the key of its value in the report. CLI11's options,
// the configuration of the report, and the command lines of other processes are made of that. A command without a
// report adds its flags to CLI11 directly, by the functions at the end.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/common/parse.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {

// How the value of a flag is written. `parse` returns a StatusOr, `format` returns a text that `parse` understands.
template <class Parse, class Format>
struct Form {
  const char* word;  // This word stands for the value in the help.
  Parse parse;
  Format format;
};
template <class Parse, class Format>
Form(const char*, Parse, Format) -> Form<Parse, Format>;

namespace form {

inline constexpr auto kDigits = [](auto value) { return absl::StrCat(value); };
inline constexpr auto kItself = [](const auto& value) { return std::string(value); };

inline const Form kBytes{"SIZE", ParseSize, kDigits};
inline const Form kBytesOrZero{"SIZE", ParseSizeOrZero, kDigits};
inline const Form kDurability{"MODE", ParseDurability, FormatDurability};
inline const Form kMedium{"MEDIUM", ParseMedium, FormatMedium};
inline const Form kRights{"WHO", ParseIndexRights, [](index::IndexRights each) { return std::string(NameOf(each)); }};
inline constexpr auto kIndexName = [](index::IndexKind kind) { return index::EntryOf(kind).name; };
inline const Form kOrderedIndex{"NAME", ParseOrderedIndex, kIndexName};

// A whole number in [low, high].
inline auto Integer(int64_t low, int64_t high) {
  return Form{"N", [=](const std::string& text) { return ParseInteger(text, low, high); }, kDigits};
}
// A whole number in [low, high], such as 500K.
inline auto Number(uint64_t low, uint64_t high) {
  return Form{"N", [=](const std::string& text) { return ParseCount(text, low, high); }, kDigits};
}
inline auto Time(absl::Duration low, absl::Duration high = absl::InfiniteDuration()) {
  return Form{"TIME", [=](const std::string& text) { return ParseDuration(text, low, high); }, absl::FormatDuration};
}
// A path, a name or an address: any text but an empty one, which a script passes if its variable is not set.
inline auto Path(const char* word) {
  return Form{word, ParseText, kItself};
}
// One of `names`, which lie by the values of Enum.
template <class Enum>
auto OneOf(const char* word, std::span<const std::string_view> names) {
  const auto parse = [names](const std::string& text) -> StatusOr<Enum> {
    const StatusOr<size_t> at = ParseChoice(text, names);
    if (!at.ok()) return at.status();
    return static_cast<Enum>(*at);
  };
  return Form{word, parse, [names](Enum value) { return std::string(names[static_cast<size_t>(value)]); }};
}

}  // namespace form

// Bits that a command gives to its flags. FirstGiven, Values and Arguments choose flags by them.
using Marks = unsigned;

struct Flag {
  using Json = nlohmann::ordered_json;

  std::string name;
  std::string key = {};   // The value has this key in a report. Empty: the report does not depend on it.
  std::string word = {};  // This word stands for the value in the help. Empty: the flag is a switch without a value.
  std::string help = {};
  std::function<Status(const std::string& text)> set = {};  // Takes an empty text if the flag is a switch.
  std::function<std::string()> text = {};                   // Returns the value. Empty: the flag is left out.
  std::function<Json()> json = {};                          // Returns it for a report. Null: the key is left out.
  std::string group = {};
  std::string excluded = {};  // The flag of this name must not be given, too.
  Marks marks = 0;

  Flag& Excludes(std::string other) {
    excluded = std::move(other);
    return *this;
  }
  // The report has this value in the place of the member's.
  Flag& Reports(std::function<Json()> value) {
    json = std::move(value);
    return *this;
  }
};

template <class Parse, class T>
std::function<Status(const std::string&)> SetterOf(T* target, Parse parse) {
  return [target, parse](const std::string& text) -> Status {
    auto value = parse(text);
    if (!value.ok()) return value.status();
    *target = T(*std::move(value));
    return absl::OkStatus();
  };
}

// Returns null if an optional has no value.
template <class T>
const T* ValueOf(const T& value) {
  return &value;
}
template <class T>
const T* ValueOf(const std::optional<T>& value) {
  return value.has_value() ? &*value : nullptr;
}

// Returns seconds, or microseconds if the key ends in _us; null if `value` is infinite.
nlohmann::ordered_json JsonOf(absl::Duration value, const std::string& key);

// Makes an option of CLI11. A wrong value is a CLI::ValidationError "--flag value: what to do". If the flag is given
// several times, the last one counts.
CLI::Option* AddTo(CLI::App* command, const Flag& flag);

// The flags of one command, bound to its options, which must outlive them.
class Flags {
 public:
  // Gives this heading of the help to the flags that follow.
  void Group(std::string name) { group_ = std::move(name); }

  Flag& Add(Flag flag);

  // Adds a flag that sets *target, which may be an optional.
  template <class T, class Parse, class Format>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): they are moved
  Flag& Add(std::string name, std::string key, T* target, Form<Parse, Format> form, std::string help, Marks marks = 0) {
    Flag flag = {.name = std::move(name), .key = std::move(key), .word = form.word, .help = std::move(help)};
    flag.marks = marks;
    flag.set = SetterOf(target, form.parse);
    flag.text = [target, form] {
      const auto* value = ValueOf(*target);
      return value == nullptr ? std::string() : form.format(*value);
    };
    flag.json = [target, form, key = flag.key]() -> Flag::Json {
      const auto* value = ValueOf(*target);
      if (value == nullptr) return {};
      using Value = std::remove_cvref_t<decltype(*value)>;
      if constexpr (std::is_same_v<Value, absl::Duration>) return JsonOf(*value, key);
      // Numbers and arrays are themselves in a report; names are written as on the command line.
      if constexpr (std::is_arithmetic_v<Value> || requires { value->front(); }) return *value;
      return form.format(*value);
    };
    return Add(std::move(flag));
  }

  // Adds a flag without a value, which sets *target to `value`.
  Flag& AddSwitch(std::string name, std::string key, bool* target, std::string help, Marks marks = 0,
                  bool value = true);

  void AddTo(CLI::App* command) const;

  // Returns the values of the flags that have all marks of `with` and none of `without`, by their keys.
  nlohmann::ordered_json Values(Marks with = 0, Marks without = 0) const;

  // Returns the words that set the options to these values: "--seed", "7", "--create".
  std::vector<std::string> Arguments(Marks with = 0) const;

  // Returns the first flag with all these marks that the parsed command line has; empty if it has none.
  std::string FirstGiven(const CLI::App& command, Marks marks) const;

  const std::deque<Flag>& all() const { return all_; }

 private:
  std::string group_;
  std::deque<Flag> all_;
};

// Adds an option whose text `parse` converts into *target.
template <class Parse, class T>
CLI::Option* Add(CLI::App& command, const std::string& flag, T* target, Parse parse, const std::string& type,
                 const std::string& description) {
  return AddTo(&command, {.name = flag, .word = type, .help = description, .set = SetterOf(target, parse)});
}

template <class T>
CLI::Option* AddInteger(CLI::App& command, const std::string& flag, T* target, int64_t low, int64_t high,
                        const std::string& description) {
  return Add(command, flag, target, form::Integer(low, high).parse, "N", description);
}

// A path, a name or an address. An empty value is refused: a script passes it if its variable is not set, and it does
// not mean that the flag was left out. `flag` without dashes is a positional argument.
inline CLI::Option* AddPath(CLI::App& command, const std::string& flag, std::string* target, const std::string& type,
                            const std::string& description) {
  return Add(command, flag, target, ParseText, type, description);
}

}  // namespace gannet::cli
