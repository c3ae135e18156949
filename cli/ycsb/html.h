// The report of `gannet ycsb` as an HTML page.
#pragma once

#include <string>

#include "bench/ycsb/result.h"

namespace gannet::cli {

std::string ToHtml(const bench::YcsbResult& result);

}  // namespace gannet::cli
