// A transaction that only reads, at another node, data that is not durable yet, is not acknowledged before the data is
// durable. If all of it is durable, the transaction neither waits nor makes the disk work.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace remote_reader_test {

class RemoteReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    disk_->SetOptions({.before = [this](log::DiskOperation operation, const std::string& path) {
      const bool log_of_node_1 = operation == log::DiskOperation::kWrite && path.find("/node-1/") != std::string::npos;
      while (log_of_node_1 && blocked_.load()) std::this_thread::yield();
    }});
    auto cluster = DurableCluster::Open(disk_, {HashTable("rows", Placement::ByHash())},
                                        {.nodes = 2, .database = {.durable_within = absl::Milliseconds(300)}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    while (cluster_->table("rows").OwnerOf(key_, 0) != 1) ++key_;
    Write(1);
    while (Read(0).status().code() == absl::StatusCode::kUnknown) {  // a busy machine: repeat until it is durable
    }
  }
  void TearDown() override { blocked_.store(false); }

  // Node 1, which has the row, writes it. Unknown: not durable in time.
  void Write(uint64_t value) {
    const Table& rows = cluster_->table("rows", 1);
    const Status status = cluster_->database(1).Run(
        [&](BlockingTransaction& t) { return value == 1 ? t.Insert(rows, key_, value) : t.Update(rows, key_, value); });
    ASSERT_TRUE(status.ok() || absl::IsUnknown(status)) << status;
  }
  StatusOr<uint64_t> Read(int node) {
    uint64_t value = 0;
    const Status status = cluster_->database(node).Run(
        [&](BlockingTransaction& t) { return t.Get(cluster_->table("rows", node), key_, &value); });
    return status.ok() ? StatusOr<uint64_t>(value) : status;
  }

  uint64_t key_ = 0;
  std::atomic<bool> blocked_{false};
  std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  std::unique_ptr<DurableCluster> cluster_;
};

TEST_F(RemoteReaderTest, IsNotAcknowledgedBeforeWhatItReadIsDurable) {
  blocked_.store(true);
  Write(2);
  EXPECT_TRUE(absl::IsUnknown(Read(1).status())) << "at the node itself";
  EXPECT_TRUE(absl::IsUnknown(Read(0).status())) << "at another node";
  blocked_.store(false);
  StatusOr<uint64_t> value = Read(0);
  while (absl::IsUnknown(value.status())) value = Read(0);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 2u);
}

TEST_F(RemoteReaderTest, AsksNothingOfTheDiskWhenAllIsDurable) {
  const auto batches = [this] {
    return cluster_->database(0).log_statistics().batches + cluster_->database(1).log_statistics().batches;
  };
  constexpr uint64_t kReads = 200;
  const uint64_t before = batches();
  for (uint64_t i = 0; i < kReads; ++i) {
    const StatusOr<uint64_t> value = Read(0);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, 1u);
  }
  EXPECT_LT(batches() - before, kReads / 4) << "a few that close the last epochs";
}

}  // namespace remote_reader_test
}  // namespace gannet::txn
