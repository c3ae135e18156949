// The log of the servers' writes: it has all of them, and its last change of a key is what the key's record has.
#include "ycsb/write_log.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/file/simulated/timed_disk.h"
#include "log/segment/log_reader.h"
#include "rdma/versioned.h"
#include "tests/ycsb/small_bench.h"
#include "ycsb/record.h"
#include "ycsb/value.h"

namespace gannet::ycsb {
namespace write_log_test {

using ::testing::HasSubstr;

std::shared_ptr<log::FileSystem> Disk(const char* profile) {
  return std::make_shared<log::TimedDisk>(std::make_unique<log::FaultyFileSystem>(1), *log::FindDiskProfile(profile));
}

struct Change {
  uint64_t version = 0;
  std::vector<std::byte> value;
};

// Reads the log of a server whose clients have stopped, and compares it with the records. Returns the number of writes.
uint64_t CheckLog(Server& server, log::FileSystem& disk) {
  const Status durable = server.log()->WaitDurable(server.log()->last_dirty_epoch(), absl::Seconds(10));
  EXPECT_TRUE(durable.ok()) << durable;
  std::map<uint64_t, Change> last;
  uint64_t writes = 0;
  const auto visit = [&](int, const log::TransactionView& transaction) -> Status {
    for (const log::ChangeView& change : transaction.changes) {
      ++writes;
      const std::string_view bytes(reinterpret_cast<const char*>(change.key().data()), change.key().size());
      uint64_t key = 0;
      for (const char byte : bytes) key = key << 8 | static_cast<uint8_t>(byte);
      Change& newest = last[key];
      EXPECT_NE(change.version, newest.version) << "two writes of key " << key;
      if (change.version > newest.version) newest = {change.version, {change.payload.begin(), change.payload.end()}};
    }
    return absl::OkStatus();
  };
  const std::string directory = "/server" + std::to_string(server.node().id());
  const StatusOr<log::LogSummary> summary = log::ReadLog(disk, directory, {}, visit);
  EXPECT_TRUE(summary.ok()) << summary.status();
  for (const auto& [key, change] : last) {
    const index::FindResult found = server.index().Find(key);
    EXPECT_FALSE(found.record.is_null()) << key;
    if (found.record.is_null()) continue;
    std::vector<std::byte> value(change.value.size());
    uint64_t state = 0;
    EXPECT_TRUE(rdma::TryReadLocal(server.node().memory().data() + found.record.offset(), kValueOffset, value, &state));
    EXPECT_EQ(txn::VersionOf(state), change.version) << key;
    EXPECT_EQ(value, change.value) << key;
    EXPECT_TRUE(IsValueOf(key, value));
  }
  return writes;
}

struct LogCase {
  bool simulated;
  DurabilityMode durability;
  IndexKind index;
};

class EveryLog : public ::testing::TestWithParam<LogCase> {};

TEST_P(EveryLog, HasAllWrites) {
  const LogCase& c = GetParam();
  SmallBenchOptions options;
  options.simulated = c.simulated;
  options.servers = 2;
  options.server_threads = 2;
  options.keys = 300;  // many writes of each
  options.index = c.index;
  options.value_bytes = 24;
  options.durability = c.durability;
  options.disk = Disk("nvme");
  SmallBench bench(options);
  RunOptions run_options = bench.ShortRun();
  run_options.threads_per_machine = 2;
  run_options.coroutines = 3;
  run_options.mix = {20, 40, 20, 0, 20};
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  uint64_t writes = 0;
  for (int i = 0; i < options.servers; ++i) writes += CheckLog(bench.cluster().server(i), *options.disk);
  EXPECT_EQ(writes, run->of(Kind::kUpdate).finished + run->of(Kind::kInsert).finished +
                        run->of(Kind::kReadModifyWrite).finished);
  if (!c.simulated) return;
  // Reads do not wait; writes do if they are to be durable.
  const bool sync = c.durability == DurabilityMode::kSync;
  EXPECT_LT(run->of(Kind::kRead).p50_us, 20);
  EXPECT_EQ(run->of(Kind::kUpdate).p50_us > 20, sync);
  EXPECT_EQ(run->of(Kind::kInsert).p50_us > 20, sync);
}

INSTANTIATE_TEST_SUITE_P(All, EveryLog,
                         ::testing::Values(LogCase{false, DurabilityMode::kAsync, IndexKind::kXStore},
                                           LogCase{false, DurabilityMode::kSync, IndexKind::kHash},
                                           LogCase{true, DurabilityMode::kAsync, IndexKind::kXStore},
                                           LogCase{true, DurabilityMode::kSync, IndexKind::kXStore},
                                           LogCase{true, DurabilityMode::kSync, IndexKind::kRolex}));

// A slow disk fills the buffers, and then the writers wait for it.
TEST(WriteLogTest, WritersWaitForASlowDisk) {
  SmallBenchOptions options;
  options.simulated = true;
  options.keys = 300;
  options.value_bytes = 1024;
  options.durability = DurabilityMode::kAsync;
  double mops[2] = {};
  for (const uint64_t bytes_per_second : {uint64_t{100'000'000'000}, uint64_t{20'000'000}}) {
    options.disk = std::make_shared<log::TimedDisk>(
        std::make_unique<log::FaultyFileSystem>(1),
        log::DiskProfile{.name = "test", .durable_nanos = 1000, .bytes_per_second = bytes_per_second, .source = ""});
    SmallBench bench(options);
    RunOptions run_options = bench.ShortRun();
    run_options.mix = {0, 100, 0, 0, 0};
    run_options.coroutines = 8;
    run_options.warmup = absl::Milliseconds(10);
    run_options.duration = absl::Milliseconds(20);
    const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    mops[bytes_per_second < 1'000'000'000 ? 1 : 0] = run->operations_per_second * 1e-6;
    CheckLog(bench.cluster().server(0), *options.disk);
  }
  EXPECT_LT(mops[1], mops[0] / 4);
  EXPECT_GT(mops[1], 0.005) << "20 MB/s are some 17,000 writes";
}

TEST(WriteLogTest, OneSidedWritesAreRefused) {
  SmallBenchOptions options;
  options.durability = DurabilityMode::kAsync;
  options.disk = Disk("sata-ssd");
  SmallBench bench(options);
  RunOptions run_options = bench.ShortRun();
  run_options.paths.updates = Path::kOneSided;
  const StatusOr<RunReport> run = RunBenchmark(&bench.cluster(), run_options, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(run.status()));
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("logged"));
}

}  // namespace write_log_test
}  // namespace gannet::ycsb
