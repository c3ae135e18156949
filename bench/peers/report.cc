#include "bench/peers/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/quantity.h"

namespace gannet::bench::peers {
namespace {

// A line of the report.
struct Line {
  std::string id;
  std::string what;
  int threads = 0;  // 0: none
  std::string unit;
  bool in_thousands = false;
};

std::vector<Line> Lines(const Results& results) {
  std::vector<Line> lines;
  for (const Operation& operation : results.operations) {
    const bool durable_load = operation.action == Action::kLoad && operation.durability != Durability::kMemory;
    if (durable_load) continue;  // it is measured only for the files
    lines.push_back({.id = operation.id,
                     .what = Describe(operation),
                     .threads = operation.threads,
                     .unit = absl::StrCat(Unit(operation), "/s"),
                     .in_thousands = operation.durability != Durability::kSync});
    if (lines.back().in_thousands) lines.back().unit = absl::StrCat("k ", lines.back().unit);
  }
  for (const char* table : {"words", "rows"}) {
    lines.push_back({.id = absl::StrCat(table, kMemorySuffix),
                     .what = absl::StrCat("resident memory for the ", table),
                     .unit = absl::StrCat("bytes/", table == std::string("words") ? "word" : "row")});
    lines.push_back({.id = absl::StrCat(table, kCountedSuffix),
                     .what = absl::StrCat("the same as the engine counts it"),
                     .unit = lines.back().unit});
  }
  lines.push_back({.id = kFilesId, .what = "files of a durable database, words and rows", .unit = "bytes/row"});
  std::erase_if(lines, [&](const Line& line) { return !results.figures.contains(line.id); });
  return lines;
}

std::string Number(double value, bool in_thousands) {
  if (in_thousands) value /= 1000;
  if (value >= 100) return WithCommas(static_cast<uint64_t>(value + 0.5));
  return absl::StrFormat(value >= 10 ? "%.1f" : "%.2f", value);
}

std::string Cell(const Line& line, const Series* series, bool with_range) {
  if (series == nullptr) return "-";
  std::string text = Number(series->Median(), line.in_thousands);
  if (with_range && series->values.size() > 1) {
    absl::StrAppend(&text, " (", Number(series->Least(), line.in_thousands), " to ",
                    Number(series->Greatest(), line.in_thousands), ")");
  }
  return text;
}

std::string WhatAndThreads(const Line& line) {
  return line.threads == 0 ? line.what
                           : absl::StrCat(line.what, ", ", Count(static_cast<uint64_t>(line.threads), "thread"));
}

std::string FirstLineWith(const char* file, const std::string& begin) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, begin.size(), begin) == 0) return line.substr(begin.size());
  }
  return {};
}

std::string DataText(const Data& data) {
  return absl::StrFormat(
      "%s (%.1f bytes each on average) with values of %d bytes, and %s with payloads of %d to %d bytes (%.1f bytes "
      "with "
      "the integer key on average)",
      Count(data.size(Table::kWords), "word"),
      static_cast<double>(data.bytes(Table::kWords)) / static_cast<double>(data.size(Table::kWords)) -
          kWordPayloadBytes,
      kWordPayloadBytes, Count(data.size(Table::kRows), "row"), kMinRowPayloadBytes, kMaxRowPayloadBytes,
      static_cast<double>(data.bytes(Table::kRows)) / static_cast<double>(data.size(Table::kRows)));
}

std::string HowText(const Context& context) {
  return absl::StrFormat(
      "%s, %s; load average before the runs %.1f. %s; medians%s%s. A dependent read of 64 bytes of memory took %.0f ns "
      "before and %.0f ns after.",
      context.machine, context.date, context.load, Count(static_cast<uint64_t>(context.runs), "run"),
      context.runs > 1 ? " (and the lowest and the highest)" : "",
      context.clock == ClockKind::kCpu ? ". Seconds are those of the processor time of the threads that used the "
                                         "engine, because the machine was not "
                                         "idle; only those of durable commits are of the wall clock"
                                       : "",
      context.before.dependent_read_ns, context.after.dependent_read_ns);
}

