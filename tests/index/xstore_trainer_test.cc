// Trainer: tasks one after the other; and models that several threads train.
#include <atomic>
#include <functional>
#include <memory>

#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/model/trainer.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"
#include "tests/index/training.h"

namespace gannet::index::xstore {
namespace xstore_trainer_test {

class CalledTask : public Trainer::Task {
 public:
  explicit CalledTask(std::function<void()> run) : run_(std::move(run)) {}
  void Run() override { run_(); }

 private:
  std::function<void()> run_;
};

TEST(TrainerTest, TasksRunOneAtATime) {
  Trainer trainer;
  std::atomic<int> running{0};
  std::atomic<int> runs{0};
  const auto run = [&] {
    EXPECT_EQ(running.fetch_add(1), 0);
    YieldThread();
    EXPECT_EQ(running.fetch_sub(1), 1);
    ++runs;
  };
  CalledTask first(run), second(run);
  while (runs.load() < 20) {
    trainer.Schedule(&first);
    trainer.Schedule(&second);
    YieldThread();
  }
  trainer.Cancel(&first);
  const int before = runs.load();
  trainer.Cancel(&second);
  EXPECT_EQ(running.load(), 0);
  EXPECT_LE(runs.load(), before + 2);  // one that ran, and one that waited
}

TEST(TrainerTest, EndsWhileTasksWait) {
  std::atomic<int> runs{0};
  CalledTask task([&] { ++runs; });
  for (int i = 0; i < 50; ++i) {
    Trainer trainer;
    trainer.Schedule(&task);
    if (i % 2 == 0) YieldThread();
  }
  EXPECT_LE(runs.load(), 50);
}

// Sub-models that several threads retrain while leaves split: in the end each key is where the model says.
TEST(TrainerTest, SeveralThreadsKeepAModelUpToDate) {
  constexpr IndexId kId = 3;
  constexpr uint64_t kKeys = 20'000;
  const auto record_of = [](uint64_t key) { return rdma::GlobalAddress(0, 64 * (key + 1)); };
  IndexCluster cluster({});
  RegisterXStoreMethods(cluster.owner().service.get());
  auto index = XStore::Create(cluster.owner().service.get(), kId, {.keys_per_sub_model = 50, .trainers = 4});
  ASSERT_TRUE(index.ok()) << index.status();
  cluster.Serve();
  {
    OwnerThread owner(&cluster);
    ClientThread client(&cluster);
    auto remote = ConnectXStore(client.channel(), 0, kId, {}, {});
    ASSERT_TRUE(remote.ok()) << remote.status();
    const auto insert = [&](uint64_t key) {
      EpochGuard guard(owner.epoch());
      ASSERT_TRUE((*index)->Insert(owner.context(), key, record_of(key), nullptr).ok());
    };
    const auto expect_find = [&](uint64_t key) {
      EpochGuard guard(client.epoch());
      const StatusOr<FindResult> found = client.Await((*remote)->Find(key));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, record_of(key));
    };
    for (uint64_t key = 0; key < kKeys; key += 4) insert(key);
    expect_find(0);
    WaitForTraining(index->get());
    const uint64_t before = (*index)->model_statistics().retrainings;
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (key % 4 != 0) insert(key);
    }
    WaitForTraining(index->get());
    const XStore::ModelStatistics trained = (*index)->model_statistics();
    EXPECT_GT(trained.retrainings, before + 50);
    EXPECT_LE(trained.leaves_per_lookup, 2);
    for (uint64_t key = 0; key < kKeys; key += 7) expect_find(key);
    const ClientStatistics statistics = (*remote)->statistics();
    EXPECT_GE(statistics.one_sided, statistics.lookups / 2);
  }
  cluster.owner().node->Shutdown();
}

TEST(TrainerTest, AnIndexHasOneTrainerAtLeast) {
  IndexCluster cluster({});
  for (const int trainers : {0, kMostXStoreTrainers + 1}) {
    const auto index = XStore::Create(cluster.owner().service.get(), 1, {.trainers = trainers});
    EXPECT_TRUE(absl::IsInvalidArgument(index.status())) << trainers;
  }
}

}  // namespace xstore_trainer_test
}  // namespace gannet::index::xstore
