#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace gannet::cli {

// Abseil's functions take a type of its own.
inline absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace gannet::cli
