// Every engine does every operation on few rows. RunAll itself compares what they answer.
#include "bench/peers/run.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "bench/peers/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::bench::peers {
namespace run_test {

using ::testing::HasSubstr;

constexpr uint64_t kWords = 3'000;
constexpr uint64_t kRows = 1'000;

RunOptions SmallRun() {
  RunOptions options{.runs = 1, .directory = ::testing::TempDir()};
  options.measure.at_least = absl::ZeroDuration();
  return options;
}

StatusOr<Results> Measured(const std::vector<EngineKind>& engines, const RunOptions& options) {
  return RunAll(engines, Data(kWords, kRows, 1), options, [](int, const EngineKind&) {});
}

// Lies about one word of a thousand.
class WrongClient : public Client {
 public:
  explicit WrongClient(std::unique_ptr<Client> right) : right_(std::move(right)) {}
  Status Insert(Table table, std::span<const uint64_t> rows) override { return right_->Insert(table, rows); }
  Status Read(Table table, std::span<const Key> keys, Digest* digest) override {
    if (keys.size() == 1 && ++reads_ % 1000 == 0) digest->Add(1);
    return right_->Read(table, keys, digest);
  }
  Status Scan(Table table, const Key* from, uint64_t limit, uint64_t* rows, Digest* digest) override {
    return right_->Scan(table, from, limit, rows, digest);
  }
  // Loses one update of a hundred.
  Status Update(Table table, const Key& key, std::string_view payload) override {
    return ++updates_ % 100 == 0 ? absl::OkStatus() : right_->Update(table, key, payload);
  }
  Status Transfer(const Key& from, const Key& to, int64_t amount) override {
    return right_->Transfer(from, to, amount);
  }

 private:
  std::unique_ptr<Client> right_;
  int reads_ = 0;
  int updates_ = 0;
};

class WrongEngine : public Engine {
 public:
  explicit WrongEngine(std::unique_ptr<Engine> right) : right_(std::move(right)) {}
  StatusOr<std::unique_ptr<Client>> OpenClient() override {
    auto client = right_->OpenClient();
    if (!client.ok()) return client.status();
    return std::make_unique<WrongClient>(*std::move(client));
  }
  Status Settle() override { return right_->Settle(); }
  StatusOr<uint64_t> CountedBytes(Table table) override { return right_->CountedBytes(table); }
  Status Close() override { return right_->Close(); }

