// A hostile client writes arbitrary words into the nodes of a B-link tree, and arbitrary requests to its owner: others
// get errors or wrong rows, never a crash, a loop without end, or an access out of bounds (under AddressSanitizer).
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/blink/blink_index.h"
#include "index/blink/remote_blink.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr IndexId kId = 1;
constexpr uint64_t kKeys = 700;  // three levels

coro::Task<StatusOr<size_t>> Call(rdma::Channel* channel, rdma::MethodId method, std::span<const std::byte> request,
                                  std::span<std::byte> response) {
  co_return co_await channel->Call(0, method, request, response);
}

class BlinkFuzzTest : public ::testing::TestWithParam<std::tuple<uint64_t, KeyKind>> {
 protected:
  static uint64_t Seed() { return std::get<0>(GetParam()); }
  static KeyKind Kind() { return std::get<1>(GetParam()); }
  static OwnedKey KeyOf(uint64_t n) {
    if (Kind() == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string number = std::to_string(n);
    return OwnedKey(Key(std::string_view(std::string(8 - number.size(), '0') + number + std::string(n % 50, 'x'))));
  }
};

TEST_P(BlinkFuzzTest, DamagedNodesGiveErrorsOrWrongRows) {
  Random random(Seed());
  for (int round = 0; round < 12; ++round) {
    IndexCluster cluster({.bytes_per_node = uint64_t{64} << 20, .seed = random()});
    RegisterBlinkMethods(cluster.owner().service.get());
    cluster.Serve();
    OwnerThread owner(&cluster);
    auto created = CreateBlink(cluster.owner().service.get(), kId, Kind(), {.patience = absl::Microseconds(200)});
    ASSERT_TRUE(created.ok());
    auto* const tree = static_cast<blink::BlinkTree*>(created->get());
    for (uint64_t n = 0; n < kKeys; ++n) {
      const OwnedKey key = KeyOf(n * 10);
      ASSERT_TRUE(tree->Insert(owner.context(), key.view(), owner.NewRecord(key.view()), nullptr).ok());
    }
    ClientThread thread(&cluster);
    auto remote = ConnectBlink(thread.channel(), 0, kId, {.key_kind = Kind(), .patience = absl::Microseconds(200)});
    ASSERT_TRUE(remote.ok());
    ASSERT_TRUE(thread.Await((*remote)->Find(KeyOf(10).view())).ok());

    std::vector<rdma::GlobalAddress> nodes;
    tree->blocks().ForEach([&nodes](rdma::GlobalAddress at) { nodes.push_back(at); });
    for (int step = 0; step < 50; ++step) {
      const rdma::GlobalAddress node = nodes[random.Below(nodes.size())];
      // Values that make sense somewhere do more harm than random ones.
      const std::array<uint64_t, 6> values = {random(),
                                              0,
                                              UINT64_MAX,
                                              nodes[random.Below(nodes.size())].bits(),
                                              random.Below(kKeys * 10) * kLineBytes,
                                              LoadWord(cluster.At(node)) + 1};
      const uint64_t word = random.OneIn(2) ? random.Below(8) : random.Below(tree->blocks().leaf_bytes() / kWordBytes);
      StoreWord(cluster.At(node) + word * kWordBytes, values[random.Below(values.size())]);

      const uint64_t n = random.Below(kKeys * 10);
      const OwnedKey key = KeyOf(n);
      const OwnedKey present = KeyOf(n / 10 * 10);
      const OwnedKey other = KeyOf(n + 1);
      const OwnedKey to = KeyOf(n + 500);
      tree->Find(key.view());
      // A record that does not hold the key, which the owner would never insert.
      (void)tree->Insert(owner.context(), key.view(), {0, uint64_t{2} << 20}, nullptr);
      const FindResult found = tree->Find(present.view());
      if (!found.record.is_null()) (void)tree->Remove(owner.context(), present.view(), found.record);
      ScanResult result;
      (void)tree->Scan({.from = key.view(), .to = to.view(), .reverse = random.OneIn(2), .limit = 100}, &result);
      (void)tree->CheckStructure();
      (void)tree->statistics();
      (void)thread.Await((*remote)->Find(key.view()));
      (void)thread.Await((*remote)->Insert(other.view(), owner.NewRecord(other.view())));
      result.Clear();
      (void)thread.Await((*remote)->Scan({.from = key.view(), .to = to.view(), .limit = 100}, &result));
      (void)thread.Await((*remote)->Remove(other.view(), {0, uint64_t{3} << 20}));
      if (random.OneIn(20)) tree->RepairAfter(1);
    }
  }
}

TEST_P(BlinkFuzzTest, RequestsAreChecked) {
  Random random(Seed());
  IndexCluster cluster({});
  RegisterBlinkMethods(cluster.owner().service.get());
  cluster.Serve();
  OwnerThread owner(&cluster);
  auto created = CreateBlink(cluster.owner().service.get(), kId, Kind());
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
        Call(thread.channel(), random.OneIn(2) ? shared_leaf::kExchange : blink::kDescribe, request, response));
  }
  EXPECT_TRUE((*created)->CheckStructure().ok());
  EXPECT_TRUE((*created)->Insert(owner.context(), KeyOf(1).view(), {0, 1 << 20}, nullptr).ok());
}

INSTANTIATE_TEST_SUITE_P(Seeds, BlinkFuzzTest,
                         ::testing::Combine(::testing::Range(uint64_t{1}, uint64_t{5}),
                                            ::testing::Values(KeyKind::kInteger, KeyKind::kBytes)));

}  // namespace
}  // namespace gannet::index
