#include "rdma/slab.h"

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/base/cache_line.h"
#include "rdma/base/random.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {
namespace {

class SlabTest : public ::testing::Test {
 protected:
  explicit SlabTest(uint64_t bytes = 16 << 20)
      : fabric_(ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = bytes}).value()),
        node_(fabric_->Attach(0).value()),
        allocator_(std::make_unique<SlabAllocator>(node_.get())) {}

  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<SlabAllocator> allocator_;
};

TEST(SlabClasses, EveryObjectFitsItsBlockAndWastesLittle) {
  for (size_t bytes = 1; bytes <= kMaxObjectBytes; ++bytes) {
    const size_t block = SlabAllocator::BlockBytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_EQ(block % kLineBytes, 0u);
    if (bytes <= 1024) {
      ASSERT_LT(block - bytes, kLineBytes) << bytes;
    } else {
      ASSERT_LE(block, bytes + bytes / 8 + kLineBytes) << bytes;
    }
    ASSERT_EQ(SlabAllocator::BlockBytes(block), block);
  }
}

TEST_F(SlabTest, BlocksAreAlignedDistinctAndZeroAtFirst) {
  SlabCache cache(allocator_.get());
  Random random(1);
  std::set<std::pair<std::byte*, std::byte*>> taken;  // [begin, end)
  for (int i = 0; i < 2000; ++i) {
    const size_t bytes = 1 + random.Below(4000);
    std::byte* block = cache.Allocate(bytes).value();
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % kLineBytes, 0u);
    for (size_t b = 0; b < bytes; ++b) ASSERT_EQ(block[b], std::byte{0});
    std::memset(block, 0xff, bytes);  // a later overlap would show as not zero
    taken.emplace(block, block + SlabAllocator::BlockBytes(bytes));
  }
  std::byte* end = nullptr;
  for (const auto& [from, to] : taken) {
    ASSERT_GE(from, end);
    end = to;
  }
}

TEST_F(SlabTest, AFreedBlockComesBackInItsClassWithItsContents) {
  SlabCache cache(allocator_.get());
  std::byte* block = cache.Allocate(100).value();
  StoreWord(block, 42);
  cache.Free(block, 100);
  EXPECT_NE(cache.Allocate(200).value(), block);
  EXPECT_EQ(cache.Allocate(128).value(), block);
  EXPECT_EQ(LoadWord(block), 42u);
}

TEST_F(SlabTest, BlocksPassFromCacheToCache) {
  std::set<std::byte*> freed;
  {
    SlabCache cache(allocator_.get());
    std::vector<std::byte*> blocks;
    for (int i = 0; i < 5120; ++i) blocks.push_back(cache.Allocate(64).value());  // whole batches of 512
    for (std::byte* block : blocks) cache.Free(block, 64), freed.insert(block);
  }
  const uint64_t carved = allocator_->statistics().carved_bytes;
  SlabCache other(allocator_.get());
  for (size_t i = 0; i < freed.size(); ++i) ASSERT_TRUE(freed.contains(other.Allocate(64).value()));
  EXPECT_EQ(allocator_->statistics().carved_bytes, carved);
}

TEST_F(SlabTest, StatisticsAddUp) {
  SlabCache cache(allocator_.get()), other(allocator_.get());
  Random random(2);
  std::vector<std::pair<std::byte*, size_t>> held;
  uint64_t held_bytes = 0;
  for (uint64_t i = 0; i < 40'000; ++i) {
    SlabCache& either = random.OneIn(3) ? other : cache;
    // In waves of thousands, so that whole batches come and go.
    if (held.empty() || random.Below(100) < (i / 5000 % 2 == 0 ? 80u : 20u)) {
      const size_t bytes = 1 + random.Below(600);
      held.emplace_back(either.Allocate(bytes).value(), bytes);
      held_bytes += SlabAllocator::BlockBytes(bytes);
    } else {
      std::swap(held[random.Below(held.size())], held.back());
      either.Free(held.back().first, held.back().second);
      held_bytes -= SlabAllocator::BlockBytes(held.back().second);
      held.pop_back();
    }
    const SlabStatistics now = allocator_->statistics();
    ASSERT_EQ(now.carved_bytes - now.free_bytes, held_bytes);
    ASSERT_LE(now.carved_bytes, now.capacity_bytes);
  }
}