 private:
  std::unique_ptr<Engine> right_;
};

EngineKind Wrong() {
  EngineKind kind = Lmdb();
  kind.name = "wrong";
  kind.open = [](const Data& data, const std::string& directory,
                 Durability durability) -> StatusOr<std::unique_ptr<Engine>> {
    auto right = Lmdb().open(data, directory, durability);
    if (!right.ok()) return right.status();
    return std::make_unique<WrongEngine>(*std::move(right));
  };
  return kind;
}

TEST(PeersRun, AllEnginesGiveTheSameAnswers) {
  const std::vector<EngineKind> engines = AllEngines();
  const auto results = Measured(engines, SmallRun());
  ASSERT_TRUE(results.ok()) << results.status();
  for (const Operation& operation : results->operations) {
    for (size_t i = 0; i < engines.size(); ++i) {
      const Series* const series = results->Find(operation.id, i);
      if (operation.is_scan() && !engines[i].ordered) {
        EXPECT_EQ(series, nullptr) << operation.id;
        continue;
      }
      ASSERT_NE(series, nullptr) << operation.id << " of " << engines[i].name;
      EXPECT_GT(series->Median(), 0) << operation.id << " of " << engines[i].name;
      if (operation.action != Action::kLoad) {
        EXPECT_NE(series->digests[0], 0u) << operation.id;
      }
    }
  }
  for (size_t i = 0; i < engines.size(); ++i) {
    const Series* const files = results->Find(kFilesId, i);
    ASSERT_NE(files, nullptr);
    // The files have at least the rows themselves.
    EXPECT_GT(files->Median(), 40) << engines[i].name;
  }
}

TEST(PeersRun, TheReportsNameEveryEngineOperationAndGoal) {
  const std::vector<EngineKind> engines = {GannetOrdered(), Lmdb()};
  const auto results = Measured(engines, SmallRun());
  ASSERT_TRUE(results.ok()) << results.status();
  const Data data(kWords, kRows, 1);
  Context context = DescribeMachine();
  context.command = "gannet_peers --some";
  context.runs = 1;
  const std::string markdown = ToMarkdown(engines, data, *results, context);
  const std::string table = ToTable(engines, data, *results, context);
  const auto json = ToJson(engines, data, *results, context);
  EXPECT_THAT(markdown, HasSubstr("gannet_peers --some"));
  EXPECT_THAT(markdown, HasSubstr(context.date));
  for (const EngineKind& engine : engines) {
    EXPECT_THAT(markdown, HasSubstr(engine.name));
    EXPECT_THAT(markdown, HasSubstr(engine.settings[0]));
    EXPECT_THAT(table, HasSubstr(engine.name));
  }
  size_t reads = 0;
  for (const auto& figure : json["figures"]) reads += figure["id"] == "words.read" ? 1 : 0;
  EXPECT_EQ(reads, 1u);
  EXPECT_EQ(json["engines"].size(), engines.size());
  // Reads, scans and updates of both tables by one and two threads, updates of a log in the background, and the memory.
  EXPECT_EQ(Goals(engines, *results).size(), 8u + 8u + 4u + 2u + 1u);
  // Without LMDB there is nothing to compare with.
  EXPECT_EQ(Goals({GannetOrdered()}, *results).size(), 1u);
}

TEST(PeersRun, AWrongReadIsFound) {
  RunOptions options = SmallRun();
  options.only = "words.read";
  const auto results = Measured({Lmdb(), Wrong()}, options);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal) << results.status();
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("words.read: LMDB and wrong gave different answers"));
}

TEST(PeersRun, ALostUpdateIsFound) {
  RunOptions options = SmallRun();
  options.only = "rows.update.background";
  const auto results = Measured({Wrong(), GannetHash()}, options);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal) << results.status();
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("rows.update.background"));
}

TEST(PeersRun, AnEngineThatDiesIsNamed) {
  EngineKind dying = GannetHash();
  dying.name = "dying";
  dying.open = [](const Data&, const std::string&, Durability) -> StatusOr<std::unique_ptr<Engine>> { std::abort(); };
  const auto results = Measured({dying}, SmallRun());
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("dying: its process ended"));
}

TEST(PeersRun, BadOptionsAreRefused) {
  RunOptions options = SmallRun();
  options.only = "no such operation";
  EXPECT_EQ(Measured({Lmdb()}, options).status().code(), absl::StatusCode::kInvalidArgument);
  options = SmallRun();
  options.directory = "/no/such/directory";
  EXPECT_THAT(std::string(Measured({Lmdb()}, options).status().message()), HasSubstr("/no/such/directory"));
}

TEST(PeersRun, NothingStaysInTheDirectory) {
  RunOptions options = SmallRun();
  options.directory = ::testing::TempDir() + "/peers-empty";
  std::filesystem::create_directories(options.directory);
  options.only = "words.read_100_together";
  ASSERT_TRUE(Measured({RocksDb()}, options).ok());
  EXPECT_TRUE(std::filesystem::is_empty(options.directory));
  std::filesystem::remove(options.directory);
}

TEST(PeersRun, MediansAreThoseOfTheRuns) {
  const Series odd{.values = {3, 1, 2}, .digests = {}};
  EXPECT_EQ(odd.Median(), 2);
  EXPECT_EQ(odd.Least(), 1);
  EXPECT_EQ(odd.Greatest(), 3);
  EXPECT_EQ((Series{.values = {4, 1, 2, 3}, .digests = {}}).Median(), 2.5);
}

}  // namespace run_test
}  // namespace gannet::bench::peers
