// Blocks that the clients of a process borrow for the leaves of an index: one stock, whose surplus goes back.
#include "index/shared_leaf/blocks/block_lending.h"

#include <memory>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "index/rolex/rolex.h"
#include "index/rolex/shared_models.h"
#include "index/shared_leaf/blocks/block_stock.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "rdma/forwarding.h"
#include "tests/index/carrying_channel.h"
#include "tests/index/record_helper.h"

namespace gannet::index::shared_leaf {
namespace block_lending_test {

constexpr IndexId kId = 1;

// A node whose connection is what the test says. Only for clients that use a CarryingChannel, which knows none.
class ConnectedNode final : public rdma::ForwardingNode {
 public:
  ConnectedNode() : ForwardingNode(nullptr) {}
  uint64_t ConnectionTo(rdma::NodeId /*peer*/) const override { return connection; }

  uint64_t connection = 1;
};
class PlainChannel final : public CarryingChannel {
 public:
  using CarryingChannel::CarryingChannel;

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    completion->status = Carry(operations);
    return true;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    Carry(call, completion);
    return true;
  }
};

TEST(BlockStock, ForgetsTheBlocksOfAConnectionThatHasEnded) {
  BlockStock stock;
  const FreeBlock blocks[] = {{{0, 64}, 1, 5}, {{0, 128}, 1, 5}};
  stock.Add(5, blocks);
  EXPECT_EQ(stock.unused(5), 2u);
  EXPECT_TRUE(stock.Take(5).has_value());
  EXPECT_EQ(stock.AddDead(5, std::span(blocks).first(1)), 1u);
  EXPECT_FALSE(stock.Take(6).has_value());
  EXPECT_TRUE(stock.TakeSurplus(6, 0, 10).dead.empty());
  EXPECT_EQ(stock.unused(5), 0u);
}

TEST(BlockStock, KeepsWhatIsNoSurplus) {
  BlockStock stock;
  std::vector<FreeBlock> blocks;
  for (uint64_t i = 1; i <= 30; ++i) blocks.push_back({{0, i * 64}, 1});
  stock.Add(0, blocks);
  stock.AddDead(0, std::span(blocks).first(3));
  BlockStock::Surplus surplus = stock.TakeSurplus(0, 12, 10);
  EXPECT_EQ(surplus.unused.size(), 10u);
  EXPECT_EQ(surplus.dead.size(), 3u);
  surplus = stock.TakeSurplus(0, 12, 10);
  EXPECT_EQ(surplus.unused.size(), 8u);
  EXPECT_TRUE(surplus.dead.empty());
  EXPECT_EQ(stock.unused(0), 12u);
}

class BlockLendingTest : public ::testing::Test {
 protected:
  BlockLendingTest() : cluster_({}) {
    RegisterRolexMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateRolex(cluster_.owner().service.get(), kId, KeyKind::kInteger);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = *std::move(index);
    thread_ = std::make_unique<ClientThread>(&cluster_);
  }
  LeafBlocks& lender() { return dynamic_cast<BlockLender&>(*index_).blocks(); }
  std::unique_ptr<BorrowedBlocks> Client(BlockStock* stock) {
    return std::make_unique<BorrowedBlocks>(thread_->channel(), nullptr, 0, kId, absl::Seconds(5), stock);
  }
  FreeBlock Take(BorrowedBlocks* blocks) {
    const StatusOr<FreeBlock> block = thread_->Await(blocks->Take(/*connection=*/0));
    GANNET_CHECK(block.ok(), "%s", block.status().ToString());
    return *block;
  }
  void Return(BorrowedBlocks* blocks, const FreeBlock& block) { thread_->Await(Done(blocks->Return(block))); }
  static coro::Task<bool> Done(coro::Task<void> task) {
    co_await task;
    co_return true;
  }

  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<ClientThread> thread_;
};

TEST_F(BlockLendingTest, ClientsOfAProcessTakeFromOneStock) {
  BlockStock stock;
  std::set<uint64_t> taken;
  {
    const auto first = Client(&stock);
    taken.insert(Take(first.get()).address.bits());
  }
  const size_t lent = lender().counts().lent;
  const auto second = Client(&stock);
  for (size_t i = 1; i < lent - 1; ++i) EXPECT_TRUE(taken.insert(Take(second.get()).address.bits()).second);
  EXPECT_EQ(lender().counts().lent, lent) << "what the first client has borrowed, the second one has used";
}

TEST_F(BlockLendingTest, TheSurplusGoesBack) {
  BlockStock stock;
  const auto blocks = Client(&stock);
  std::vector<FreeBlock> taken;
  for (int i = 0; i < 200; ++i) taken.push_back(Take(blocks.get()));
  const LeafBlocks::Counts before = lender().counts();
  for (const FreeBlock& block : taken) blocks->PutBack(block);
  EXPECT_EQ(lender().counts().lent, before.lent);
  // Blocks that die bring about a call, and the surplus goes with it. (These have not died, which the owner sees.)
  std::vector<FreeBlock> dead;
  for (int i = 0; i < 16; ++i) dead.push_back(Take(blocks.get()));
  for (const FreeBlock& block : dead) Return(blocks.get(), block);
  const LeafBlocks::Counts after = lender().counts();
  EXPECT_LT(after.lent, before.lent);
  EXPECT_EQ(after.free - before.free, before.lent - after.lent);
  EXPECT_GE(stock.unused(0), 16u) << "some are kept";
  // Nobody has a block twice.
  std::set<uint64_t> all;
  for (const FreeBlock& block : dead) all.insert(block.address.bits());
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(all.insert(Take(blocks.get()).address.bits()).second);
}

TEST_F(BlockLendingTest, TheOwnerBelievesOnlyTheLessee) {
  BlockStock stock;
  const auto blocks = Client(&stock);
  const FreeBlock block = Take(blocks.get());
  const LeafBlocks::Counts before = lender().counts();
  lender().GiveBack(0, block);                             // another node
  lender().GiveBack(1, {block.address, block.word + 1});   // another word
  lender().GiveBack(1, {block.address + 64, block.word});  // no block
  lender().GiveBack(1, {{1, block.address.offset()}, block.word});
  EXPECT_EQ(lender().counts().lent, before.lent);
  lender().GiveBack(1, block);
  lender().GiveBack(1, block);
  EXPECT_EQ(lender().counts().lent, before.lent - 1);
  EXPECT_EQ(lender().counts().free, before.free + 1);
}

TEST_F(BlockLendingTest, ABatchOfAnEndedConnectionBorrowsNothingOverTheNextOne) {
  {
    EpochGuard guard(owner_->epoch());
    for (uint64_t key = 1; key <= IntegerEntry::kSlots; ++key) {
      ASSERT_TRUE(index_->Insert(owner_->context(), Key(key), owner_->NewRecord(Key(key)), nullptr).ok());
    }
  }
  PlainChannel channel(thread_->channel());
  ConnectedNode node;
  const auto shared = MakeRolexCache();
  const auto remote = ConnectRolex(&channel, 0, kId, {.shared = shared, .node = &node});
  ASSERT_TRUE(remote.ok());
  const auto batch = (*remote)->NewInsertBatch();
  // Prepares the split of the leaf. Returns whether there was a block for it.
  const auto splits = [&](uint64_t connection) {
    Insertion one{.key = Key(uint64_t{100}), .record = FakeRecord(100)};
    batch->Begin(std::span(&one, 1), connection, nullptr);
    EXPECT_TRUE(thread_->Await(batch->Find()).ok());
    const bool has_block = batch->pending() == 1;
    batch->Abandon();
    return has_block;
  };
  EXPECT_TRUE(splits(1));
  const size_t lent = lender().counts().lent;
  node.connection = 2;
  EXPECT_FALSE(splits(1));
  EXPECT_EQ(lender().counts().lent, lent);

  // The repair after the first connection takes back what was lent over it. What is borrowed over the second one then
  // is nobody else's.
  index_->RepairAfter(/*node=*/1);
  BorrowedBlocks borrowed(&channel, &node, 0, kId, absl::Seconds(5), &shared->blocks());
  const FreeBlock ours = Take(&borrowed);
  for (const FreeBlock& other : lender().Lend(owner_->context(), /*lessee=*/0, 2 * lent)) {
    EXPECT_NE(other.address, ours.address);
  }
}

TEST_F(BlockLendingTest, ABlockOfAnotherConnectionBecomesNoLeaf) {
  LeafChannel leaves(thread_->channel(), nullptr, 0, absl::Seconds(5), 0, nullptr, LeafChannel::As::kClient);
  const rdma::GlobalAddress leaf = index_->Find(Key(uint64_t{1})).witness.word;
  LeafImage image;
  const StatusOr<LeafLook> look = thread_->Await(leaves.Read(leaf, &image));
  ASSERT_TRUE(look.ok() && *look == LeafLook::kWhole);
  const LeafDraft draft(leaf, image, leaves.owner_bits());
  const StatusOr<bool> other = thread_->Await(leaves.Lock(draft, 77));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(*other);
  EXPECT_EQ(LoadWord(cluster_.At(leaf)), image.head.state);
  const StatusOr<bool> locked = thread_->Await(leaves.Lock(draft));
  EXPECT_TRUE(locked.ok() && *locked);
  EXPECT_TRUE(thread_->Await(leaves.GiveBack(draft)).ok());
}

}  // namespace block_lending_test
}  // namespace gannet::index::shared_leaf
