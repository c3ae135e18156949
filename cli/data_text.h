// The reports of the data commands as text.
#pragma once

#include <string>
#include <vector>

#include "cli/data_recover.h"
#include "cli/data_verify.h"

namespace gannet::cli {

std::string ToText(const std::vector<NodeRecovery>& nodes);
std::string ToText(const Verification& verification);

}  // namespace gannet::cli
