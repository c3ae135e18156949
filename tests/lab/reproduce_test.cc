// `gannet reproduce` with tiny racks: the report's shape, not its numbers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"
#include "tests/index/kinds.h"

namespace gannet::cli {
namespace reproduce_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::vector<std::string> kTiny = {"reproduce", "xstore", "--keys", "2K", "--clients", "2x2", "--scale", "0.05"};

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Every element ends where it must. Left out are the first line, scripts, and elements that never end.
void ExpectWellFormed(const std::string& html) {
  std::string page = html.substr(html.find('\n'));
  for (size_t begin = 0; (begin = page.find("<script")) != std::string::npos;) {
    page.erase(begin, page.find("</script>", begin) + 9 - begin);
  }
  page = std::regex_replace(page, std::regex("<(meta|link) [^>]*>"), "");
  static const std::regex kTag("<(/?)([a-zA-Z0-9]+)((?:\\s+[-a-zA-Z0-9:]+=\"[^\"<]*\")*)\\s*(/?)>");
  std::vector<std::string> open;
  size_t brackets = 0;
  for (auto tag = std::sregex_iterator(page.begin(), page.end(), kTag); tag != std::sregex_iterator(); ++tag) {
    ++brackets;
    if (!(*tag)[4].str().empty()) continue;
    if ((*tag)[1].str().empty()) {
      open.push_back((*tag)[2]);
      continue;
    }
    ASSERT_FALSE(open.empty());
    ASSERT_EQ(open.back(), (*tag)[2]);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(brackets, static_cast<size_t>(std::ranges::count(page, '<'))) << "a < that no tag begins with";
}

TEST(ReproduceTest, ReportsEveryPointAsTextJsonAndPage) {
  const std::string json = ::testing::TempDir() + "/reproduce.json";
  const std::string html = ::testing::TempDir() + "/reproduce.html";
  std::vector<std::string> flags = kTiny;
  flags.insert(flags.end(), {"--json", json, "--html", html});
  const Outcome outcome = RunProgram(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // A slow machine shows progress.
  EXPECT_THAT(outcome.err, testing::AnyOf("", testing::HasSubstr(" runs, "), testing::HasSubstr("loading: ")));
  const Json report = Json::parse(std::ifstream(json));
  std::vector<std::string> ids;
  const std::string page = Contents(html);
  for (const Json& experiment : report.at("experiments")) {
    ids.push_back(experiment.at("id"));
    EXPECT_THAT(page, HasSubstr("id=\"" + ids.back() + "\""));
    const bool over_time = ids.back() == "burst" || ids.back() == "fig11" || ids.back() == "fig14c";
    EXPECT_GE(experiment.at("points").size(), over_time ? 2U : 4U);
    for (const Json& point : experiment.at("points")) {
      const double mops = point.at("million_operations_per_second");
      EXPECT_GT(mops, 0);
      const Json& configuration = point.at("report").at("configuration");
      EXPECT_EQ(configuration.value("keys", 0) == 2000, ids.back() != "fig16b");
      EXPECT_EQ(configuration.value("customers_per_district", 0) == 10, ids.back() == "fig16b");
      if (point.at("paper").is_null()) continue;
      const Json& paper = point.at("paper");
      EXPECT_DOUBLE_EQ(paper.at("ratio"), mops / paper.at("million_operations_per_second").get<double>());
      EXPECT_NE(paper.at("source"), "");
    }
  }
  EXPECT_THAT(ids, ::testing::ElementsAre("fig10", "fig11", "fig12", "fig13a", "fig13b", "fig14a", "fig14b", "burst",
                                          "fig14c", "fig15a", "fig15b", "fig15d", "fig16a", "fig16b", "table3"));
  EXPECT_GE(report.at("claims").size(), 5U);
  for (const char* text : {"Fig. 10", "bound by", "C uniform", "2,000 keys", "table 3"}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
    EXPECT_THAT(page, HasSubstr(text));
  }
  ExpectWellFormed(page);
  std::filesystem::remove(json);
  std::filesystem::remove(html);
}

TEST(ReproduceTest, OnlySomeAndTheSameEveryTimeWithAnyNumberOfJobs) {
  std::vector<std::string> flags = kTiny;
  flags.insert(flags.end(), {"--only", "fig15b", "--jobs", "1"});
  const Outcome one = RunProgram(flags);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("Fig. 15b"));
  EXPECT_THAT(one.out, HasSubstr("2 machines x 2 client threads"));
  EXPECT_THAT(one.out, ::testing::Not(HasSubstr("Fig. 10")));
  flags.back() = "3";
  EXPECT_EQ(RunProgram(flags).out, one.out);
}

// The points of an experiment in a JSON report, by series and label.
std::map<std::pair<std::string, std::string>, Json> PointsOf(const Json& report, const std::string& id) {
  std::map<std::pair<std::string, std::string>, Json> points;
  for (const Json& experiment : report.at("experiments")) {
    if (experiment.at("id") != id) continue;
    for (const Json& point : experiment.at("points")) points[{point.at("series"), point.at("label")}] = point;
  }
  return points;
}

const std::vector<std::string> kTinyCatfish = {"reproduce", "catfish", "--keys", "2K", "--clients", "2x6"};

TEST(ReproduceTest, SearchesAnRTreeByEachPath) {
  const std::string json = ::testing::TempDir() + "/reproduce_catfish.json";
  std::vector<std::string> flags = kTinyCatfish;
  flags.insert(flags.end(), {"--scale", "0.1", "--only", "fig13,fig26", "--json", json});
  const Outcome outcome = RunProgram(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  // Three scales of windows, with three numbers of clients and with all cores.
  EXPECT_EQ(PointsOf(report, "fig13").size(), 3U * 4 * 3);
  EXPECT_EQ(PointsOf(report, "fig26").size(), 3U * 3);
  std::vector<double> adaptive;  // shares of calls
  for (const char* id : {"fig13", "fig26"}) {
    for (const auto& [name, point] : PointsOf(report, id)) {
      SCOPED_TRACE(name.first + ", " + name.second);
      EXPECT_GT(point.at("million_operations_per_second"), 0);
      const Json& run = point.at("report");
      EXPECT_EQ(run.at("configuration").at("rectangles"), 2000);
      const bool inserts = id == std::string("fig13");
      EXPECT_EQ(run.at("inserts") > 0, inserts);
      EXPECT_EQ(run.at("tree").at("rectangles") > 2000, inserts);
      if (!inserts) {
        EXPECT_GT(run.at("rows_per_search"), 1);
      }
      const double calls = run.at("share_of_calls");
      if (name.first == "calls") {
        EXPECT_EQ(calls, 1);
      } else if (name.first == "one-sided") {
        EXPECT_EQ(calls, 0);
        EXPECT_EQ(run.at("verbs").at("call") > 0, inserts);
      } else {
        adaptive.push_back(calls);
      }
    }
  }
  EXPECT_GT(*std::ranges::max_element(adaptive), 0);
  EXPECT_LT(*std::ranges::min_element(adaptive), 1);
  // Each adaptive point has a claim that says what the points say.
  size_t claims = 0;
  for (const auto& [name, point] : PointsOf(report, "fig13")) {
    if (name.first != "adaptive") continue;
    const auto points = PointsOf(report, "fig13");
    const std::string& label = name.second;
    const auto mops = [&](const char* series) {
      return points.at({series, label}).at("million_operations_per_second").get<double>();
    };
    const std::string what = "fig13, " + name.second + ": adaptive / better fixed way";
    for (const Json& claim : report.at("claims")) {
      if (claim.at("what") != what) continue;
      ++claims;
      EXPECT_NEAR(claim.at("ours"), mops("adaptive") / std::max(mops("calls"), mops("one-sided")), 1e-3);
      EXPECT_EQ(claim.at("paper"), 1);
    }
  }
  EXPECT_EQ(claims, 3U * 4);
}

TEST(ReproduceTest, READsAnRTreeLevelByLevelAndWithALimit) {
  const std::string json = ::testing::TempDir() + "/reproduce_reads.json";
  std::vector<std::string> flags = kTinyCatfish;
  flags.insert(flags.end(), {"--scale", "0.1", "--only", "fig7b,fig8", "--json", json});
  const Outcome outcome = RunProgram(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  const auto reads = PointsOf(report, "fig7b");
  const auto per_search = [&](const char* series, const char* verb) {
    return reads.at({series, "1e-2"}).at("report").at("verbs").at(verb).get<double>();
  };
  EXPECT_NEAR(per_search("one READ at a time", "read") / per_search("all of a level at once", "read"), 1, 0.2);
  EXPECT_GT(per_search("one READ at a time", "round_trips"), per_search("all of a level at once", "round_trips") + 2);
  const auto limits = PointsOf(report, "fig8");
  const auto calls = [&](const char* series, const char* label) {
    return limits.at({series, label}).at("report").at("share_of_calls").get<double>();
  };
  EXPECT_EQ(calls("no limit", "1e-2, 6"), 0);
  EXPECT_GT(calls("three at a time", "1e-2, 6"), 0.1);
  EXPECT_EQ(calls("three at a time", "1e-2, 3"), 0);
}

// Threads that poll take the cores from those that have a call, for a quantum of 1 ms; threads that sleep do not.
TEST(ReproduceTest, AThreadForEachConnectionPollsOrSleeps) {
  const std::string json = ::testing::TempDir() + "/reproduce_events.json";
  // 12 machines of clients need 120 to 480 connections, on 28 cores.
  const Outcome outcome = RunProgram({"reproduce", "catfish", "--keys", "2K", "--clients", "12x32", "--scale", "0.1",
                                      "--only", "fig6", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  const auto points = PointsOf(report, "fig6");
  ASSERT_EQ(points.size(), 2U * 4 * 2);
  const auto run = [&](const char* series) { return points.at({series, "1e-5, 480 clients"}).at("report"); };
  for (const char* series : {"polling", "events"}) EXPECT_EQ(run(series).at("share_of_calls"), 1);
  EXPECT_GT(run("polling").at("latency_us").at("max"), 1000);
  EXPECT_LT(run("events").at("latency_us").at("max"), 1000);
  EXPECT_GT(run("polling").at("server").at("cpu"), 0.99);
  EXPECT_LT(points.at({"events", "1e-2, 480 clients"}).at("report").at("server").at("cpu"), 0.95);
}

// The rack is loaded once for all points, and their processes are forked after that.
TEST(ReproduceTest, ALoadedRTreeServesAllRunsAlike) {
  std::vector<std::string> flags = kTinyCatfish;
  flags.insert(flags.end(), {"--scale", "0.01", "--only", "fig24", "--jobs", "1"});
  const Outcome one = RunProgram(flags);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  flags.back() = "3";
  EXPECT_EQ(RunProgram(flags).out, one.out);
}

// The claims are what the timelines in the same report say.
TEST(ReproduceTest, ComparesTheAdaptivePathWithTheBetterFixedOneInAStepOfLoad) {
  const std::string json = ::testing::TempDir() + "/reproduce_paths.json";
  const Outcome outcome = RunProgram({"reproduce", "paths", "--only", "load-step", "--scale", "0.02", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  // The step of load is from the eighth to the fifth eighth of the run; what follows it is measured later.
  const double run = 160 * 0.02;
  const std::vector<std::pair<double, double>> parts = {{0, run / 8}, {run * 3 / 8, run * 5 / 8}, {run * 7 / 8, run}};
  std::vector<double> best(parts.size(), 0);
  std::vector<double> adaptive(parts.size(), 0);
  for (const Json& point : report.at("experiments").at(0).at("points")) {
    EXPECT_EQ(point.at("timeline").size(), 160U);
    for (size_t part = 0; part < parts.size(); ++part) {
      double sum = 0;
      int n = 0;
      for (const Json& moment : point.at("timeline")) {
        const double at = moment.at(0);
        const double calls = moment.at(2);
        EXPECT_GE(calls, 0);
        EXPECT_LE(calls, 1);
        if (at <= parts[part].first || at > parts[part].second) continue;
        sum += moment.at(1).get<double>();
        ++n;
      }
      ASSERT_GT(n, 0);
      if (point.at("series") == "adaptive") {
        adaptive[part] = sum / n;
      } else {
        best[part] = std::max(best[part], sum / n);
      }
    }
    const auto share = [&point](size_t i) { return point.at("timeline").at(i).at(2).get<double>(); };
    if (point.at("series") == "calls") {
      EXPECT_EQ(share(100), 1);
    }
    if (point.at("series") == "one-sided") {  // inserts are calls
      EXPECT_LT(share(100), 0.5);
    }
  }
  const Json& claims = report.at("claims");
  ASSERT_EQ(claims.size(), parts.size());
  for (size_t part = 0; part < parts.size(); ++part) {
    EXPECT_NEAR(claims.at(part).at("ours"), adaptive[part] / best[part], 0.05) << claims.at(part);
    EXPECT_EQ(claims.at(part).at("paper"), 1);
  }
  for (const char* text : {"better fixed path", "% of accesses by calls, adaptive", "in the step"}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
}

// A window of one client is too short for a transaction of each kind, or for any: not with every seed, but with some.
TEST(ReproduceTest, ReportsRunsInWhichNothingCommits) {
  const std::vector<std::vector<std::string>> runs = {{"xstore", "--keys", "1000", "--only", "fig16b"},
                                                      {"paths", "--only", "tpcc-cores"}};
  for (const std::vector<std::string>& run : runs) {
    bool empty = false;
    for (int seed = 2; seed < 10 && !empty; ++seed) {
      std::vector<std::string> flags = {"reproduce", "--scale",          "0.01",   "--clients", "1x1",
                                        "--seed",    absl::StrCat(seed), "--json", "-"};
      flags.insert(flags.begin() + 1, run.begin(), run.end());
      const Outcome outcome = RunProgram(flags);
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const Json report = Json::parse(outcome.out);
      for (const Json& point : report.at("experiments").at(0).at("points")) {
        empty = empty || point.at("latency_us").at("p50").is_null();
        if (point.at("million_operations_per_second") > 0) continue;
        EXPECT_TRUE(point.at("bound_by").is_null());
      }
    }
    EXPECT_TRUE(empty);
  }
}

TEST(ReproduceTest, RunsDexBesideItsRivals) {
  const std::string json = ::testing::TempDir() + "/reproduce_dex.json";
  const Outcome outcome =
      RunProgram({"reproduce", "dex", "--keys", "64K", "--clients", "2x2", "--scale", "0.1", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  ASSERT_EQ(report.at("experiments").size(), 7u);
  std::map<std::string, double> reads;                         // of a lookup in the read-only workload of figure 6
  std::map<std::string, double> updates;                       // million operations per second of half updates there
  std::map<std::string, std::map<std::string, double>> parts;  // the same, of figure 9, by cache and series
  for (const Json& experiment : report.at("experiments")) {
    for (const Json& point : experiment.at("points")) {
      EXPECT_GT(point.at("million_operations_per_second"), 0);
      const Json& configuration = point.at("report").at("configuration");
      const std::string series = point.at("series");
      EXPECT_EQ(configuration.at("partitioned"), series != "Sherman" && series != "ROLEX");
      EXPECT_EQ(configuration.at("colocated"), true);
      if (experiment.at("id") == "fig10") {
        EXPECT_EQ(point.at("report").at("move").at("slices"), 16);
        EXPECT_LT(point.at("report").at("move").at("longest_slice_seconds"), 0.01);
        EXPECT_GT(point.at("timeline").size(), 10u);
      }
      if (experiment.at("id") == "fig12") {
        const bool is_pushed = point.at("label") != "0";
        EXPECT_EQ(configuration.at("path"), is_pushed ? "adaptive" : "one-sided");
        EXPECT_EQ(point.at("report").at("all").at("verbs").at("call") > 0, is_pushed);
      }
      EXPECT_EQ(configuration.at("contended_lines"), experiment.at("id") == "fig9" || experiment.at("id") == "fig11");
      if (experiment.at("id") == "fig9") {
        EXPECT_EQ(configuration.at("one_cooling_latch"), series == "one latch, eager");
        EXPECT_EQ(configuration.at("leaf_admission_percent"), series == "cooling map, lazy admission" ? 10 : 100);
        parts[point.at("label")][series] = point.at("million_operations_per_second");
      }
      if (experiment.at("id") != "fig6") continue;
      const bool is_pushed = series == "DEX, push-down";
      EXPECT_EQ(configuration.at("updates"), is_pushed ? "adaptive" : "one-sided");
      EXPECT_EQ(configuration.at("kept_leaves"), series == "DEX" || is_pushed     ? "write-back"
                                                 : series == "DEX, write-through" ? "write-through"
                                                                                  : "none");
      if (point.at("label") == "read-only") reads[series] = point.at("reads_per_operation");
      if (point.at("label") == "write-intensive") updates[series] = point.at("million_operations_per_second");
    }
  }
  EXPECT_LT(reads.at("DEX"), reads.at("P-Sherman")) << "leaves are in the cache";
  EXPECT_GT(updates.at("DEX"), updates.at("DEX, write-through")) << "changes stay in the cache";
  EXPECT_GT(updates.at("DEX, write-through"), updates.at("DEX, claims only")) << "no lock is taken";
  for (const auto& [cache, of_parts] : parts) {
    EXPECT_GE(of_parts.at("cooling map, eager"), of_parts.at("one latch, eager")) << cache;
    EXPECT_GT(of_parts.at("cooling map, lazy admission"), of_parts.at("cooling map, eager")) << cache;
  }
  EXPECT_EQ(report.at("claims").size(), 30u);
}

TEST(ReproduceTest, RunsRolexBesideItsRivals) {
  const std::string json = ::testing::TempDir() + "/reproduce_rolex.json";
  const Outcome outcome =
      RunProgram({"reproduce", "rolex", "--keys", "6K", "--clients", "2x2", "--scale", "0.05", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  std::vector<std::string> ids;
  for (const Json& experiment : report.at("experiments")) {
    ids.push_back(experiment.at("id"));
    for (const Json& point : experiment.at("points")) {
      SCOPED_TRACE(ids.back() + ", " + point.at("series").get<std::string>() + ", " +
                   point.at("label").get<std::string>());
      EXPECT_GT(point.at("million_operations_per_second"), 0);
      const Json& configuration = point.at("report").at("configuration");
      EXPECT_EQ(configuration.at("inline_values"), true);
      EXPECT_EQ(configuration.at("server_threads"), 1);
      const std::string series = point.at("series");
      const std::string system = series.substr(0, series.find(','));
      const std::map<std::string, std::string> indexes = {
          {"FG", "blink"}, {"Sherman", "blink"}, {"EMT-D", "xstore"}, {"XStore-D", "xstore"}, {"ROLEX", "rolex"}};
      EXPECT_EQ(configuration.at("index"), indexes.at(system));
      EXPECT_EQ(configuration.at("path"), system == "EMT-D" ? "rpc" : "one-sided");
      const bool calls = system == "EMT-D" || system == "XStore-D";
      EXPECT_EQ(configuration.at("updates"), calls ? "rpc" : "one-sided");
      EXPECT_EQ(configuration.at("insert_path"), calls ? "rpc" : "one-sided");
    }
  }
  EXPECT_THAT(ids, ::testing::ElementsAre("fig7", "fig8a", "fig8c", "fig9", "fig10", "fig11", "latency", "fig12"));
  // The points have every system at every place.
  EXPECT_EQ(PointsOf(report, "fig7").size(), 5U * 12);
  EXPECT_EQ(PointsOf(report, "fig8a").size(), 5U * 2);
  EXPECT_EQ(PointsOf(report, "fig9").size(), 5U * 8);
  EXPECT_EQ(PointsOf(report, "fig10").size(), 5U * 2 * 4);
  EXPECT_EQ(PointsOf(report, "latency").size(), 5U * 3);
  const auto cache_bytes = [&report](const char* epsilon) {
    const Json point = PointsOf(report, "fig11").at({"ROLEX, reads", epsilon});
    EXPECT_EQ(point.at("report").at("configuration").at("index_options"), "epsilon=" + std::string(epsilon).substr(8));
    return point.at("cache_bytes_per_machine").get<double>();
  };
  EXPECT_GT(cache_bytes("epsilon 4"), cache_bytes("epsilon 256")) << "more pieces";
  EXPECT_THAT(outcome.out, HasSubstr("cache B/key"));
  EXPECT_EQ(PointsOf(report, "fig12").size(), 3U * 3) << "two of the four sizes are the least, 1000 keys";
  std::map<std::string, Json> claims;
  for (const Json& claim : report.at("claims")) claims[claim.at("what")] = claim;
  const auto mops = [&report](const char* id, const std::string& system, const std::string& label) {
    return PointsOf(report, id).at({system, label}).at("million_operations_per_second").get<double>();
  };
  // Each claim is of one place of a figure, and its name says which.
  for (const std::string system : {"FG", "Sherman", "EMT-D", "XStore-D"}) {
    for (const std::string setting : {"A uniform", "A zipfian"}) {
      EXPECT_EQ(claims.at("ROLEX against " + system + ", YCSB " + setting).at("ours"),
                mops("fig7", "ROLEX", setting) / mops("fig7", system, setting));
    }
    EXPECT_EQ(claims.at("ROLEX against " + system + ", inserts only, spread").at("ours"),
              mops("fig8a", "ROLEX", "spread") / mops("fig8a", system, "spread"));
  }
  EXPECT_EQ(claims.at("ROLEX against Sherman, a mix with 40% inserts").at("ours"),
            mops("fig8c", "ROLEX", "40% inserts") / mops("fig8c", "Sherman", "40% inserts"));
  EXPECT_EQ(claims.at("ROLEX against EMT-D, YCSB A zipfian").at("paper"), 2.8);
  for (const auto& [what, claim] : claims) EXPECT_THAT(what, Not(HasSubstr("up to")));
}

// A kind of the registry cannot be forgotten.
TEST(ReproduceTest, ComparesAllKindsOfIndexInOneTable) {
  const std::string json = ::testing::TempDir() + "/reproduce_kinds.json";
  const std::string html = ::testing::TempDir() + "/reproduce_kinds.html";
  std::vector<std::string> flags = {"reproduce", "kinds", "--keys", "1K", "--clients", "2x2",
                                    "--scale",   "0.05",  "--json", json, "--html",    html};
  const Outcome outcome = RunProgram(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  const std::string page = Contents(html);
  std::filesystem::remove(json);
  std::filesystem::remove(html);
  std::map<std::string, Json> rows;
  for (const Json& row : report.at("table").at("rows")) rows[row.at("kind")] = row;
  const std::vector<index::IndexKind> kinds = index::KindsThat([](const index::IndexTraits&) { return true; });
  EXPECT_EQ(rows.size(), kinds.size());
  for (const index::IndexKind kind : kinds) {
    const index::IndexKindEntry& entry = index::EntryOf(kind);
    SCOPED_TRACE(entry.name);
    ASSERT_TRUE(rows.contains(entry.name));
    EXPECT_THAT(outcome.out, HasSubstr("\n" + entry.name + " "));
    EXPECT_THAT(page, HasSubstr("<td class=\"text\">" + entry.name + "</td>"));
    const bool scans = entry.traits.ordered || entry.traits.spatial;
    for (const Json& column : report.at("table").at("columns")) {
      const std::string key = column.at("key");
      const Json& value = rows.at(entry.name).at(key);
      const bool cannot = (key.starts_with("scan") && !scans) || (key.starts_with("append") && entry.traits.spatial);
      EXPECT_EQ(value.is_null(), cannot) << key;
      if (key.ends_with("mops") || key.ends_with("p50_us") || key.ends_with("reads")) {
        EXPECT_TRUE(value.is_null() || value > 0) << key;
      }
    }
  }
  for (const Json& experiment : report.at("experiments")) {
    for (const Json& point : experiment.at("points")) {
      SCOPED_TRACE(experiment.at("id").get<std::string>() + ", " + point.at("series").get<std::string>());
      const Json& run = point.at("report");
      EXPECT_EQ(run.at("configuration").at("index"), point.at("series"));
      if (experiment.at("id") != "scan") continue;
      EXPECT_GT(run.at("rows_per_operation"), 50);
      EXPECT_LT(run.at("rows_per_operation"), 150);
    }
  }
  ExpectWellFormed(page);
}

TEST(ReproduceTest, RunsDolphinBesideItsRivals) {
  const std::string json = ::testing::TempDir() + "/reproduce_dolphin.json";
  const Outcome outcome =
      RunProgram({"reproduce", "dolphin", "--keys", "32K", "--clients", "2x4", "--scale", "0.2", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  std::vector<std::string> ids;
  for (const Json& experiment : report.at("experiments")) {
    ids.push_back(experiment.at("id"));
    for (const Json& point : experiment.at("points")) {
      SCOPED_TRACE(ids.back() + ", " + point.at("series").get<std::string>() + ", " +
                   point.at("label").get<std::string>());
      EXPECT_GT(point.at("million_operations_per_second"), 0);
      const Json& configuration = point.at("report").at("configuration");
      const std::string series = point.at("series");
      const bool is_dolphin = series.starts_with("Dolphin");
      EXPECT_EQ(configuration.at("index"), is_dolphin ? "dolphin" : "blink");
      EXPECT_EQ(configuration.at("inline_values"), series != "Marlin");
      EXPECT_EQ(configuration.at("servers"), 4);
      EXPECT_EQ(configuration.at("coroutines"), 1);
      if (series == "Dolphin") {
        EXPECT_EQ(configuration.at("index_options"), "key_lines=7") << "leaves of 1 KB";
      }
      EXPECT_EQ(configuration.at("theta") != 0.99, ids.back() == "fig9") << configuration.at("theta");
    }
  }
  EXPECT_THAT(ids, ::testing::ElementsAre("fig6a", "fig6c", "fig7", "fig7c", "fig8", "fig9"));
  // The cache has the same share of the keys as the paper's, in parts of the servers.
  const Json small = PointsOf(report, "fig6a").at({"Dolphin", "cache of 50 MB"});
  EXPECT_EQ(small.at("report").at("configuration").at("cache_bytes"), 32'000 * 50 / 512 / 4);
  const auto mops = [&report](const char* id, const std::string& system, const std::string& label) {
    return PointsOf(report, id).at({system, label}).at("million_operations_per_second").get<double>();
  };
  std::map<std::string, Json> claims;
  for (const Json& claim : report.at("claims")) claims[claim.at("what")] = claim;
  // Each claim is of one place of a figure, and its name says which.
  EXPECT_EQ(claims.at("Dolphin against Sherman, YCSB A zipfian, cache of 800 MB").at("ours"),
            mops("fig6a", "Dolphin", "cache of 800 MB") / mops("fig6a", "Sherman", "cache of 800 MB"));
  EXPECT_EQ(claims.at("Dolphin against Sherman, YCSB C zipfian").at("ours"),
            mops("fig7", "Dolphin", "C zipfian") / mops("fig7", "Sherman", "C zipfian"));
  EXPECT_EQ(claims.at("Dolphin against Sherman, range-write uniform").at("ours"),
            mops("fig8", "Dolphin", "range-write") / mops("fig8", "Sherman", "range-write"));
  EXPECT_EQ(claims.at("Dolphin against Sherman, mix of cluster 8, zipfian 1.74").at("paper"), 1);
  const auto ours = [&claims](const std::string& what) { return claims.at(what).at("ours").get<double>(); };
  EXPECT_NEAR(ours("round trips of an insert by Dolphin, range-write uniform, where leaves have room"), 3, 0.3);
  EXPECT_NEAR(ours("mean round trips of an insert by Dolphin, LOAD of random keys"), 3.4, 0.6);
  EXPECT_GT(ours("bytes per key at the servers, Dolphin, LOAD of random keys"), 1024.0 / 49) << "of full leaves";
  // A tree that only inserts grows far beyond what was loaded.
  const Json load = PointsOf(report, "fig7c").at({"Dolphin", "LOAD"}).at("report");
  EXPECT_EQ(load.at("configuration").at("inserts"), "random");
  EXPECT_GT(load.at("index").at("keys"), 2 * load.at("configuration").at("keys").get<double>());
}

TEST(ReproduceTest, StandardOutputTakesThePageAlone) {
  const Outcome outcome = RunProgram({"reproduce", "xstore", "--keys", "2K", "--clients", "2x2", "--scale", "0.01",
                                      "--only", "fig15d", "--html", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(outcome.out, ::testing::EndsWith("</html>\n"));
  ExpectWellFormed(outcome.out);
  EXPECT_THAT(outcome.err, HasSubstr("2,000 keys"));
}

TEST(ReproduceTest, SaysWhatIsWrongWithAFlag) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--scale", "0"}, "--scale 0: must be a number from 0.01 to 1000"},
      {{"--scale", "fast"}, "--scale fast: must be"},
      {{"--keys", "5"}, "--keys 5"},
      {{"--only", "fig10,"}, "--only fig10,: has an empty element: must be some of fig10,"},
      {{"--only", "fig99"}, "'fig99': must be some of fig10,"},
      {{"--clients", "many"}, "such as 15x24"},
      {{"--clients", "1x2", "--only", "fig14b"}, "--clients 1x2: fig14b needs a machine that inserts"},
      {{"--clients", "1x1", "--only", "burst"}, "give --clients 2x1 or more, or leave burst out with --only"},
      {{"--json", "-", "--html", "-"}, "--html -: --json goes there, too"},
      {{"--json", "no-such-file", "--html", "./no-such-file"}, "--html ./no-such-file: --json goes there, too"},
      {{"--html", "/nowhere/page.html"}, "--html /nowhere/page.html"},
      {{"--json", "/nowhere/page.json"}, "--json /nowhere/page.json"},
  };
  for (const auto& [flags, said] : wrong) {
    std::vector<std::string> all = {"reproduce", "xstore"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Outcome outcome = RunProgram(all);
    EXPECT_EQ(outcome.exit_code, 2) << said;
    EXPECT_THAT(outcome.err, HasSubstr(said));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(RunProgram({"reproduce"}).exit_code, 2);
}

}  // namespace reproduce_test
}  // namespace gannet::cli
