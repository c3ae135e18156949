// The metrics of a database: which there are, and that they count.
#include "txn/metrics.h"

#include <algorithm>
#include <functional>
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
#include "txn/run/session.h"

namespace gannet::txn {
namespace metrics_test {

// The numbers of the text, by name and labels. Every line must have the form that Prometheus reads.
std::map<std::string, double> NumbersOf(const std::string& text) {
  std::map<std::string, double> numbers;
  std::string family;
  bool histogram = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "# HELP ")) continue;
    if (absl::StartsWith(line, "# TYPE ")) {
      family = std::vector<std::string>(absl::StrSplit(line, ' '))[2];
      histogram = absl::EndsWith(line, " histogram");
      continue;
    }
    const size_t space = line.rfind(' ');
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    const std::string name(line.substr(0, line.find_first_of("{ ")));
    EXPECT_TRUE(name == family ||
                (histogram && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count")))
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

class TransactionMetricsTest : public ::testing::Test {
 protected:
  TransactionMetricsTest() {
    EXPECT_TRUE(database_->Start().ok());
    EXPECT_TRUE(InsertRows(*database_, *rows_, 0, 10).ok());
    before_ = Numbers();
  }
  std::map<std::string, double> Numbers() const { return NumbersOf(database_->MetricsText()); }
  // How much a number has grown since the rows were inserted.
  double Grown(const std::string& name) const { return Numbers().at(name) - before_.at(name); }
  double Aborts(const std::string& cause) const { return Grown("gannet_aborts_total{cause=\"" + cause + "\"}"); }
  Status Set(uint64_t key, uint64_t value) {
    return database_->Run([&](BlockingTransaction& t) { return t.Upsert(*rows_, key, value); });
  }

  std::unique_ptr<Database> database_ = Database::OpenInMemory({.memory_bytes = uint64_t{64} << 20}).value();
  const Table* const rows_ = database_->CreateTable(OrderedTable("rows")).value();
  std::map<std::string, double> before_;
};

TEST_F(TransactionMetricsTest, CommitsAndRowsAreCounted) {
  EXPECT_EQ(before_.at("gannet_commits_total{kind=\"writing\"}"), 10);
  EXPECT_EQ(before_.at("gannet_rows_written_total{operation=\"insert\"}"), 10);
  uint64_t value = 0;
  ASSERT_TRUE(database_->Run([&](BlockingTransaction& t) { return t.Get(*rows_, 1, &value); }).ok());
  ASSERT_TRUE(database_
                  ->Run([&](BlockingTransaction& t) -> Status {
                    GANNET_RETURN_IF_ERROR(t.Get(*rows_, 1, &value));
                    GANNET_RETURN_IF_ERROR(t.Get(*rows_, 2, &value));
                    GANNET_RETURN_IF_ERROR(t.Update(*rows_, 3, value));
                    GANNET_RETURN_IF_ERROR(t.Remove(*rows_, 4));
                    GANNET_RETURN_IF_ERROR(t.Remove(*rows_, 5));
                    GANNET_RETURN_IF_ERROR(t.Insert(*rows_, 11, value));
                    GANNET_RETURN_IF_ERROR(t.Insert(*rows_, 12, value));
                    return t.Remove(*rows_, 12);
                  })
                  .ok());
  const Status own = database_->Run([&](BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Update(*rows_, 1, value));
    return absl::NotFoundError("its own");
  });
  EXPECT_TRUE(absl::IsNotFound(own)) << own;
  EXPECT_EQ(Grown("gannet_commits_total{kind=\"writing\"}"), 1);
  EXPECT_EQ(Grown("gannet_commits_total{kind=\"read_only\"}"), 1);
  EXPECT_EQ(Grown("gannet_rollbacks_total"), 1);
  EXPECT_EQ(Grown("gannet_rows_read_total"), 7);
  EXPECT_EQ(Grown("gannet_rows_written_total{operation=\"insert\"}"), 1);
  EXPECT_EQ(Grown("gannet_rows_written_total{operation=\"update\"}"), 1);
  EXPECT_EQ(Grown("gannet_rows_written_total{operation=\"remove\"}"), 2);
}

TEST_F(TransactionMetricsTest, AbortsAreCountedByTheirCause) {
  auto session = database_->OpenSession().value();
  const auto conflict = [&](const std::function<Status(BlockingTransaction&)>& read,
                            const std::function<Status()>& other) {
    Transaction transaction = session->Begin();
    BlockingTransaction t(&transaction, &session->worker());
    EXPECT_TRUE(read(t).ok());
    EXPECT_TRUE(other().ok());
    coro::Async<Status> committed = transaction.Commit();
    EXPECT_TRUE(absl::IsAborted(committed.value())) << committed.value();
  };
  uint64_t value = 0;
  const auto get_two = [&](BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Get(*rows_, 1, &value));
    return t.Get(*rows_, 2, &value);
  };
  conflict(get_two, [&] { return Set(1, 100); });
  EXPECT_EQ(Aborts("row"), 1);
  conflict(
      [&](BlockingTransaction& t) -> Status {
        for (const Cursor& row : t.Rows(*rows_, KeyRange::All())) value += row.key().integer();
        return absl::OkStatus();
      },
      [&] { return Set(20, 1); });
  EXPECT_EQ(Aborts("index"), 1);
  int asked = 0;
  ASSERT_TRUE(
      database_->Run([&](BlockingTransaction&) { return ++asked < 3 ? absl::AbortedError("again") : absl::OkStatus(); })
          .ok());
  EXPECT_EQ(Aborts("body"), 2);
  EXPECT_EQ(Aborts("lock") + Aborts("table") + Aborts("log"), 0);
  EXPECT_EQ(Grown("gannet_rollbacks_total"), 0);
  // Sessions that are closed count, too.
  session.reset();
  EXPECT_EQ(Aborts("row") + Aborts("index"), 2);
}

TEST_F(TransactionMetricsTest, OneCommitInSixtyFourIsTimed) {
  const double timed = Numbers().at("gannet_commit_seconds_count");
  EXPECT_GE(timed, 1);
  for (uint64_t i = 0; i < 640; ++i) ASSERT_TRUE(Set(i % 10, i).ok());
  EXPECT_EQ(Numbers().at("gannet_commit_seconds_count"), timed + 10);
  EXPECT_GT(Numbers().at("gannet_commit_seconds_sum"), 0);
  EXPECT_EQ(Numbers().at("gannet_commit_seconds_bucket{le=\"+Inf\"}"), timed + 10);
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
  EXPECT_EQ(numbers.at("gannet_log_flush_seconds_count"), numbers.at("gannet_log_batches_total"));
  EXPECT_EQ(numbers.at("gannet_commit_seconds_count"), before + 100) << "each commit waited for the disk";
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

}  // namespace metrics_test
}  // namespace gannet::txn
