// A command line as words, and what a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gannet::cli {

// Splits at blanks. A word, or a part of one, in single or double quotes keeps its blanks; the quotes go, and a
// backslash before the same quote keeps it in the word. All other backslashes stay: they are escapes of keys and
// payloads (row_text.h). InvalidArgument: a quote is not closed.
StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

// Number of characters to insert, remove or replace, or of neighbours to swap, to make one of the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The choice that is so near to `word` that it was probably meant; empty if none is. The first of the nearest.
std::string Nearest(std::string_view word, const std::vector<std::string>& choices);

}  // namespace gannet::cli
