// Short real runs of `gannet tpcc`, judged by their exit codes and reports.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/html_text.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace tpcc_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kProcedures[] = {"new_order", "payment", "order_status", "delivery", "stock_level"};

class TpccTest : public ::testing::Test {
 protected:
  ~TpccTest() override { std::filesystem::remove(json_path_); }

  // Arguments of a verb that writes its report to json_path_.
  std::vector<std::string> With(const char* verb, std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"tpcc", verb, "--json", json_path_, "--memory-per-node", "2G"});
    return flags;
  }
  Json Report() const { return Json::parse(std::ifstream(json_path_)); }

  const std::string json_path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

void ExpectTwelveConditionsHold(const Json& report) {
  ASSERT_EQ(report.at("consistency").size(), 12u);
  for (int i = 0; i < 12; ++i) {
    const Json& condition = report.at("consistency")[static_cast<size_t>(i)];
    EXPECT_EQ(condition.at("condition"), i + 1);
    EXPECT_EQ(condition.at("holds"), true) << condition;
    EXPECT_TRUE(condition.at("detail").is_string());
  }
}

uint64_t Finished(const Json& procedure) {
  return procedure.at("committed").get<uint64_t>() + procedure.at("rolled_back").get<uint64_t>();
}

std::map<std::string, uint64_t> RowsByTable(const Json& memory) {
  std::map<std::string, uint64_t> rows;
  for (const Json& table : memory.at("tables")) rows[table.at("table")] = table.at("rows");
  return rows;
}

// Counts, rates and latencies of the five transactions are consistent with each other.
void ExpectTransactionsAddUp(const Json& report) {
  const double seconds = report.at("seconds").get<double>();
  ASSERT_GE(seconds, report.at("configuration").at("duration_seconds").get<double>());
  uint64_t finished = 0;
  for (size_t i = 0; i < std::size(kProcedures); ++i) {
    const std::string name = kProcedures[i];
    SCOPED_TRACE(name);
    const Json& p = report.at("transactions").at(name);
    finished += Finished(p);
    if (name != "new_order") {
      EXPECT_EQ(p.at("rolled_back"), 0) << "only NewOrder rolls back";
    }
    if (report.at("configuration").at("mix")[i] == 0) {
      EXPECT_EQ(Finished(p) + p.at("aborted").get<uint64_t>(), 0u);
    }
    // A worker runs one coroutine here, so each transaction is a sample.
    EXPECT_EQ(p.at("verbs").at("samples"), Finished(p));

    const Json& latency = p.at("latency_us");
    const auto of = [&latency](const char* key) { return latency.at(key).get<double>(); };
    if (Finished(p) == 0) {
      for (const char* key : {"mean", "p50", "p90", "p95", "p99", "max"}) EXPECT_EQ(of(key), 0) << key;
      continue;
    }
    EXPECT_GT(of("p50"), 0);
    EXPECT_LE(of("p50"), of("p90"));
    EXPECT_LE(of("p90"), of("p95"));
    EXPECT_LE(of("p95"), of("p99"));
    EXPECT_LE(of("p99"), of("max"));
    EXPECT_GT(of("mean"), 0);
    EXPECT_LE(of("mean"), of("max"));
  }
  EXPECT_GT(finished, 0u);
  EXPECT_NEAR(report.at("transactions_per_second").get<double>() * seconds, static_cast<double>(finished), 0.01);
  EXPECT_NEAR(report.at("new_orders_per_minute").get<double>() * seconds / 60,
              report.at("transactions").at("new_order").at("committed").get<double>(), 0.01);
}

// What is said of all transactions agrees with what is said of each kind.
void ExpectAllIsTheSum(const Json& report) {
  const Json& all = report.at("all");
  std::map<std::string, uint64_t> sums;
  double most = 0;
  for (const Json& p : report.at("transactions")) {
    for (const char* key : {"committed", "aborted", "rolled_back"}) sums[key] += p.at(key).get<uint64_t>();
    most = std::max(most, p.at("latency_us").at("max").get<double>());
  }
  for (const auto& [key, sum] : sums) EXPECT_EQ(all.at(key), sum) << key;
  EXPECT_EQ(all.at("latency_us").at("max"), most);
  EXPECT_EQ(all.at("verbs").at("samples"), Finished(all));
  EXPECT_NEAR(all.at("verbs").at("read").get<double>() * static_cast<double>(Finished(all)),
              report.at("verbs").at("read").get<double>(), 0.01);
}

