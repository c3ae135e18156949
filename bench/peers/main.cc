// gannet_peers: Gannet next to LMDB, RocksDB and SQLite, by one program, with the same rows and the same operations.
//
// Exit codes: 0; 1 if an engine failed, or if two gave different answers; 2 for a wrong flag.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/calibration.h"
#include "bench/peers/report.h"
#include "bench/peers/run.h"

namespace gannet::bench::peers {
namespace {

struct Flags {
  uint64_t words = 275'000;
  uint64_t rows = 135'000;
  double seconds = 0.3;
  std::vector<std::string> engines;
  std::string clock = "wall";
  std::string json;
  std::string markdown;
  RunOptions run;
};

// The command of a checkout that does the same.
std::string CommandOf(int argc, char** argv) {
  std::string command = "./dev peers";
  for (int i = 1; i < argc; ++i) absl::StrAppend(&command, " ", argv[i]);
  return command;
}

bool WriteFile(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::cout << text;
    return static_cast<bool>(std::cout.flush());
  }
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) std::cerr << "gannet_peers: cannot write '" << file << "'\n";
  return static_cast<bool>(out);
}

// The engines of these names, or of which one is a part; all for none.
std::vector<EngineKind> Chosen(const std::vector<std::string>& names) {
  std::vector<EngineKind> chosen;
  for (EngineKind& engine : AllEngines()) {
    const auto named = [&](const std::string& name) {
      return absl::StrContains(absl::AsciiStrToLower(engine.name), absl::AsciiStrToLower(name));
    };
    if (names.empty() || std::any_of(names.begin(), names.end(), named)) chosen.push_back(engine);
  }
  return chosen;
}

int Run(Flags flags, const std::string& command) {
  const std::vector<EngineKind> engines = Chosen(flags.engines);
  if (engines.empty()) {
    std::cerr << "gannet_peers: there is no such engine; give gannet, LMDB, RocksDB or SQLite\n";
    return 2;
  }
  flags.run.measure.at_least = absl::Seconds(flags.seconds);
  flags.run.measure.clock = flags.clock == "cpu" ? ClockKind::kCpu : ClockKind::kWall;
  const Data data(flags.words, flags.rows, flags.run.measure.seed);
  Context context = DescribeMachine();
  context.command = command;
  context.runs = flags.run.runs;
  context.clock = flags.run.measure.clock;
  const auto calibrate = [](Calibration* calibration) -> Status {
    const StatusOr<Calibration> measured = Calibrate();
    if (measured.ok()) *calibration = *measured;
    return measured.status();
  };
  const auto fail = [](const Status& status) {
    std::cerr << "gannet_peers: " << status.message() << '\n';
    return absl::IsInvalidArgument(status) ? 2 : 1;
  };
  if (const Status status = calibrate(&context.before); !status.ok()) return fail(status);
  const auto results = RunAll(engines, data, flags.run, [&](int run, const EngineKind& engine) {
    std::cerr << "run " << run + 1 << " of " << flags.run.runs << ": " << engine.name << '\n';
  });
  if (!results.ok()) return fail(results.status());
  if (const Status status = calibrate(&context.after); !status.ok()) return fail(status);

  bool written = true;
  if (!flags.json.empty()) {
    written = WriteFile(flags.json, ToJson(engines, data, *results, context).dump(2) + "\n") && written;
  }
  if (!flags.markdown.empty()) {
    written = WriteFile(flags.markdown, ToMarkdown(engines, data, *results, context)) && written;
  }
  if (flags.json != "-" && flags.markdown != "-") std::cout << ToTable(engines, data, *results, context);
  return written ? 0 : 1;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Measures Gannet next to LMDB, RocksDB and SQLite: the same rows, the same operations, one after the other.",
      "gannet_peers");
  app.add_option("--words", flags.words, "words in the table of words")
      ->check(CLI::Range(10, 100'000'000))
      ->capture_default_str();
  app.add_option("--rows", flags.rows, "rows in the table of rows")
      ->check(CLI::Range(10, 100'000'000))
      ->capture_default_str();
  app.add_option("--runs", flags.run.runs, "runs, of which each engine has its median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "each operation takes at least this long")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--engine", flags.engines, "only engines whose name contains this; may be given several times");
  app.add_option("--only", flags.run.only,
                 "only operations whose id contains this: words.scan, update.background, ...");
  app.add_option("--clock", flags.clock, "wall, or cpu: processor time, for a machine that is not idle")
      ->check(CLI::IsMember({"wall", "cpu"}))
      ->capture_default_str();
  app.add_option("--dir", flags.run.directory, "a directory on the disk to measure")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--seed", flags.run.measure.seed, "of the rows and the keys")->capture_default_str();
  app.add_option("--json", flags.json,
                 "write a report for programs to this file; -: standard output, and nothing else");
  app.add_option("--markdown", flags.markdown, "the same as Markdown: docs/peers.md");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Run(flags, CommandOf(argc, argv));
}

}  // namespace
}  // namespace gannet::bench::peers

int main(int argc, char** argv) {
  return gannet::bench::peers::Main(argc, argv);
}
