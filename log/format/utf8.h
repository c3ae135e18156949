// Check of the strings in the manifest, which is JSON: names of tables, the application's note.
#pragma once

#include <string_view>

namespace gannet::log {

// True for well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace gannet::log
