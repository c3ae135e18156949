// What the commands about data directories share: how they end.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::cli {

// Prints "gannet NAME: <message>" and returns the exit code of this error.
int Fail(std::string_view name, const Status& status);

// `status`; if Ctrl-C stopped the command, its message also says what is left.
Status WithRest(const Status& status, const std::string& rest);

}  // namespace gannet::cli
