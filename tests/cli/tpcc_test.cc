// Short real runs of `gannet tpcc`, judged by their exit codes and reports.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace {

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

// Everything a program that reads the report may rely on.
void ExpectCompleteRunReport(const Json& report) {
  EXPECT_GT(report.at("transactions_per_second").get<double>(), 0);
  EXPECT_GE(report.at("new_orders_per_minute").get<double>(), 0);
  for (const char* procedure : kProcedures) {
    const Json& p = report.at("transactions").at(procedure);
    EXPECT_TRUE(p.at("committed").is_number_unsigned());
    EXPECT_TRUE(p.at("aborted").is_number_unsigned());
    EXPECT_TRUE(p.at("rolled_back").is_number_unsigned());
    const Json& latency = p.at("latency_us");
    EXPECT_LE(latency.at("p50"), latency.at("p90"));
    EXPECT_LE(latency.at("p90"), latency.at("p99"));
    // The maximum is exact, percentiles within 1%.
    EXPECT_LE(latency.at("p99").get<double>(), latency.at("max").get<double>() * 1.02);
    EXPECT_TRUE(p.at("verbs").at("round_trips").is_number());
  }
  for (const char* verb : {"read", "write", "cas", "faa", "call", "bytes", "round_trips"}) {
    EXPECT_TRUE(report.at("verbs").at(verb).is_number_unsigned()) << verb;
  }
  EXPECT_GE(report.at("memory").at("tables").size(), 9u);
  EXPECT_TRUE(report.at("memory").at("client_cache_bytes").is_number_unsigned());
  EXPECT_GT(report.at("calibration").at("dependent_read_ns_before_run").get<double>(), 0);
  EXPECT_EQ(report.at("configuration").at("mix").size(), 5u);
}

TEST_F(TpccTest, RunOnOneNodeReportsEverythingAndIsConsistent) {
  const Outcome outcome = RunProgram(With("run", {"--duration", "300ms", "--warmup", "100ms"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, Not(HasSubstr("\r"))) << "only a terminal can rewrite a line";
  for (const char* text : {"1 warehouse on 1 node (shm), seed 1", "1 thread with 1 coroutine each, mix 45,43,4,4,4",
                           "order_line", "tpmC, unaudited, no think time", "transactions per second", "round trips",
                           "registered memory: ", "client caches: ", "  12  holds  ", "calibration: "}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
  const Json report = Report();
  ExpectCompleteRunReport(report);
  ExpectTwelveConditionsHold(report);
  EXPECT_EQ(report.at("configuration").at("warehouses"), 1);
  EXPECT_EQ(report.at("interrupted"), false);
  // An embedded database needs no verbs.
  EXPECT_EQ(report.at("verbs").at("round_trips"), 0);
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
  EXPECT_EQ(report.at("transactions").at("stock_level").at("committed"), 0);
}

TEST_F(TpccTest, PrepareReportsThePopulation) {
  const Outcome outcome = RunProgram(With("prepare", {"--store", json_path_ + ".store"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(json_path_ + ".store")) << "the memory file goes with the process";
  const Json report = Report();
  EXPECT_FALSE(report.contains("transactions"));
  std::map<std::string, uint64_t> rows;
  for (const Json& table : report.at("memory").at("tables")) rows[table.at("table")] = table.at("rows");
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
  EXPECT_THAT(outcome.err, HasSubstr("loading: warehouse 1 of 1"));
  EXPECT_THAT(outcome.out, HasSubstr("INTERRUPTED"));
  const Json report = Report();
  EXPECT_EQ(report.at("interrupted"), true);
  ExpectTwelveConditionsHold(report);
}

}  // namespace
}  // namespace gannet::cli