TEST_F(SlabTest, ThreadsShareOneHeapWithoutSharingBlocks) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      SlabCache cache(allocator_.get());
      Random random(t);
      std::vector<std::byte*> held;
      for (int i = 0; i < 20'000; ++i) {
        if (held.size() < 1000 && random.OneIn(2)) {
          held.push_back(cache.Allocate(192).value());
          StoreWord(held.back() + 8, t + 1);  // plain ownership: TSan would see two owners
        } else if (!held.empty()) {
          ASSERT_EQ(LoadWord(held.back() + 8), static_cast<uint64_t>(t + 1));
          cache.Free(held.back(), 192);
          held.pop_back();
        }
      }
      for (std::byte* block : held) cache.Free(block, 192);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const SlabStatistics end = allocator_->statistics();
  EXPECT_EQ(end.free_bytes, end.carved_bytes);
}

TEST_F(SlabTest, PermanentBlocksLieApartFromTheRest) {
  SlabCache cache(allocator_.get());
  std::byte* first = allocator_->AllocatePermanent(100).value();
  std::byte* large = allocator_->AllocatePermanent(1'000'000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % kLineBytes, 0u);
  EXPECT_GE(large, first + 100);
  EXPECT_GE(cache.AllocateReadOnly(64).value(), large + 1'000'000);
}

TEST_F(SlabTest, ABlockIsOfThePartThatWasAskedForAndComesBackToIt) {
  const std::byte* const middle = node_->memory().data() + node_->writable_offset();
  SlabCache cache(allocator_.get()), other(allocator_.get());
  std::set<std::byte*> written, read;
  for (int i = 0; i < 2000; ++i) {
    written.insert(cache.Allocate(192).value());
    read.insert(cache.AllocateReadOnly(192).value());
  }
  EXPECT_GE(*written.begin(), middle);
  EXPECT_LT(*read.rbegin(), middle);
  for (std::byte* block : written) other.Free(block, 192);
  for (std::byte* block : read) other.Free(block, 192);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(written.contains(other.Allocate(192).value()));
    ASSERT_TRUE(read.contains(other.AllocateReadOnly(192).value()));
  }
  const SlabStatistics statistics = allocator_->statistics();
  EXPECT_EQ(statistics.read_only_capacity_bytes + kReadBeyondBytes, node_->writable_offset() - node_->heap_offset());
  EXPECT_GE(statistics.read_only_carved_bytes, 2000u * 192);
  EXPECT_LT(statistics.read_only_carved_bytes, statistics.carved_bytes);
}

class SmallSlabTest : public SlabTest {
 protected:
  SmallSlabTest() : SlabTest(256 * 1024) {}
};

TEST_F(SmallSlabTest, AFullHeapIsAnErrorThatNamesItsSizeAndCanBeLeftAgain) {
  SlabCache cache(allocator_.get());
  std::vector<std::byte*> blocks;
  StatusOr<std::byte*> block = cache.Allocate(1000);
  for (; block.ok(); block = cache.Allocate(1000)) blocks.push_back(*block);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kResourceExhausted);
  const SlabStatistics full = allocator_->statistics();
  const uint64_t writable = full.capacity_bytes - full.read_only_capacity_bytes;
  EXPECT_NE(block.status().message().find(std::to_string(writable)), absl::string_view::npos) << block.status();
  EXPECT_GT(blocks.size() * 1024 + 1024, writable);  // the last block that fits was given
  cache.Free(blocks.back(), 1000);
  EXPECT_EQ(cache.Allocate(1000).value(), blocks.back());
  // The other part is as it was.
  const Status large = allocator_->AllocatePermanent(full.read_only_capacity_bytes + 1).status();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(large.message().find("read-only"), absl::string_view::npos) << large;
  EXPECT_TRUE(cache.AllocateReadOnly(1000).ok());
}

using SlabDeathTest = SlabTest;

TEST_F(SlabDeathTest, ImpossibleSizesAndForeignBlocksStopTheProgram) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  SlabCache cache(allocator_.get());
  std::byte elsewhere[64];
  EXPECT_DEATH((void)cache.Allocate(0), "an object of 0 bytes");
  EXPECT_DEATH((void)cache.Allocate(kMaxObjectBytes + 1), "an object of 131073 bytes");
  EXPECT_DEATH(cache.Free(elsewhere, 64), "freed block");
}

}  // namespace
}  // namespace gannet::rdma
