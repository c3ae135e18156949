// A child's messages about acknowledged operations: no operation is called durable before the log says so.
#include "lab/scenario/crash/acknowledgements.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::scenario::crash {
namespace acknowledgements_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AcknowledgementsTest : public ::testing::Test {
 protected:
  AcknowledgementsTest() {
    EXPECT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0);
    auto cluster = txn::DurableCluster::Open(disk_, {txn::HashTable("rows")},
                                             {.database = {.durability = txn::DurabilityMode::kAsync}});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  ~AcknowledgementsTest() override {
    for (const int end : ends_) close(end);
  }

  txn::Database& database() { return cluster_->database(); }
  void Commit(uint64_t key) {
    const txn::Table& rows = cluster_->table("rows");
    const Status status = database().Run([&](txn::BlockingTransaction& t) { return t.Insert(rows, key, key); });
    ASSERT_TRUE(status.ok()) << status;
  }
  // The numbers in messages of this kind since the last call.
  std::vector<uint64_t> Told(MessageKind kind) {
    std::vector<uint64_t> numbers;
    for (Message message; read(ends_[0], &message, sizeof message) == sizeof message;) {
      if (message.kind == kind) numbers.push_back(message.number);
    }
    return numbers;
  }

  std::array<int, 2> ends_{};
  const std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  std::unique_ptr<txn::DurableCluster> cluster_;
};

TEST_F(AcknowledgementsTest, SayWhatIsDurableOnlyOnceItIs) {
  const MessagePipe pipe(ends_[1]);
  Acknowledgements acknowledgements(&database(), txn::DurabilityMode::kAsync, &pipe);
  Commit(0);
  while (database().durable_epoch() < database().logged_epoch()) std::this_thread::yield();
  // Until Heal no write reaches the disk.
  disk_->Schedule({.operation = log::DiskOperation::kWrite, .times = UINT64_MAX});
  Commit(1);
  const uint64_t first = database().logged_epoch();
  acknowledgements.Add(0, 1);
  EXPECT_LT(database().durable_epoch(), first);
  EXPECT_THAT(Told(MessageKind::kDurable), IsEmpty());
  disk_->Heal();
  while (database().durable_epoch() < first) std::this_thread::yield();  // the log tries again by itself
  acknowledgements.Add(0, 2);
  EXPECT_THAT(Told(MessageKind::kDurable), ElementsAre(2)) << "one message for both: nothing was committed meanwhile";
  EXPECT_TRUE(cluster_->Close().ok());
}

TEST_F(AcknowledgementsTest, SayNoMoreThanTheAcknowledgementWithSync) {
  const MessagePipe pipe(ends_[1]);
  Acknowledgements acknowledgements(&database(), txn::DurabilityMode::kSync, &pipe);
  for (uint64_t n = 1; n <= 3; ++n) acknowledgements.Add(0, n);
  EXPECT_THAT(Told(MessageKind::kAcknowledged), ElementsAre(1, 2, 3));
}

}  // namespace acknowledgements_test
}  // namespace gannet::scenario::crash
