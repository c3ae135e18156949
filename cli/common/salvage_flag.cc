#include "cli/common/salvage_flag.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace gannet::cli {

void AddSalvage(CLI::App& command, bool* salvage) {
  command.add_flag("--salvage", *salvage,
                   "Continue after damage, and list what is left out. Exit code 1 if anything is");
}

bool TellLeftOut(const std::vector<std::string>& left_out) {
  for (const std::string& damage : left_out) absl::FPrintF(stderr, "DAMAGED, left out: %s\n", damage);
  return !left_out.empty();
}

}  // namespace gannet::cli
