// Any bytes as text: with escapes (form `text`), or as pairs of hexadecimal digits (form `hex`).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::cli {

// `quote` is escaped, too; 0: nothing more.
std::string EscapeText(std::string_view bytes, char quote = 0);
// InvalidArgument names the wrong escape.
StatusOr<std::string> UnescapeText(std::string_view text);
// Reads the escape behind a backslash from the begin of `rest`.
StatusOr<char> TakeEscape(std::string_view* rest);
StatusOr<std::string> ParseHex(std::string_view text);

}  // namespace gannet::cli
