// How commands end.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::cli {

// Prints "gannet NAME: <message>". Returns the exit code of this error, or the given one.
int Fail(std::string_view name, const Status& status);
int Fail(std::string_view name, const Status& status, int exit_code);

// `status`; if Ctrl-C stopped the command, its message also says what is left.
Status WithRest(const Status& status, const std::string& rest);

}  // namespace gannet::cli
