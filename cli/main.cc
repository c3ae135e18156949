// The program `gannet`.
#include <memory>

#include "cli/app.h"
#include "cli/common/exit_codes.h"
#include "cli/run_app.h"

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  gannet::cli::PrepareProcess();
  int exit_code = gannet::cli::kExitOk;
  return gannet::cli::RunApp(argc, argv, gannet::cli::MakeApp(&exit_code), &exit_code);
}
