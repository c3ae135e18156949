// The program `gannet`.
#include "CLI/CLI.hpp"

int main(int argc, char** argv) {
  CLI::App app("Gannet: a transactional engine on memory that other machines can reach.", "gannet");
  app.set_version_flag("--version", "gannet " GANNET_VERSION);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
