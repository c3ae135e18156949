// IndexService: guards are awaited.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/service.h"
#include "rdma/epoch.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/slab.h"

namespace gannet::index {
namespace index_service_test {

TEST(IndexServiceTest, AwaitLeasesWaitsForThoseThatThereAre) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 26});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  auto node = (*fabric)->Attach(0);
  ASSERT_TRUE(node.ok()) << node.status();
  rdma::SlabAllocator slab(node->get());
  auto epochs = rdma::EpochManager::Create(fabric->get(), node->get(), &slab);
  ASSERT_TRUE(epochs.ok()) << epochs.status();
  IndexService service(node->get(), &slab, epochs->get());
  service.AwaitGuards();
  std::optional<IndexService::Guard> first(std::in_place, &service);
  std::optional<IndexService::Guard> second(std::in_place, &service);
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    service.AwaitGuards();
    ended.store(true);
  });
  SleepForNanos(5'000'000);
  EXPECT_FALSE(ended.load());
  second.reset();
  // It has the context that has just become free, and is not awaited.
  const IndexService::Guard later(&service);
  SleepForNanos(5'000'000);
  EXPECT_FALSE(ended.load());
  first.reset();
  waiter.join();
  EXPECT_TRUE(ended.load());
}

}  // namespace index_service_test
}  // namespace gannet::index
