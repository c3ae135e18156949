// The report of `gannet ycsb` as text.
#pragma once

#include <string>

#include "bench/ycsb/result.h"
#include "cli/report/bench_text.h"

namespace gannet::cli {

std::string ToText(const bench::YcsbResult& result, const TextStyle& style);

}  // namespace gannet::cli
