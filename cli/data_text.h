// The reports of the data commands as text.
#pragma once

#include <string>
#include <vector>

#include "cli/data_recover.h"
#include "txn/durable/verify.h"

namespace gannet::cli {

std::string ToText(const std::vector<NodeRecovery>& nodes);
std::string ToText(const txn::Verification& verification);

}  // namespace gannet::cli
