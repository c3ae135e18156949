// Short real runs of `gannet ycsb`, judged by their exit codes and reports.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/html_text.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace ycsb_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class YcsbTest : public ::testing::Test {
 protected:
  ~YcsbTest() override { std::filesystem::remove(json_path_); }

  Json Report(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"ycsb", "--keys", "20K", "--json", json_path_});
    const Outcome outcome = RunProgram(flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("\r"))) << "only a terminal can rewrite a line";
    text_ = outcome.out;
    return outcome.exit_code == 0 ? Json::parse(std::ifstream(json_path_)) : Json();
  }

  std::string text_;
  const std::string json_path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_ycsb.json";
};

// The parts of the report on which other programs may rely.
void ExpectComplete(const Json& report) {
  EXPECT_TRUE(report.at("operations_per_second").is_number());
  EXPECT_EQ(report.at("interrupted"), false);
  for (const char* kind : {"read", "update", "insert", "scan", "read_modify_write"}) {
    const Json& k = report.at("operations").at(kind);
    EXPECT_TRUE(k.at("operations").is_number_unsigned());
    for (const char* p : {"mean", "p50", "p90", "p95", "p99", "max"}) EXPECT_TRUE(k.at("latency_us").at(p).is_number());
    for (const char* verb : {"read", "write", "cas", "faa", "call", "bytes", "round_trips", "retries"}) {
      EXPECT_TRUE(k.at("verbs").at(verb).is_number()) << verb;
    }
  }
  EXPECT_EQ(report.at("index").at("keys"), 20'000);
  EXPECT_TRUE(report.at("clients").at("cache_bytes").is_number_unsigned());
  EXPECT_EQ(report.at("configuration").at("keys"), 20'000);
}

TEST_F(YcsbTest, OnSharedMemoryReportsEverything) {
  const Json report = Report({"--duration", "1s", "--warmup", "10ms"});
  ExpectComplete(report);
  EXPECT_GT(report.at("model").at("sub_models"), 0);
  EXPECT_GT(report.at("calibration").at("dependent_read_ns_before_run").get<double>(), 0);
  EXPECT_FALSE(report.contains("simulation"));
  for (const char* text : {"workload c", "zipfian", "xstore", "operations per second", "READ", "lookups by clients",
                           "sub-models", "calibration"}) {
    EXPECT_THAT(text_, HasSubstr(text));
  }
}

TEST_F(YcsbTest, SimulatedIsTheSameEveryTimeAndTellsWhatIsBusy) {
  const std::vector<std::string> flags = {"--fabric",   "sim",   "--clients",     "3x4",  "--server-threads", "2",
                                          "--duration", "200us", "--warmup",      "50us", "--workload",       "b",
                                          "--servers",  "2",     "--value-bytes", "64"};
  Json report = Report(flags);
  ExpectComplete(report);
  EXPECT_GT(report.at("operations_per_second").get<double>(), 0);
  EXPECT_GT(report.at("simulation").at("servers").at("cpu").get<double>(), 0);
  EXPECT_GT(report.at("simulation").at("servers").at("nic_serve").get<double>(), 0);
  EXPECT_THAT(text_, HasSubstr("client machines"));
  Json again = Report(flags);
  // Properties of the machine that runs the simulation. The help names them.
  const std::string help = RunProgram({"ycsb", "--help"}).out;
  for (const char* const path : {"/load_seconds", "/run_seconds", "/index/resident_bytes"}) {
    const Json::json_pointer field(path);
    for (Json* json : {&report, &again}) json->at(field.parent_pointer()).erase(field.back());
    EXPECT_THAT(help, HasSubstr(field.back()));
  }
  EXPECT_EQ(report, again);
}

TEST_F(YcsbTest, TheReportComesInEveryForm) {
  const std::string csv_path = json_path_ + ".csv";
  const std::string html_path = json_path_ + ".html";
  const Json report = Report({"--fabric", "sim", "--clients", "2x2", "--duration", "500us", "--warmup", "0us",
                              "--workload", "a", "--histogram", "--csv", csv_path, "--html", html_path});
  EXPECT_THAT(text_, HasSubstr("latency of update"));
  EXPECT_THAT(text_, Not(HasSubstr("latency of scan")));
  ASSERT_EQ(report.at("timeline").size(), 5u) << "a fifth of the duration each";
  double operations = 0;
  for (const Json& moment : report.at("timeline")) {
    for (const Json& kind : moment.at("operations")) operations += kind.at("finished").get<double>();
    EXPECT_GT(moment.at("latency_us").at("p99").get<double>(), 0);
  }
  EXPECT_NEAR(operations, report.at("all").at("operations").get<double>(), 64) << "but for those in flight at the ends";
  std::ifstream csv(csv_path);
  int lines = 0;
  for (std::string line; std::getline(csv, line);) ++lines;
  EXPECT_EQ(lines, 1 + 5 * 3) << "read, update and all";
  std::ifstream file(html_path);
  const std::string html(std::istreambuf_iterator<char>(file), {});
  ExpectSelfContained(html);
  EXPECT_GE(PlotsOf(html).size(), 3u);
  EXPECT_THAT(html, HasSubstr("simulated rack"));
  for (const std::string& path : {csv_path, html_path}) std::filesystem::remove(path);
}

TEST_F(YcsbTest, SimulatedCallsKeepTheServersBusyAndReadsDoNot) {
  const std::vector<std::string> flags = {"--fabric", "sim", "--clients", "2x4", "--duration", "200us", "--path"};
  for (const char* path : {"one-sided", "rpc"}) {
    std::vector<std::string> all = flags;
    all.emplace_back(path);
    const Json report = Report(all);
    const bool calls = std::string(path) == "rpc";
    EXPECT_EQ(report.at("operations").at("read").at("verbs").at("call").get<double>() > 0, calls);
    EXPECT_EQ(report.at("simulation").at("servers").at("cpu").get<double>() > 0.01, calls);
  }
}

TEST_F(YcsbTest, RememberedLocationsMakeAGetOneRead) {
  for (const char* workload : {"c", "d"}) {
    const Json report = Report({"--fabric", "sim", "--clients", "2x4", "--duration", "200us", "--distribution",
                                "uniform", "--workload", workload, "--cache", "locations"});
    const double reads = report.at("operations").at("read").at("verbs").at("read");
    EXPECT_GE(reads, 1) << workload;
    EXPECT_LT(reads, 1.2) << workload << ": a few are not in the cache";
    EXPECT_GE(report.at("clients").at("cache_bytes"), 2 * 16 * 20'000) << "two machines, 16 bytes a key";
    EXPECT_EQ(report.at("configuration").at("cache"), "locations");
  }
}

TEST_F(YcsbTest, EveryWorkloadRuns) {
  for (const char* workload : {"a", "b", "c", "d", "e", "f", "load", "update"}) {
    const Json report = Report({"--fabric", "sim", "--clients", "1x2", "--duration", "200us", "--workload", workload,
                                "--keyspace", "osm-like"});
    EXPECT_GT(report.at("all").at("operations"), 0) << workload;
  }
}

TEST_F(YcsbTest, WritesAreInsertsBesideReads) {
  for (const char* where : {"spread", "append"}) {
    const Json report = Report({"--fabric", "sim", "--clients", "2x2", "--duration", "200us", "--writes", "30",
                                "--inserts", where, "--keyspace", "lognormal"});
    const auto operations = [&report](const char* kind) {
      return report.at("operations").at(kind).at("operations").get<double>();
    };
    EXPECT_NEAR(operations("insert") / report.at("all").at("operations").get<double>(), 0.3, 0.1);
    EXPECT_EQ(operations("insert") + operations("read"), report.at("all").at("operations"));
    EXPECT_GT(report.at("index").at("keys"), 20'000);
    EXPECT_EQ(report.at("configuration").at("inserts"), where);
    EXPECT_EQ(report.at("configuration").at("mix"), (Json{70, 0, 30, 0, 0}));
  }
}

// What the issue of ROLEX asks for: a GET of a trained key READs 1.2 leaves and 200 bytes at most, with a cache of one
// byte per key.
TEST_F(YcsbTest, AGetOfAnInlineValueReadsLittle) {
  for (const char* form : {"linear", "normal", "lognormal"}) {
    const Json report =
        Report({"--fabric", "sim", "--clients", "2x4", "--duration", "500us", "--distribution", "uniform", "--index",
                "rolex", "--inline", "--servers", "2", "--server-threads", "1", "--fill", "88", "--keyspace", form});
    const Json& clients = report.at("clients");
    EXPECT_LE(clients.at("leaves_read").get<double>() / clients.at("lookups").get<double>(), 1.2) << form;
    EXPECT_LE(report.at("operations").at("read").at("verbs").at("bytes").get<double>(), 200) << form;
    EXPECT_LE(clients.at("cache_bytes"), 2 * 20'000) << "two machines, a byte a key";
    EXPECT_EQ(report.at("configuration").at("inline_values"), true);
  }
}

TEST_F(YcsbTest, ServersAreOnTheMachinesOfTheClients) {
  const Json report = Report({"--fabric", "sim", "--clients", "3x2", "--colocated", "--server-threads", "1",
                              "--duration", "500us", "--workload", "b", "--index", "rolex", "--inline"});
  EXPECT_EQ(report.at("configuration").at("servers"), 3);
  EXPECT_EQ(report.at("configuration").at("colocated"), true);
  EXPECT_EQ(report.at("simulation").at("servers"), report.at("simulation").at("machines"));
  EXPECT_GT(report.at("simulation").at("servers").at("nic_serve"), 0);
  EXPECT_THAT(text_, HasSubstr("the same machines"));
}

TEST_F(YcsbTest, ServersLogTheirWrites) {
  for (const char* mode : {"async", "sync"}) {
    const Json report = Report({"--fabric", "sim", "--clients", "2x4", "--duration", "2ms", "--workload", "a",
                                "--durability", mode, "--disk", "sata-ssd"});
    EXPECT_EQ(report.at("configuration").at("durability"), mode);
    const Json& log = report.at("log");
    EXPECT_GE(log.at("writes"), report.at("operations").at("update").at("operations"));
    EXPECT_GT(log.at("disk_bytes"), 0);
    EXPECT_THAT(text_, HasSubstr(std::string("log (") + mode + ", sata-ssd)"));
    // A durable write of this disk takes 65 us.
    EXPECT_EQ(report.at("operations").at("update").at("latency_us").at("p50") > 65, std::string(mode) == "sync");
  }
  EXPECT_FALSE(Report({"--fabric", "sim", "--clients", "1x2", "--duration", "100us"}).contains("log"));
}

TEST_F(YcsbTest, TheErrorBoundOfModelsIsAnOption) {
  const auto cache_bytes = [this](const char* options) -> double {
    const Json report = Report({"--fabric", "sim", "--clients", "1x2", "--duration", "100us", "--index", "rolex",
                                "--inline", "--index-options", options, "--keyspace", "random"});
    EXPECT_EQ(report.at("configuration").at("index_options"), options);
    return report.at("clients").at("cache_bytes");
  };
  EXPECT_GT(cache_bytes("epsilon=4"), cache_bytes("epsilon=64"));
}

TEST_F(YcsbTest, TheSizeOfALeafIsAnOption) {
  const auto bytes_of_a_read = [this](const std::string& key_lines) -> double {
    const Json report = Report({"--fabric", "sim", "--clients", "1x2", "--duration", "100us", "--index", "dolphin",
                                "--inline", "--index-options", "key_lines=" + key_lines});
    return report.at("operations").at("read").at("verbs").at("bytes");
  };
  EXPECT_NEAR(bytes_of_a_read("3"), 512, 10) << "and an inner node now and then";
  EXPECT_NEAR(bytes_of_a_read("7"), 1024, 10);
}

TEST_F(YcsbTest, SaysWhatDoesNotGoWithALogOrAnIndex) {
  struct Wrong {
    std::vector<std::string> flags;
    const char* says;
  };
  const Wrong wrongs[] = {
      {{"--durability", "sync"}, "--fabric sim"},
      {{"--fabric", "sim", "--disk", "nvme"}, "--durability"},
      {{"--fabric", "sim", "--durability", "sync", "--disk", "tape"}, "sata-ssd"},
      {{"--fabric", "sim", "--durability", "async", "--inline"}, "leave --inline out"},
      {{"--fabric", "sim", "--durability", "async", "--updates", "one-sided"}, "leave --updates one-sided out"},
      {{"--index-options", "epsilon=16"}, "xstore has no options"},
      {{"--index", "rolex", "--index-options", "delta=8"}, "there is epsilon"},
      {{"--index", "dolphin", "--index-options", "key_lines=10"}, "choose one from 1 to 9"},
      {{"--index", "dex", "--cache-bytes", "4000T"}, "--cache-bytes 4000.0 TiB: this machine has"},
      {{"--index", "rolex", "--sub-models", "5"}, "--sub-models: is for the models of --index xstore"},
      {{"--index", "dex", "--trainers", "2"}, "--trainers: is for the models of --index xstore"},
      {{"--index", "dex", "--inline", "--partitioned", "--kept-leaves", "write-back", "--index-rights", "owner"},
       "--kept-leaves write-back: clients change the leaves that they keep; leave --index-rights owner out"},
  };
  for (const Wrong& wrong : wrongs) {
    std::vector<std::string> flags = {"ycsb", "--keys", "1K"};
    flags.insert(flags.end(), wrong.flags.begin(), wrong.flags.end());
    const Outcome outcome = RunProgram(flags);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.says));
  }
}

TEST_F(YcsbTest, ClientsChangeInlineValuesByVerbsWhereTheyCan) {
  for (const char* index : {"xstore", "blink", "rolex", "dolphin"}) {
    const bool verbs = std::string(index) != "xstore";
    const Json report = Report({"--fabric", "sim", "--clients", "2x2", "--duration", "500us", "--index", index,
                                "--inline", "--mix", "34,33,33,0,0", "--cache-bytes", "1M"});
    for (const char* kind : {"update", "insert"}) {
      const Json& used = report.at("operations").at(kind).at("verbs");
      EXPECT_EQ(used.at("call").get<double>() < 0.5, verbs) << index << " " << kind;
      EXPECT_EQ(used.at("cas").get<double>() + used.at("faa").get<double>() > 0, verbs) << index << " " << kind;
    }
    EXPECT_EQ(report.at("configuration").at("insert_path"), verbs ? "one-sided" : "rpc");
    EXPECT_LE(report.at("clients").at("cache_bytes"), 2 << 20);
  }
}

}  // namespace ycsb_test
}  // namespace gannet::cli
