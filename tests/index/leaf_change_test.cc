// Changes of shared leaves by verbs (index/shared_leaf/change/leaf_change.h) whose outcome the client does not learn.
#include "index/shared_leaf/change/leaf_change.h"

#include <memory>
#include <span>

#include "gtest/gtest.h"
#include "index/rolex/rolex.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "tests/index/carrying_channel.h"
#include "tests/index/record_helper.h"

namespace gannet::index::shared_leaf {
namespace leaf_change_test {

// Carries out all verbs of the first posting of several verbs but the last one, and says that the posting has failed.
class BreakingChannel final : public CarryingChannel {
 public:
  using CarryingChannel::CarryingChannel;

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    const bool breaks = !has_broken_ && operations.size() > 1;
    completion->status = Carry(breaks ? operations.first(operations.size() - 1) : operations);
    if (breaks) completion->status = absl::UnavailableError("no answer");
    has_broken_ |= breaks;
    return true;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    Carry(call, completion);
    return true;
  }

 private:
  bool has_broken_ = false;
};

// The left leaf has the keys of the right one already. If that were unlocked, a stale address would lead to a leaf that
// looks alive.
TEST(LeafChangeTest, ALeafThatMayHaveBeenAbsorbedStaysLockedUntilTheRepair) {
  IndexCluster cluster({});
  RegisterRolexMethods(cluster.owner().service.get());
  cluster.Serve();
  OwnerThread owner(&cluster);
  const auto index = CreateRolex(cluster.owner().service.get(), /*id=*/1, KeyKind::kInteger);
  ASSERT_TRUE(index.ok());
  {
    // Two leaves that have room for each other's keys, and are not merged yet.
    const EpochGuard guard(owner.epoch());
    for (uint64_t key = 1; key <= 24; ++key) {
      ASSERT_TRUE((*index)->Insert(owner.context(), Key(key), FakeRecord(key), nullptr).ok());
    }
    for (uint64_t key = 1; key <= 10; ++key) {
      ASSERT_TRUE((*index)->Remove(owner.context(), Key(key), FakeRecord(key)).ok());
    }
  }
  ClientThread thread(&cluster);
  BreakingChannel channel(thread.channel());
  // No patience: a failed posting is not repeated.
  LeafChannel leaves(&channel, nullptr, /*owner=*/0, absl::Nanoseconds(-1), 0, nullptr, LeafChannel::As::kClient);
  BlockStock stock;
  BorrowedBlocks blocks(&channel, nullptr, /*owner=*/0, /*index=*/1, absl::Seconds(5), &stock);
  LeafChanger changer(&leaves, &blocks);
  LeafCopyOf<IntegerKeys> left{(*index)->Find(Key(uint64_t{0})).witness.word, {}};
  LeafCopyOf<IntegerKeys> right{(*index)->Find(Key(uint64_t{100})).witness.word, {}};
  for (auto* const leaf : {&left, &right}) {
    const StatusOr<LeafLook> look = thread.Await(leaves.Read(leaf->address, &leaf->image));
    ASSERT_TRUE(look.ok() && *look == LeafLook::kWhole);
  }
  ASSERT_EQ(left.image.right(), right.address);

  Change change;
  const StatusOr<bool> absorbed = thread.Await(changer.Absorb(left, right, &change));
  EXPECT_TRUE(absl::IsUnavailable(absorbed.status())) << absorbed.status();
  EXPECT_FALSE(IsLocked(LoadWord(cluster.At(left.address))));
  EXPECT_TRUE(IsLocked(LoadWord(cluster.At(right.address))));
  (*index)->RepairAfter(/*node=*/1);
  EXPECT_TRUE(IsAbsent(LoadWord(cluster.At(right.address))));
  EXPECT_TRUE((*index)->CheckStructure().ok()) << (*index)->CheckStructure();
  for (uint64_t key = 1; key <= 24; ++key) EXPECT_EQ((*index)->Find(Key(key)).record.is_null(), key <= 10) << key;
}

}  // namespace leaf_change_test
}  // namespace gannet::index::shared_leaf
