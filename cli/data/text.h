// The reports of the data commands as text.
#pragma once

#include <string>
#include <vector>

#include "cli/data/recover.h"
#include "nlohmann/json_fwd.hpp"
#include "txn/durable/verify.h"

namespace gannet::cli {

std::string ToText(const std::vector<NodeRecovery>& nodes);
std::string ToText(const txn::Verification& verification);

// The JSON of the same reports, for --json.
nlohmann::ordered_json ToJson(const std::vector<NodeRecovery>& nodes);
nlohmann::ordered_json ToJson(const txn::Verification& verification);

}  // namespace gannet::cli
