// The program `gannet-lab`.
#include "lab/cli/app.h"

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  return gannet::cli::RunLab(argc, argv);
}
