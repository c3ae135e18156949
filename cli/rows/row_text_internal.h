// The parts that row_text.cc and row_json.cc share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "txn/store/key_range.h"

namespace gannet::cli::internal {

inline constexpr std::string_view kTextForm = "text";
inline constexpr const char* kRectangleForm = "must be a rectangle and its id, (min_x,min_y,max_x,max_y,id)";

inline Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Returns the form that a column of `name` has; nullopt: it is another column.
std::optional<std::string_view> FormOf(std::string_view column, std::string_view name);
StatusOr<txn::KeyCopy> RectangleKeyOf(const std::array<double, 4>& ends, uint64_t id);

}  // namespace gannet::cli::internal
