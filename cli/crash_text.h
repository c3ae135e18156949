// The report of `gannet crashtest` as text.
#pragma once

#include <string>

#include "scenario/crash/crash_test.h"
#include "scenario/crash/options.h"

namespace gannet::cli {

std::string ToText(const scenario::crash::CrashOptions& options, const scenario::crash::CrashReport& report, int width);

}  // namespace gannet::cli