void ExpectTimelineOfTheMeasuredPhase(const Json& report) {
  const double begin = report.at("configuration").at("warmup_seconds").get<double>();
  ASSERT_FALSE(report.at("timeline").empty());
  double before = begin;
  double most = 0;
  for (const Json& moment : report.at("timeline")) {
    EXPECT_GT(moment.at("at_seconds").get<double>(), before);
    before = moment.at("at_seconds").get<double>();
    most = std::max(most, moment.at("transactions_per_second").get<double>());
    double finished = 0;
    for (const auto& [name, kind] : moment.at("transactions").items()) {
      EXPECT_NE(std::ranges::find(kProcedures, name), std::end(kProcedures)) << name;
      finished += kind.at("finished").get<double>();
      const Json& latency = kind.at("latency_us");
      EXPECT_LE(latency.at("p50"), latency.at("p95"));
      EXPECT_LE(latency.at("p95"), latency.at("p99"));
      EXPECT_LE(latency.at("p99"), latency.at("max"));
    }
    EXPECT_NEAR(finished / moment.at("seconds").get<double>(), moment.at("transactions_per_second").get<double>(),
                0.02 * moment.at("transactions_per_second").get<double>() + 100)
        << "both are read while the workers continue";
    EXPECT_GE(moment.at("new_orders_per_minute").get<double>(), 0);
    EXPECT_LE(moment.at("new_orders_per_minute").get<double>(),
              60 * moment.at("transactions_per_second").get<double>() + 0.01);
  }
  EXPECT_GT(most, 0);
}

void ExpectVerbsAddUp(const Json& report) {
  const auto of = [&verbs = report.at("verbs")](const char* key) { return verbs.at(key).get<uint64_t>(); };
  EXPECT_EQ(of("bytes"), of("bytes_in") + of("bytes_out"));
  const uint64_t verbs = of("read") + of("write") + of("cas") + of("faa") + of("call");
  EXPECT_LE(of("round_trips"), verbs) << "one doorbell posts at least one verb";
  EXPECT_EQ(of("round_trips") == 0, verbs == 0);
  EXPECT_GE(of("bytes_in"), 8 * of("read")) << "a READ brings at least a word";
}

// The tables hold what was loaded plus what the reported transactions have added. Warm-up and the end of the run add
// more.
void ExpectTablesMatchTheCounts(const Json& report) {
  const uint64_t warehouses = report.at("configuration").at("warehouses");
  const uint64_t nodes = report.at("configuration").at("nodes");
  const auto loaded = RowsByTable(report.at("memory").at("after_load"));
  const auto rows = RowsByTable(report.at("memory"));
  EXPECT_EQ(rows.size(), loaded.size());
  EXPECT_EQ(loaded.at("warehouse"), warehouses);
  EXPECT_EQ(loaded.at("order"), 30000 * warehouses);
  for (const auto& [table, each] : std::map<std::string, uint64_t>{{"warehouse", warehouses},
                                                                   {"district", 10 * warehouses},
                                                                   {"customer", 30000 * warehouses},
                                                                   {"stock", 100000 * warehouses},
                                                                   {"item", 100000 * nodes}}) {
    EXPECT_EQ(rows.at(table), each) << table;
    EXPECT_EQ(loaded.at(table), each) << table;
  }
  const Json& transactions = report.at("transactions");
  EXPECT_GE(rows.at("order"), loaded.at("order") + transactions.at("new_order").at("committed").get<uint64_t>());
  EXPECT_GE(rows.at("history"), loaded.at("history") + transactions.at("payment").at("committed").get<uint64_t>());
}

// The parts of the report on which other programs may rely.
void ExpectCompleteRunReport(const Json& report) {
  ExpectTransactionsAddUp(report);
  ExpectAllIsTheSum(report);
  ExpectTimelineOfTheMeasuredPhase(report);
  ExpectVerbsAddUp(report);
  ExpectTablesMatchTheCounts(report);
  uint64_t cache_bytes = 0;
  for (const Json& cache : report.at("memory").at("client_caches")) cache_bytes += cache.at("bytes").get<uint64_t>();
  EXPECT_EQ(report.at("memory").at("client_cache_bytes"), cache_bytes);
  EXPECT_GT(report.at("memory").at("registered_bytes"), 0);
  EXPECT_LE(report.at("memory").at("registered_bytes"), report.at("memory").at("registered_capacity_bytes"));
  const bool is_calibrated = report.at("configuration").at("duration_seconds") >= 1;
  EXPECT_EQ(report.contains("calibration"), is_calibrated);
  if (!is_calibrated) return;
  EXPECT_GT(report.at("calibration").at("dependent_read_ns_before_run").get<double>(), 0);
  EXPECT_GT(report.at("calibration").at("dependent_read_ns_after_run").get<double>(), 0);
}

