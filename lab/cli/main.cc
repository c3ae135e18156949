// The program `gannet-lab`.
#include <memory>

#include "cli/common/exit_codes.h"
#include "cli/run_app.h"
#include "lab/cli/app.h"

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  gannet::cli::PrepareProcess();
  int exit_code = gannet::cli::kExitOk;
  return gannet::cli::RunApp(argc, argv, gannet::cli::MakeLabApp(argc > 0 ? argv[0] : "", &exit_code), &exit_code);
}
