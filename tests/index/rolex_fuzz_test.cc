// A hostile client writes arbitrary words into the leaves and synonym tables of a ROLEX index, and arbitrary requests
// to its owner: others get errors or wrong rows, never a crash, a loop without end, or an access out of bounds (under
// AddressSanitizer).
#include <array>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/remote/block_lending.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr IndexId kId = 1;
constexpr uint64_t kKeys = 4000;  // several models

coro::Task<StatusOr<size_t>> Call(rdma::Channel* channel, rdma::MethodId method, std::span<const std::byte> request,
                                  std::span<std::byte> response) {
  co_return co_await channel->Call(0, method, request, response);
}

class RolexFuzzTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RolexFuzzTest, DamagedLeavesGiveErrorsOrWrongRows) {
  Random random(GetParam());
  for (int round = 0; round < 4; ++round) {
    IndexCluster cluster({.bytes_per_node = uint64_t{128} << 20, .seed = random()});
    RegisterRolexMethods(cluster.owner().service.get());
    cluster.Serve();
    OwnerThread owner(&cluster);
    auto created =
        CreateRolex(cluster.owner().service.get(), kId, KeyKind::kInteger, {.patience = absl::Microseconds(200)});
    ASSERT_TRUE(created.ok());
    auto* const tree = static_cast<rolex::RolexIndex*>(created->get());
    for (uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_TRUE(tree->Insert(owner.context(), Key(key * 10), {0, (1 << 20) + key * 64}, nullptr).ok());
    }
    ClientThread thread(&cluster);
    auto remote = ConnectRolex(thread.channel(), 0, kId, {.patience = absl::Microseconds(200)});
    ASSERT_TRUE(remote.ok());
    ASSERT_TRUE(thread.Await((*remote)->Find(Key(uint64_t{10}))).ok());

    std::vector<rdma::GlobalAddress> nodes;
    tree->blocks().ForEach([&nodes](rdma::GlobalAddress at) { nodes.push_back(at); });
    for (int step = 0; step < 50; ++step) {
      const rdma::GlobalAddress node = nodes[random.Below(nodes.size())];
      // Values that make sense somewhere do more harm than random ones.
      const std::array<uint64_t, 6> values = {random(),
                                              0,
                                              UINT64_MAX,
                                              nodes[random.Below(nodes.size())].bits(),
                                              random.Below(kKeys * 10),
                                              LoadWord(cluster.At(node)) + 1};
      const uint64_t word = random.OneIn(2) ? random.Below(8) : random.Below(remote::kLeafBytes / kWordBytes);
      StoreWord(cluster.At(node) + word * kWordBytes, values[random.Below(values.size())]);

      // The hints that clients write, too: synonym tables and queues.
      const std::vector<const rolex::OwnModel*> models = tree->directory().All();
      std::byte* const table = models[random.Below(models.size())]->synonyms;
      const uint64_t hint =
          random.OneIn(3) ? 1 + random.Below(2) : random.Below(rolex::kSynonymTableBytes / kWordBytes);
      if (hint % 8 != 0) StoreWord(table + hint * kWordBytes, values[random.Below(values.size())]);
      const rdma::GlobalAddress queue(0, tree->queue_offset());
      const uint64_t place = random.OneIn(2) ? 1 + random.Below(2) : random.Below(rolex::kQueueBytes / kWordBytes);
      const std::array<uint64_t, 3> entries = {random(), static_cast<uint64_t>(table - cluster.At({0, 0})),
                                               LoadWord(cluster.At(queue) + kWordBytes) + 1};
      if (place % 8 != 0) StoreWord(cluster.At(queue) + place * kWordBytes, entries[random.Below(3)]);
      if (random.OneIn(5)) tree->TrainNow();

      const uint64_t key = random.Below(kKeys * 10);
      tree->Find(Key(key));
      (void)tree->Insert(owner.context(), Key(key), {0, uint64_t{2} << 20}, nullptr);
      const FindResult found = tree->Find(Key(key / 10 * 10));
      if (!found.record.is_null()) (void)tree->Remove(owner.context(), Key(key / 10 * 10), found.record);
      ScanResult result;
      (void)tree->Scan({.from = Key(key), .to = Key(key + 500), .reverse = random.OneIn(2), .limit = 100}, &result);
      (void)tree->CheckStructure();
      (void)tree->statistics();
      (void)thread.Await((*remote)->Find(Key(key)));
      (void)thread.Await((*remote)->Insert(Key(key + 1), {0, uint64_t{3} << 20}));
      result.Clear();
      (void)thread.Await((*remote)->Scan({.from = Key(key), .to = Key(key + 500), .limit = 100}, &result));
      (void)thread.Await((*remote)->Remove(Key(key + 1), {0, uint64_t{3} << 20}));
      if (random.OneIn(20)) tree->RepairAfter(1);
    }
  }
}

TEST_P(RolexFuzzTest, RequestsAreChecked) {
  Random random(GetParam());
  IndexCluster cluster({});
  RegisterRolexMethods(cluster.owner().service.get());
  cluster.Serve();
  OwnerThread owner(&cluster);
  auto created = CreateRolex(cluster.owner().service.get(), kId, KeyKind::kInteger);
  ASSERT_TRUE(created.ok());
  ClientThread thread(&cluster);
  std::array<std::byte, 4096> response;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> request(random.Below(80));
    for (std::byte& byte : request) byte = static_cast<std::byte>(random());
    if (request.size() >= 6) {
      request[0] = std::byte{kId};
      request[1] = std::byte{0};
      if (random.OneIn(2)) request[4] = static_cast<std::byte>((request.size() - 6) / 16), request[5] = std::byte{0};
    }
    (void)thread.Await(
        Call(thread.channel(), random.OneIn(2) ? remote::kExchange : rolex::kDescribe, request, response));
  }
  EXPECT_TRUE((*created)->CheckStructure().ok());
  EXPECT_TRUE((*created)->Insert(owner.context(), Key(uint64_t{1}), {0, 1 << 20}, nullptr).ok());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RolexFuzzTest, ::testing::Range(uint64_t{1}, uint64_t{5}));

}  // namespace
}  // namespace gannet::index
