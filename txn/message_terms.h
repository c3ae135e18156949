// Errors name functions and options by their names in C++. A binding tells its users the names of its own language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gannet::txn {

enum class Language : uint8_t { kC, kPython };

// The message as a program in this language reads it. tests/python compares the terms that this knows with the messages
// in the sources.
std::string InLanguage(std::string_view message, Language language);

}  // namespace gannet::txn
