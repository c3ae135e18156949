// The report of `gannet reproduce` as text, JSON and HTML.
#pragma once

#include <string>

#include "lab/experiments/report.h"

namespace gannet::cli {

// Stands in the place of a number that no run measured.
inline constexpr char kNotMeasured[] = "not measured";

std::string ToText(const experiments::Report& report);
// Keys are stable.
std::string ToJson(const experiments::Report& report);
// One page that needs no other file.
std::string ToHtml(const experiments::Report& report);

}  // namespace gannet::cli