// Some accesses of NewOrder and Payment are to the other node.
void ExpectPathsAreReported(const Json& report) {
  ASSERT_FALSE(report.at("paths").empty());
  for (const Json& path : report.at("paths")) {
    const uint64_t one_sided = path.at("one_sided");
    const uint64_t calls = path.at("calls");
    EXPECT_GT(one_sided + calls, 0u) << path;
    EXPECT_LE(path.at("estimated").get<uint64_t>(), one_sided + calls) << path;
    EXPECT_LE(path.at("contrary").get<uint64_t>(), path.at("estimated").get<uint64_t>()) << path;
    if (path.at("estimated").get<uint64_t>() == 0) continue;
    EXPECT_GT(path.at("one_sided_estimate_us").get<double>(), 0) << path;
    EXPECT_GT(path.at("call_estimate_us").get<double>(), 0) << path;
  }
}

TEST_F(TpccTest, RunOnOneNodeReportsEverythingAndIsConsistent) {
  const Outcome outcome = RunProgram(With("run", {"--duration", "1s", "--warmup", "100ms"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, Not(HasSubstr("\r"))) << "only a terminal can rewrite a line";
  for (const char* text :
       {"1 warehouse on 1 node (shm), seed 1", "1 thread with 1 coroutine each, mix 45,43,4,4,4", "order_line",
        "mean us", "verbs: none", "tpmC, unaudited, no think time", "transactions per second",
        "registered memory: ", "client caches: ", "  12  holds  ", "calibration: "}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
  const Json report = Report();
  ExpectCompleteRunReport(report);
  ExpectTwelveConditionsHold(report);
  EXPECT_EQ(report.at("configuration").at("warehouses"), 1);
  EXPECT_EQ(report.at("configuration").at("mix"), Json({45, 43, 4, 4, 4}));
  EXPECT_EQ(report.at("configuration").at("duration_seconds"), 1);
  EXPECT_EQ(report.at("configuration").at("warmup_seconds"), 0.1);
  EXPECT_EQ(report.at("interrupted"), false);
  // An embedded database needs no verbs, and has no paths to choose.
  EXPECT_EQ(report.at("verbs").at("round_trips"), 0);
  EXPECT_TRUE(report.at("paths").empty());
  EXPECT_THAT(outcome.out, Not(HasSubstr("accesses to other nodes")));
}

TEST_F(TpccTest, RunOnTwoNodesUsesVerbsAndIsConsistent) {
  const Outcome outcome =
      RunProgram(With("run", {"--nodes", "2", "--duration", "300ms", "--warmup", "0s", "--mix", "50,50,0,0,0"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const Json report = Report();
  ExpectCompleteRunReport(report);
  ExpectTwelveConditionsHold(report);
  EXPECT_EQ(report.at("configuration").at("warehouses"), 2);
  EXPECT_EQ(report.at("configuration").at("threads"), 2);
  EXPECT_GT(report.at("verbs").at("round_trips"), 0);
  // Each thread deals from a deck of 100 cards, with 50 for each of the two procedures. The window may cut a deck at
  // both ends, with one transaction running at each.
  const auto finished = [&report](const char* procedure) {
    return static_cast<double>(Finished(report.at("transactions").at(procedure)));
  };
  EXPECT_NEAR(finished("new_order"), finished("payment"), 2 * 102);
  ExpectPathsAreReported(report);
  EXPECT_THAT(outcome.out, HasSubstr("accesses to other nodes"));
  EXPECT_THAT(outcome.out, ContainsRegex("customer +(get|get_many) +[0-9]"));
}

// stderr is a pipe here.
TEST_F(TpccTest, EveryIntervalHasALineAlsoInAPipe) {
  const Outcome outcome = RunProgram(With("run", {"--duration", "400ms", "--warmup", "200ms", "--interval", "100ms"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warming up\n"));
  EXPECT_THAT(outcome.err, HasSubstr("measuring\n"));
  EXPECT_THAT(outcome.err, ContainsRegex("time +transactions/s +NewOrders/min +aborted +new_order +payment"));
  const Json timeline = Report().at("timeline");
  EXPECT_GE(std::ranges::count(outcome.err, '%'), static_cast<int64_t>(timeline.size()) + 1) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("[0-9.]+ s +[0-9,]+ +[0-9,]+ +[0-9.]+% +[0-9.]+/[0-9.]+/[0-9.]+ "));
  for (const char control : {'\r', '\x1b'}) EXPECT_EQ(std::ranges::count(outcome.err, control), 0);
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(TpccTest, TheReportComesInEveryForm) {
  const std::string csv_path = json_path_ + ".csv";
  const std::string html_path = json_path_ + ".html";
  const Outcome outcome =
      RunProgram(With("run", {"--duration", "300ms", "--warmup", "0s", "--interval", "100ms", "--mix", "45,43,4,4,4",
                              "--histogram", "--csv", csv_path, "--html", html_path}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Report();
  EXPECT_THAT(outcome.out, HasSubstr("latency of new_order"));
  EXPECT_THAT(outcome.out, HasSubstr("latency of all"));
  uint64_t in_histogram = 0;
  for (const Json& range : report.at("all").at("histogram")) {
    EXPECT_LT(range[0], range[1]);
    in_histogram += range[2].get<uint64_t>();
  }
  EXPECT_EQ(in_histogram, Finished(report.at("all")));
  const std::string csv = ContentsOf(csv_path);
  EXPECT_THAT(csv, HasSubstr("at_seconds,seconds,type,finished,"));
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(csv, '\n')), 1 + 6 * report.at("timeline").size())
      << "five types and all of them";
  const std::string html = ContentsOf(html_path);
  ExpectSelfContained(html);
  EXPECT_GE(PlotsOf(html).size(), 3u);
  EXPECT_THAT(html, HasSubstr("conditions"));
  EXPECT_THAT(html, HasSubstr("gannet tpcc run --json"));
  for (const std::string& path : {csv_path, html_path}) std::filesystem::remove(path);
}

TEST_F(TpccTest, ANarrowTerminalGetsANarrowReport) {
  setenv("COLUMNS", "60", 1);
  const Outcome outcome =
      RunProgram(With("run", {"--duration", "200ms", "--warmup", "0s", "--nodes", "2", "--histogram"}));
  unsetenv("COLUMNS");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
}

TEST_F(TpccTest, AMixWithoutSomeTransactionsHasNoRowsOfThem) {
  const Outcome outcome = RunProgram(With("run", {"--duration", "100ms", "--warmup", "0s", "--mix", "0,100,0,0,0"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\norder_status ")));
  EXPECT_THAT(outcome.out, HasSubstr("\npayment "));
  EXPECT_EQ(Report().at("transactions").at("new_order").at("committed"), 0) << "JSON has all";
}

TEST_F(TpccTest, AFixedPathIsReportedAsSuch) {
  const Outcome outcome =
      RunProgram(With("run", {"--nodes", "2", "--duration", "200ms", "--warmup", "0s", "--read-path", "call"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const Json report = Report();
  for (const Json& path : report.at("paths")) {
    EXPECT_EQ(path.at("one_sided"), 0) << path;
    EXPECT_EQ(path.at("estimated"), 0) << path;
  }
}

TEST_F(TpccTest, PrepareReportsThePopulation) {
  const Outcome outcome = RunProgram(With("prepare", {"--store", json_path_ + ".store"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(json_path_ + ".store")) << "the memory file goes with the process";
  const Json report = Report();
  EXPECT_FALSE(report.contains("transactions"));
  const auto rows = RowsByTable(report.at("memory"));
  EXPECT_EQ(rows.at("item"), 100000u);
  EXPECT_EQ(rows.at("customer"), 30000u);
}

TEST_F(TpccTest, CheckEvaluatesTheTwelveConditions) {
  const Outcome outcome = RunProgram(With("check", {}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ExpectTwelveConditionsHold(Report());
}

TEST_F(TpccTest, ALoadThatDoesNotFitSaysWhatToDoAndLeavesNoReport) {
  const Outcome outcome = RunProgram({"tpcc", "prepare", "--memory-per-node", "64M", "--json", json_path_});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--memory-per-node"));
  EXPECT_FALSE(std::filesystem::exists(json_path_));
}

TEST_F(TpccTest, CtrlCStopsItWhileMemoryIsMadeResident) {
  Program program(With("run", {"--duration", "1h", "--warmup", "0s", "--prefault", "1500M"}),
                  {.err_is_terminal = true});
  ASSERT_TRUE(program.WaitForStderr("making memory resident"));
  program.Signal(SIGINT);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err << outcome.out;
}

TEST_F(TpccTest, CtrlCStopsARunThatStillReports) {
  Program program(With("run", {"--duration", "1h", "--warmup", "0s", "--interval", "20ms"}), {.err_is_terminal = true});
  ASSERT_TRUE(program.WaitForStderr("transactions/s"));
  program.Signal(SIGINT);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("loading: 4 of 4 parts"));
  EXPECT_THAT(outcome.out, HasSubstr("INTERRUPTED"));
  const Json report = Report();
  EXPECT_EQ(report.at("interrupted"), true);
  ExpectTwelveConditionsHold(report);
}

}  // namespace tpcc_test
}  // namespace gannet::cli