std::string GoalText(const Goal& goal) {
  return absl::StrFormat("%s: %s %s, is %s: %s", goal.what, goal.at_most ? "at most" : "at least",
                         Number(goal.wanted, false), Number(goal.is, false), goal.met() ? "met" : "not met");
}

std::optional<size_t> PlaceOf(const std::vector<EngineKind>& engines, const EngineKind& wanted) {
  for (size_t i = 0; i < engines.size(); ++i) {
    if (engines[i].name == wanted.name) return i;
  }
  return std::nullopt;
}

}  // namespace

Context DescribeMachine() {
  constexpr double kKibPerGib = 1048576;
  std::string cpu = FirstLineWith("/proc/cpuinfo", "model name");
  cpu = cpu.substr(std::min(cpu.size(), cpu.find(": ") == std::string::npos ? 0 : cpu.find(": ") + 2));
  std::string system = FirstLineWith("/etc/os-release", "PRETTY_NAME=");
  std::erase(system, '"');
  double memory_kib = 0;
  if (const std::string text = FirstLineWith("/proc/meminfo", "MemTotal:"); !text.empty()) memory_kib = std::stod(text);
  Context context;
  if (getloadavg(&context.load, 1) != 1) context.load = 0;
  context.date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  context.machine = absl::StrFormat(
      "%s (%s), %.0f GiB, %s", Count(static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)), "CPU"),
      cpu.empty() ? "unknown" : cpu, memory_kib / kKibPerGib, system.empty() ? "unknown system" : system);
  return context;
}

std::vector<Goal> Goals(const std::vector<EngineKind>& engines, const Results& results) {
  std::vector<Goal> goals;
  const auto gannet = PlaceOf(engines, GannetOrdered());
  const auto lmdb = PlaceOf(engines, Lmdb());
  if (!gannet.has_value()) return goals;
  const auto ratio = [&](const Operation& operation, double wanted) {
    const Series* const ours = results.Find(operation.id, *gannet);
    const Series* const theirs = lmdb.has_value() ? results.Find(operation.id, *lmdb) : nullptr;
    if (ours == nullptr || theirs == nullptr) return;
    goals.push_back(
        {.what = absl::StrCat(Describe(operation), ", ", Count(static_cast<uint64_t>(operation.threads), "thread"),
                              ", ordered, times LMDB"),
         .wanted = wanted,
         .is = ours->Median() / theirs->Median()});
  };
  for (const Operation& operation : results.operations) {
    if (operation.durability == Durability::kSync) continue;
    switch (operation.action) {
      case Action::kRead:
      case Action::kReadMany:
        ratio(operation, 1.5);
        break;
      case Action::kScanAll:
      case Action::kScanSome:
        ratio(operation, 1);
        break;
      case Action::kUpdate:
        ratio(operation, 3);
        break;
      default:
        break;
    }
  }
  if (const Series* const memory = results.Find(absl::StrCat("words", kMemorySuffix), *gannet); memory != nullptr) {
    goals.push_back(
        {.what = "bytes of memory per word, ordered", .wanted = 100, .is = memory->Median(), .at_most = true});
  }
  return goals;
}

std::string ToTable(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                    const Context& context) {
  std::vector<std::vector<std::string>> cells = {{"", "unit"}};
  for (const EngineKind& engine : engines) cells[0].push_back(engine.name);
  for (const Line& line : Lines(results)) {
    std::vector<std::string> row = {WhatAndThreads(line), line.unit};
    for (size_t i = 0; i < engines.size(); ++i) row.push_back(Cell(line, results.Find(line.id, i), true));
    cells.push_back(std::move(row));
  }
  std::vector<size_t> widths(cells[0].size());
  for (const auto& row : cells) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = absl::StrCat(DataText(data), "\n", HowText(context), "\n\n");
  for (const auto& row : cells) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ", i < 2 ? row[i] + blanks : blanks + row[i]);
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "\n");
  for (const EngineKind& engine : engines) {
    absl::StrAppend(&text, engine.name, " ", engine.version, ": ", absl::StrJoin(engine.settings, "; "), "\n");
  }
  absl::StrAppend(&text, "\n");
  for (const Goal& goal : Goals(engines, results)) absl::StrAppend(&text, GoalText(goal), "\n");
  return text;
}

