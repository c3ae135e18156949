// The metrics of a database: which there are, and that they count.
#include "txn/metrics.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace {

// The numbers of the text, by name and labels. Every line must have the form that Prometheus reads.
std::map<std::string, double> NumbersOf(const std::string& text) {
  std::map<std::string, double> numbers;
  std::string family;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "# HELP ")) continue;
    if (absl::StartsWith(line, "# TYPE ")) {
      family = std::vector<std::string>(absl::StrSplit(line, ' '))[2];
      continue;
    }
    const size_t space = line.rfind(' ');
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    EXPECT_TRUE(absl::StartsWith(line, absl::StrCat(family, "{")) || absl::StartsWith(line, absl::StrCat(family, " ")))
        << line << " is not of " << family;
    EXPECT_TRUE(numbers.emplace(line.substr(0, space), value).second) << line << " is there twice";
  }
  return numbers;
}

Status InsertRows(Database& database, const Table& table, uint64_t from, uint64_t to) {
  for (uint64_t key = from; key < to; ++key) {
    GANNET_RETURN_IF_ERROR(database.Run([&](BlockingTransaction& t) { return t.Insert(table, key, key); }));
  }
  return absl::OkStatus();
}

TEST(MetricsTest, ADatabaseInMemoryHasNoLog) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{64} << 20});
  ASSERT_TRUE(database.ok()) << database.status();
  const Table* const rows = (*database)->CreateTable(HashTable("rows")).value();
  ASSERT_TRUE((*database)->Start().ok());
  auto numbers = NumbersOf((*database)->MetricsText());
  EXPECT_EQ(numbers.at("gannet_registered_memory_bytes{kind=\"capacity\"}"), 64 << 20);
  const double before = numbers.at("gannet_registered_memory_bytes{kind=\"taken\"}");
  EXPECT_EQ(numbers.at("gannet_commits_held_up_total"), 0);
  EXPECT_EQ(numbers.count("gannet_log_healthy"), 0u);
  EXPECT_EQ(numbers.count("gannet_checkpoints_total{result=\"taken\"}"), 0u);
  ASSERT_TRUE(InsertRows(**database, *rows, 0, 10'000).ok());
  numbers = NumbersOf((*database)->MetricsText());
  EXPECT_GT(numbers.at("gannet_registered_memory_bytes{kind=\"taken\"}"), before);
}

TEST(MetricsTest, TheLogAndCheckpointsAreCounted) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  auto cluster = DurableCluster::Open(disk, {HashTable("rows")});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  auto numbers = NumbersOf(database.MetricsText());
  const double before = numbers.at("gannet_log_transactions_total");
  EXPECT_EQ(numbers.at("gannet_checkpoints_total{result=\"taken\"}"), 0);
  ASSERT_TRUE(InsertRows(database, *database.FindTable("rows"), 0, 100).ok());
  numbers = NumbersOf(database.MetricsText());
  EXPECT_EQ(numbers.at("gannet_log_transactions_total"), before + 100);
  EXPECT_EQ(numbers.at("gannet_log_changes_total"), before + 100);
  EXPECT_GE(numbers.at("gannet_log_disk_bytes_total"), numbers.at("gannet_log_record_bytes_total"));
  EXPECT_GT(numbers.at("gannet_log_batches_total"), 0);
  EXPECT_EQ(numbers.at("gannet_log_healthy"), 1);
  EXPECT_GT(numbers.at("gannet_durable_epoch"), 0);
  EXPECT_GT(numbers.at("gannet_recovery_log_bytes"), 0);
  ASSERT_TRUE(database.Checkpoint().ok());
  numbers = NumbersOf(database.MetricsText());
  EXPECT_EQ(numbers.at("gannet_checkpoints_total{result=\"taken\"}"), 1);
  EXPECT_EQ(numbers.at("gannet_checkpoints_total{result=\"failed\"}"), 0);
  EXPECT_GT(numbers.at("gannet_checkpoint_bytes_total"), 0);
  EXPECT_GT(numbers.at("gannet_checkpoint_seconds"), 0);
}

// What a server of a cluster shows is made by the same functions, of its sources.
TEST(MetricsTest, AccessesToOtherNodesAreThereByTableKindAndPath) {
  std::vector<MetricFamily> families;
  AddPathMetrics({}, &families);
  EXPECT_TRUE(families.empty());
  AddLoadMetrics({}, &families);
  EXPECT_TRUE(families.empty()) << "nothing was announced";
  AddPathMetrics({{.table = "rows",
                   .kind = AccessKind::kScan,
                   .paths = {.one_sided = 3, .calls = 5, .estimated = 2, .one_sided_nanos = 4e9, .call_nanos = 6e9}}},
                 &families);
  AddLoadMetrics({.number = 1, .servers = 250, .link = 500, .link_megabytes_per_second = 100}, &families);
  const auto numbers = NumbersOf(MetricsToText(families));
  EXPECT_EQ(numbers.at("gannet_remote_accesses_total{table=\"rows\",kind=\"scan\",path=\"one_sided\"}"), 3);
  EXPECT_EQ(numbers.at("gannet_remote_accesses_total{table=\"rows\",kind=\"scan\",path=\"call\"}"), 5);
  EXPECT_EQ(numbers.at("gannet_remote_access_estimated_seconds_total{table=\"rows\",kind=\"scan\",path=\"call\"}"), 6);
  EXPECT_EQ(numbers.at("gannet_call_threads_busy_ratio"), 0.25);
  EXPECT_EQ(numbers.at("gannet_link_busy_ratio"), 0.5);
  EXPECT_EQ(numbers.count("gannet_nic_engine_busy_ratio"), 0u);
}

}  // namespace
}  // namespace gannet::txn
