// How a command prints JSON.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace gannet::cli {

// Text that is not UTF-8, such as a path or a row's, does not stop the report.
inline std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gannet::cli
