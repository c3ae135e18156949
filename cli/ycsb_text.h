// The report of `gannet ycsb` as text.
#pragma once

#include <string>

#include "bench/ycsb/result.h"

namespace gannet::cli {

std::string ToText(const bench::YcsbResult& result);

}  // namespace gannet::cli
