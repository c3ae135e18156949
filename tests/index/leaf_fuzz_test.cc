// A hostile client writes arbitrary words into the leaves of an index of shared leaves, and into what leads to them,
// and sends arbitrary requests to its owner: others get errors or wrong rows, never a crash, a loop without end, or an
// access out of bounds (under AddressSanitizer).
#include <array>
#include <memory>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/claim_boards.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/claim/claim_ranges.h"
#include "tests/index/shared_leaf_world.h"
#include "tests/support/thorough.h"

namespace gannet::index {
namespace leaf_fuzz_test {

constexpr absl::Duration kPatience = absl::Microseconds(200);

coro::Task<StatusOr<size_t>> Call(rdma::Channel* channel, rdma::MethodId method, std::span<const std::byte> request,
                                  std::span<std::byte> response) {
  co_return co_await channel->Call(0, method, request, response);
}

class FuzzWorld : public SharedLeafWorld {
 public:
  FuzzWorld(const SharedLeafCase& of, uint64_t seed) : SharedLeafWorld(of, seed, kPatience) {
    Connect(thread_->channel(), kPatience);
  }

  // Three levels of a tree, or several models.
  uint64_t num_keys() const { return !kind_.learned ? 700 : keys_ == KeyKind::kInteger ? 4000 : 9000; }

  void Load() {
    for (uint64_t n = 0; n < num_keys(); ++n) {
      ASSERT_TRUE(index_->Insert(owner_->context(), KeyOf(n * 10).view(), RecordOf(n * 10), nullptr).ok());
    }
    ASSERT_TRUE(thread_->Await(remote_->Find(KeyOf(10).view())).ok());
    blocks().ForEach([this](rdma::GlobalAddress at) { nodes_.push_back(at); });
  }

  void Damage() {
    const rdma::GlobalAddress node = nodes_[random_.Below(nodes_.size())];
    // Values that make sense somewhere do more harm than random ones.
    const std::array<uint64_t, 7> values = {random_(),
                                            0,
                                            UINT64_MAX,
                                            nodes_[random_.Below(nodes_.size())].bits(),
                                            random_.Below(num_keys() * 10),
                                            random_.Below(num_keys() * 10) * kLineBytes,
                                            LoadWord(cluster_.At(node)) + 1};
    const uint64_t word = random_.OneIn(2) ? random_.Below(8) : random_.Below(blocks().leaf_bytes() / kWordBytes);
    StoreWord(cluster_.At(node) + word * kWordBytes, values[random_.Below(values.size())]);
    if (auto* const rolex = dynamic_cast<rolex::RolexIndex*>(index_.get())) DamageHints(rolex, values);
  }

  void UseAll() {
    const uint64_t n = random_.Below(num_keys() * 10);
    const OwnedKey key = KeyOf(n);
    const OwnedKey present = KeyOf(n / 10 * 10);
    const OwnedKey other = KeyOf(n + 1);
    const OwnedKey to = KeyOf(n + 500);
    index_->Find(key.view());
    // A record that does not hold the key, which the owner would never insert.
    (void)index_->Insert(owner_->context(), key.view(), {0, uint64_t{2} << 20}, nullptr);
    const FindResult found = index_->Find(present.view());
    if (!found.record.is_null()) (void)index_->Remove(owner_->context(), present.view(), found.record);
    ScanResult result;
    (void)index_->Scan({.from = key.view(), .to = to.view(), .reverse = random_.OneIn(2), .limit = 100}, &result);
    (void)index_->CheckStructure();
    (void)index_->statistics();
    (void)thread_->Await(remote_->Find(key.view()));
    (void)thread_->Await(remote_->Insert(other.view(), owner_->NewRecord(other.view())));
    result.Clear();
    (void)thread_->Await(remote_->Scan({.from = key.view(), .to = to.view(), .limit = 100}, &result));
    (void)thread_->Await(remote_->Remove(other.view(), {0, uint64_t{3} << 20}));
    if (random_.OneIn(20)) index_->RepairAfter(1);
  }

  void SendRandomRequests() {
    std::array<std::byte, 4096> response;
    const std::array methods = {shared_leaf::kExchange,  kind_.describe,           kTellBoard,
                                shared_leaf::kSetRanges, shared_leaf::kReadRanges, shared_leaf::kEndClaims};
    for (int round = 0; round < 3000; ++round) {
      std::vector<std::byte> request(random_.Below(80));
      for (std::byte& byte : request) byte = static_cast<std::byte>(random_());
      if (request.size() >= 6) {
        request[0] = std::byte{kId};
        request[1] = std::byte{0};
        if (random_.OneIn(2)) request[4] = static_cast<std::byte>((request.size() - 6) / 16), request[5] = std::byte{0};
      }
      const rdma::MethodId method = methods[random_.Below(methods.size())];
      (void)thread_->Await(Call(thread_->channel(), method, request, response));
    }
    EXPECT_TRUE(index_->CheckStructure().ok());
    EXPECT_TRUE(index_->Insert(owner_->context(), KeyOf(1).view(), RecordOf(1), nullptr).ok());
  }

 private:
  // The hints that clients write: synonym tables and queues.
  void DamageHints(rolex::RolexIndex* rolex, std::span<const uint64_t> values) {
    const std::vector<std::byte*> tables = rolex->synonym_tables();
    std::byte* const table = tables[random_.Below(tables.size())];
    const uint64_t hint =
        random_.OneIn(3) ? 1 + random_.Below(2) : random_.Below(rolex::kSynonymTableBytes / kWordBytes);
    if (hint % 8 != 0) StoreWord(table + hint * kWordBytes, values[random_.Below(values.size())]);
    const rdma::GlobalAddress queue(0, rolex->queue_offset());
    const uint64_t place = random_.OneIn(2) ? 1 + random_.Below(2) : random_.Below(rolex::kQueueBytes / kWordBytes);
    const std::array<uint64_t, 3> entries = {random_(), static_cast<uint64_t>(table - cluster_.At({0, 0})),
                                             LoadWord(cluster_.At(queue) + kWordBytes) + 1};
    if (place % 8 != 0) StoreWord(cluster_.At(queue) + place * kWordBytes, entries[random_.Below(3)]);
    if (random_.OneIn(5)) rolex->TrainNow();
  }

  std::vector<rdma::GlobalAddress> nodes_;
};

class LeafFuzzTest : public ::testing::TestWithParam<std::tuple<SharedLeafCase, uint64_t>> {};

TEST_P(LeafFuzzTest, DamagedLeavesGiveErrorsOrWrongRows) {
  const auto& [of, seed] = GetParam();
  Random seeds(seed);
  const int rounds = (std::get<0>(of)->learned ? 4 : 12) / static_cast<int>(StepOfPlaces(4));  // about as many keys
  for (int round = 0; round < rounds; ++round) {
    FuzzWorld world(of, seeds());
    world.Load();
    if (HasFatalFailure()) return;
    for (int step = 0; step < 50; ++step) {
      world.Damage();
      world.UseAll();
    }
  }
}

TEST_P(LeafFuzzTest, RequestsAreChecked) {
  FuzzWorld(std::get<0>(GetParam()), std::get<1>(GetParam())).SendRandomRequests();
}

INSTANTIATE_TEST_SUITE_P(Cases, LeafFuzzTest,
                         ::testing::Combine(AllSharedLeafCases(), ::testing::Range(uint64_t{1}, uint64_t{5})),
                         [](const auto& test) { return NameOfSeed(test); });

}  // namespace leaf_fuzz_test
}  // namespace gannet::index