std::string ToMarkdown(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                       const Context& context) {
  std::string text = absl::StrCat(
      "# Gannet and other engines\n\n"
      "After reading this page you know how fast Gannet is next to engines of the same kind on one machine, and how\n"
      "much memory it takes. The page is the output of this command:\n\n    ",
      context.command, "\n\n", DataText(data), ". ", HowText(context), "\n\n",
      "Every engine did the same operations on the same rows in the same order, each in a process of its own, and "
      "gave\n"
      "the same answers: checksums of all that was read were compared. Each read, scan and update is a transaction.\n"
      "\"Memory\" is by how much the resident memory of the process grew, file mappings included.\n\n");
  absl::StrAppend(&text, "| | unit |");
  for (const EngineKind& engine : engines) absl::StrAppend(&text, " ", engine.name, " |");
  absl::StrAppend(&text, "\n|---|---|");
  for (size_t i = 0; i < engines.size(); ++i) absl::StrAppend(&text, "--:|");
  absl::StrAppend(&text, "\n");
  for (const Line& line : Lines(results)) {
    absl::StrAppend(&text, "| ", WhatAndThreads(line), " | ", line.unit, " |");
    for (size_t i = 0; i < engines.size(); ++i) {
      absl::StrAppend(&text, " ", Cell(line, results.Find(line.id, i), true), " |");
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "\n## Settings\n\n| engine | version | settings |\n|---|---|---|\n");
  for (const EngineKind& engine : engines) {
    absl::StrAppend(&text, "| ", engine.name, " | ", engine.version, " | ", absl::StrJoin(engine.settings, "; "),
                    " |\n");
  }
  if (const std::vector<Goal> goals = Goals(engines, results); !goals.empty()) {
    absl::StrAppend(&text, "\n## Goals\n\n| what | goal | is | met |\n|---|--:|--:|---|\n");
    for (const Goal& goal : goals) {
      absl::StrAppend(&text, "| ", goal.what, " | ", goal.at_most ? "at most " : "at least ",
                      Number(goal.wanted, false), " | ", Number(goal.is, false), " | ", goal.met() ? "yes" : "no",
                      " |\n");
    }
  }
  return text;
}

nlohmann::ordered_json ToJson(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                              const Context& context) {
  using Json = nlohmann::ordered_json;
  Json json = {{"program", "gannet_peers"},
               {"command", context.command},
               {"date", context.date},
               {"machine", context.machine},
               {"dependent_read_ns_before_run", context.before.dependent_read_ns},
               {"dependent_read_ns_after_run", context.after.dependent_read_ns},
               {"load_average", context.load},
               {"clock", context.clock == ClockKind::kCpu ? "cpu" : "wall"},
               {"runs", context.runs}};
  for (const Table table : kTables) {
    json["data"][table == Table::kWords ? "words" : "rows"] = {{"count", data.size(table)},
                                                               {"bytes", data.bytes(table)}};
  }
  json["engines"] = Json::array();
  for (const EngineKind& engine : engines) {
    json["engines"].push_back({{"name", engine.name}, {"version", engine.version}, {"settings", engine.settings}});
  }
  json["figures"] = Json::array();
  for (const Line& line : Lines(results)) {
    Json figure = {{"id", line.id},
                   {"what", line.what},
                   {"threads", line.threads},
                   // Values are not in thousands.
                   {"unit", line.in_thousands ? line.unit.substr(2) : line.unit}};
    for (size_t i = 0; i < engines.size(); ++i) {
      const Series* const series = results.Find(line.id, i);
      if (series == nullptr) continue;
      figure["engines"][engines[i].name] = {{"median", series->Median()},
                                            {"lowest", series->Least()},
                                            {"highest", series->Greatest()},
                                            {"runs", series->values},
                                            {"answers", absl::StrFormat("%016x", series->digests.front())}};
    }
    json["figures"].push_back(std::move(figure));
  }
  json["goals"] = Json::array();
  for (const Goal& goal : Goals(engines, results)) {
    json["goals"].push_back({{"what", goal.what},
                             {goal.at_most ? "at_most" : "at_least", goal.wanted},
                             {"is", goal.is},
                             {"met", goal.met()}});
  }
  return json;
}

}  // namespace gannet::bench::peers
