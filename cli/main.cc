// The program `gannet`.
#include "cli/app.h"

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  return gannet::cli::RunGannet(argc, argv);
}
