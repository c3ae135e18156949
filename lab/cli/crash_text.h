// The report of `gannet crashtest` as text, and as JSON.
#pragma once

#include <string>

#include "base/status.h"
#include "lab/scenario/crash/crash_test.h"
#include "lab/scenario/crash/options.h"
#include "nlohmann/json_fwd.hpp"

namespace gannet::cli {

std::string ToText(const scenario::crash::CrashOptions& options, const scenario::crash::CrashReport& report, int width);
// `done`: what CrashTest::Run returned.
nlohmann::ordered_json ToJson(const scenario::crash::CrashOptions& options, const scenario::crash::CrashReport& report,
                              const Status& done);

}  // namespace gannet::cli
