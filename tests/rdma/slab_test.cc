#include "rdma/slab.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/versioned.h"

namespace gannet::rdma {
namespace slab_test {

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
    std::memset(block, 0xff, bytes);  // so that a later overlap is not zero
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
    // Blocks come and go in waves of thousands, so that whole batches move.
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
  std::byte* first = allocator_->AllocateExtent(100).value();
  std::byte* large = allocator_->AllocateExtent(1'000'000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % kLineBytes, 0u);
  EXPECT_GE(large, first + 100);
  EXPECT_GE(cache.AllocateReadOnly(64).value(), large + 1'000'000);
}

TEST_F(SlabTest, AFreedExtentIsUsedAgain) {
  constexpr size_t kBytes = 1'000'000;
  std::byte* const first = allocator_->AllocateExtent(kBytes).value();
  std::byte* const second = allocator_->AllocateExtent(kBytes).value();
  std::byte* const third = allocator_->AllocateExtent(kBytes).value();
  const uint64_t carved = allocator_->statistics().carved_bytes;
  std::fill_n(first, kBytes, std::byte{0xab});
  std::fill_n(second, kBytes, std::byte{0xcd});
  allocator_->FreeExtent(first, kBytes);
  EXPECT_EQ(allocator_->statistics().free_bytes, RoundUp(kBytes, kLineBytes));
  allocator_->FreeExtent(second, kBytes);
  // Together they have room for one that neither had room for, and it is zero as fresh memory is.
  std::byte* const joined = allocator_->AllocateExtent(kBytes + kBytes / 2).value();
  EXPECT_EQ(joined, first);
  EXPECT_TRUE(std::all_of(joined, joined + kBytes + kBytes / 2, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_GT(allocator_->AllocateExtent(kBytes).value(), third);
  EXPECT_EQ(allocator_->AllocateExtent(kBytes / 4).value(), joined + RoundUp(kBytes + kBytes / 2, kLineBytes));
  EXPECT_EQ(allocator_->statistics().carved_bytes, carved + RoundUp(kBytes, kLineBytes));
}

// A full part has blocks of every class in what was an extent.
TEST_F(SlabTest, BlocksComeFromAFreedExtentAtLast) {
  const SlabStatistics all = allocator_->statistics();
  const size_t bytes = all.read_only_capacity_bytes - all.read_only_carved_bytes;
  std::byte* const extent = allocator_->AllocateExtent(bytes).value();
  SlabCache cache(allocator_.get());
  EXPECT_FALSE(cache.AllocateReadOnly(64).ok());
  std::fill_n(extent, bytes, std::byte{0xab});
  allocator_->FreeExtent(extent, bytes);
  size_t taken = 0;
  for (const size_t each : {size_t{64}, size_t{4096}, kMaxObjectBytes}) {
    for (int i = 0; i < 3; ++i, taken += SlabAllocator::BlockBytes(each)) {
      const auto block = cache.AllocateReadOnly(each);
      ASSERT_TRUE(block.ok()) << block.status();
      EXPECT_TRUE(*block >= extent && *block + each <= extent + bytes);
      EXPECT_EQ((*block)[0], std::byte{0});
    }
  }
  while (cache.AllocateReadOnly(64).ok()) taken += 64;
  EXPECT_LE(taken, bytes);
  EXPECT_GT(taken, bytes - (size_t{1} << 20));
}

// One part may take everything up to the limit, and the error tells the limit.
TEST_F(SlabTest, TheLimitIsOfBothPartsTogether) {
  constexpr uint64_t kMost = uint64_t{3} << 20;
  for (const uint64_t share : {uint64_t{0}, kMost / 3, kMost}) {
    SlabAllocator allocator(node_.get(), kMost);
    EXPECT_EQ(allocator.statistics().capacity_bytes, kMost);
    SlabCache cache(&allocator);
    if (share > 0) {
      ASSERT_TRUE(allocator.AllocateExtent(share).ok());
    }
    uint64_t written = 0;
    StatusOr<std::byte*> block = cache.Allocate(64);
    for (; block.ok(); block = cache.Allocate(64)) written += 64;
    EXPECT_EQ(written, kMost - share);
    EXPECT_TRUE(absl::IsResourceExhausted(block.status()));
    EXPECT_NE(block.status().message().find("3145728 of 3145728 bytes are taken"), std::string::npos) << block.status();
  }
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

// A record as its owners write it. `mark`: the content of its data words while it is live.
struct Made {
  std::byte* at = nullptr;
  size_t lines = 0;
  uint64_t state = 0;
  uint64_t mark = 0;

  void Install() {
    const uint64_t next = ((state & kVersionMask) + 1) & kVersionMask;
    StoreWord(at, state | kLockBit);
    BeginWrite(at, lines);
    for (size_t i = 0; i < lines; ++i) StoreWord(at + i * kLineBytes + kWordBytes, mark);
    EndWrite(at, lines, next);
    state = next;
  }
  // True if no one else wrote into it.
  bool IsWhole() const {
    if (LoadWord(at) != state || !IsConsistentImage(at, lines)) return false;
    for (size_t i = 0; i < lines; ++i) {
      if (LoadWord(at + i * kLineBytes + kWordBytes) != mark) return false;
    }
    return true;
  }
  void MarkAbsent() {
    BeginWrite(at, lines);
    state = (state + 1) | kNotAState;
    EndWrite(at, lines, state);
  }
};

StatusOr<Made> Make(SlabCache& cache, size_t lines, uint64_t mark) {
  StatusOr<std::byte*> block = cache.Allocate(lines * kLineBytes);
  if (!block.ok()) return block.status();
  Made made{.at = *block, .lines = lines, .state = LoadWord(*block), .mark = mark};
  made.Install();
  return made;
}

void Unmake(SlabCache& cache, Made& made) {
  made.MarkAbsent();
  cache.Free(made.at, made.lines * kLineBytes);
}

// Bytes of [begin, begin + bytes) that take memory of the machine.
size_t ResidentBytes(const std::byte* begin, size_t bytes) {
  const auto page = static_cast<size_t>(getpagesize());
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (mincore(const_cast<std::byte*>(begin), bytes, pages.data()) != 0) return 0;
  return page * static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char is) { return (is & 1) != 0; }));
}

class LargeSlabTest : public SlabTest {
 protected:
  static constexpr size_t kBytes = size_t{128} << 20;
  LargeSlabTest() : SlabTest(kBytes) {}

  // Resident bytes among the first `bytes` of the writable part. Fresh memory behind them becomes resident before it is
  // used, so it is not counted.
  size_t resident(size_t bytes) { return ResidentBytes(node_->memory().data() + node_->writable_offset(), bytes); }
};

TEST_F(LargeSlabTest, FreeMemoryIsGivenBack) {
  constexpr size_t kLines = 16;
  constexpr size_t kRecords = 40'000;
  constexpr size_t kAll = kRecords * kLines * kLineBytes;
  SlabCache cache(allocator_.get());
  std::vector<Made> made;
  for (uint64_t i = 0; i < kRecords; ++i) made.push_back(Make(cache, kLines, i).value());
  EXPECT_EQ(allocator_->Trim(true), 0u);
  const size_t full = resident(kAll);
  EXPECT_GE(full, kAll);
  std::vector<Made> kept;
  for (uint64_t i = 0; i < kRecords; ++i) {
    if (i % 10'000 == 0) {
      kept.push_back(made[i]);
    } else {
      Unmake(cache, made[i]);
    }
  }
  EXPECT_EQ(allocator_->Trim(false), 0u);  // other nodes may read it
  EXPECT_EQ(resident(kAll), full);
  const SlabStatistics before = allocator_->statistics();
  const uint64_t trimmed = allocator_->Trim(true);
  EXPECT_GT(trimmed, uint64_t{20} << 20);
  EXPECT_LE(resident(kAll), full - trimmed);
  EXPECT_EQ(allocator_->Trim(true), 0u);
  const SlabStatistics after = allocator_->statistics();
  EXPECT_EQ(after.free_bytes, before.free_bytes);
  EXPECT_EQ(after.carved_bytes, before.carved_bytes);
  EXPECT_EQ(after.trimmed_bytes, trimmed);
  for (const Made& record : kept) EXPECT_TRUE(record.IsWhole());
  // It is carved again before fresh memory.
  for (uint64_t i = 0; i + 1000 < kRecords; ++i) made[i] = Make(cache, kLines, ~i).value();
  EXPECT_EQ(allocator_->statistics().carved_bytes, after.carved_bytes);
  for (const Made& record : kept) EXPECT_TRUE(record.IsWhole());
}

// Under a limit, memory that the writable part took and that is free now is there for the other part, and for itself.
TEST_F(LargeSlabTest, FreeMemoryServesTheOtherPart) {
  constexpr uint64_t kMost = uint64_t{40} << 20;
  constexpr size_t kBlock = 1024;
  SlabAllocator allocator(node_.get(), kMost);
  SlabCache cache(&allocator);
  const auto fill = [&](std::vector<Made>* made) {
    StatusOr<Made> next = Make(cache, kBlock / kLineBytes, made->size());
    for (; next.ok(); next = Make(cache, kBlock / kLineBytes, made->size())) made->push_back(*next);
    EXPECT_TRUE(absl::IsResourceExhausted(next.status())) << next.status();
  };
  std::vector<Made> made;
  fill(&made);
  EXPECT_EQ(made.size(), kMost / kBlock);
  EXPECT_TRUE(absl::IsResourceExhausted(allocator.AllocateExtent(kBlock).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(cache.AllocateReadOnly(kBlock).status()));
  for (Made& each : made) Unmake(cache, each);
  made.clear();
  uint64_t others = 0;
  for (; others < uint64_t{10} << 20; others += kBlock) ASSERT_TRUE(cache.AllocateReadOnly(kBlock).ok()) << others;
  const StatusOr<std::byte*> extent = allocator.AllocateExtent(size_t{10} << 20);
  ASSERT_TRUE(extent.ok()) << extent.status();
  EXPECT_TRUE(std::all_of(*extent, *extent + (size_t{10} << 20), [](std::byte b) { return b == std::byte{0}; }));
  others += uint64_t{10} << 20;
  // The limit stays that of both parts together.
  fill(&made);
  const uint64_t own = made.size() * kBlock;
  EXPECT_LE(own + others, kMost);
  EXPECT_GE(own + others, kMost - (uint64_t{1} << 20));
  for (const Made& each : made) EXPECT_TRUE(each.IsWhole());
}

TEST_F(LargeSlabTest, TrimmingIsWorthHalfOfTheMemory) {
  SlabCache cache(allocator_.get());
  std::vector<Made> made;
  for (uint64_t i = 0; i < 80'000; ++i) made.push_back(Make(cache, 16, i).value());  // 80 MB
  size_t freed = 0;
  for (; freed < 35'000; ++freed) Unmake(cache, made[freed]);
  EXPECT_EQ(allocator_->TrimIfWorth(true), 0u);
  for (; freed < 45'000; ++freed) Unmake(cache, made[freed]);
  EXPECT_EQ(allocator_->TrimIfWorth(false), 0u);
  EXPECT_GE(allocator_->TrimIfWorth(true), uint64_t{40} << 20);
  EXPECT_EQ(allocator_->TrimIfWorth(true), 0u);
  // What is left is small: it is worth less than kWorthTrimming.
  for (; freed < made.size() - 10'000; ++freed) Unmake(cache, made[freed]);
  EXPECT_EQ(allocator_->TrimIfWorth(true), 0u);
  for (; freed < made.size(); ++freed) Unmake(cache, made[freed]);
  EXPECT_GT(allocator_->TrimIfWorth(true), uint64_t{30} << 20);
}

// Promise (b), with memory that was given back in between.
TEST_F(LargeSlabTest, VersionsGoOnInMemoryThatWasGivenBack) {
  const std::byte* const begin = node_->memory().data() + node_->writable_offset();
  std::vector<uint64_t> newest((node_->memory().size() - node_->writable_offset()) / kLineBytes);
  SlabCache cache(allocator_.get());
  Random random(7);
  uint64_t trimmed = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<Made> live;
    for (int i = 0; i < 10'000; ++i) {
      const size_t lines = 1 + random.Below(20);
      live.push_back(Make(cache, lines, random()).value());
      const Made& made = live.back();
      const auto first = static_cast<size_t>(made.at - begin) / kLineBytes;
      for (size_t at = 0; at < lines; ++at) ASSERT_GT(made.state, newest[first + at]);
      for (size_t at = 1; at < lines; ++at) ASSERT_NE(LoadWord(made.at + at * kLineBytes) & kNotAState, 0u);
    }
    for (Made& made : live) {
      ASSERT_TRUE(made.IsWhole());
      for (uint64_t changes = random.Below(4); changes > 0; --changes) made.Install();
      Unmake(cache, made);
      const auto first = static_cast<size_t>(made.at - begin) / kLineBytes;
      for (size_t at = 0; at < made.lines; ++at) {
        newest[first + at] = LoadWord(made.at + at * kLineBytes) & kVersionMask;
      }
    }
    trimmed += allocator_->Trim(true);
  }
  EXPECT_GT(trimmed, uint64_t{8} << 20);
}

TEST_F(LargeSlabTest, AFreedExtentTakesNoMemory) {
  constexpr size_t kExtent = size_t{20} << 20;
  std::byte* const extent = allocator_->AllocateExtent(kExtent).value();
  std::fill_n(extent, kExtent, std::byte{0xab});
  const auto page = static_cast<size_t>(getpagesize());
  const std::byte* const inside = extent + kExtent / 4 + (page - reinterpret_cast<uintptr_t>(extent) % page) % page;
  EXPECT_EQ(ResidentBytes(inside, kExtent / 2), kExtent / 2);
  allocator_->FreeExtent(extent, kExtent);
  EXPECT_EQ(ResidentBytes(inside, kExtent / 2), 0u);
  EXPECT_EQ(allocator_->AllocateExtent(kExtent).value(), extent);
  EXPECT_TRUE(std::all_of(extent, extent + kExtent, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(SlabTest, MemoryOfOneSizeServesAnyOther) {
  const SlabStatistics at_first = allocator_->statistics();
  const uint64_t writable = at_first.capacity_bytes - at_first.read_only_capacity_bytes;
  SlabCache cache(allocator_.get()), idle(allocator_.get());
  for (const size_t lines : {1, 64, 3, 2048, 17, 2}) {
    SlabCache& either = lines == 3 ? idle : cache;  // `idle` keeps some of them, and is not used again
    std::vector<Made> all;
    while (true) {
      StatusOr<Made> made = Make(either, lines, lines);
      if (!made.ok()) break;
      all.push_back(*made);
    }
    EXPECT_GT(all.size() * SlabAllocator::BlockBytes(lines * kLineBytes), writable - writable / 50) << lines;
    for (Made& made : all) Unmake(either, made);
  }
  const SlabStatistics end = allocator_->statistics();
  EXPECT_EQ(end.free_bytes, end.carved_bytes);
}

TEST_F(SlabTest, TheReadOnlyPartStaysTypeStable) {
  SlabCache cache(allocator_.get());
  std::vector<std::byte*> all;
  for (auto block = cache.AllocateReadOnly(64); block.ok(); block = cache.AllocateReadOnly(64)) all.push_back(*block);
  for (std::byte* block : all) cache.Free(block, 64);
  EXPECT_EQ(cache.AllocateReadOnly(128).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cache.AllocateReadOnly(64).ok());
}

// The sizes in use change over time, with 1 MiB live. The cache alone may keep 5 MiB: 64 KiB of each size.
TEST_F(SlabTest, ALoadThatShiftsThroughTheSizesTakesBoundedMemory) {
  constexpr size_t kLive = 1 << 20;
  constexpr int kPhases = 120;
  SlabCache cache(allocator_.get());
  Random random(5);
  std::vector<Made> live;
  size_t live_bytes = 0;
  const uint64_t before = allocator_->statistics().carved_bytes;
  for (int phase = 0; phase < kPhases; ++phase) {
    const size_t lines = phase % 3 == 0 ? 1 + random.Below(8) : 1 + random.Below(200);
    for (size_t turned_over = 0; turned_over < 2 * kLive;) {
      StatusOr<Made> made = Make(cache, lines, random());
      ASSERT_TRUE(made.ok()) << "phase " << phase << ": " << made.status();
      live.push_back(*made);
      live_bytes += lines * kLineBytes;
      turned_over += lines * kLineBytes;
      while (live_bytes > kLive) {
        std::swap(live[random.Below(live.size())], live.back());
        ASSERT_TRUE(live.back().IsWhole());
        live_bytes -= live.back().lines * kLineBytes;
        Unmake(cache, live.back());
        live.pop_back();
      }
    }
  }
  EXPECT_LT(allocator_->statistics().carved_bytes - before, 10 * kLive);
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
  // The other part has not changed.
  const Status large = allocator_->AllocateExtent(full.read_only_capacity_bytes + 1).status();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(large.message().find("read-only"), absl::string_view::npos) << large;
  EXPECT_TRUE(cache.AllocateReadOnly(1000).ok());
}

// A stale address may lead, after any cutting of memory, only to the state word of a live record, to a locked one, or
// to a marked one. No line ever has the same first word twice.
TEST_F(SmallSlabTest, FirstWordsOfLinesNeverComeBackAcrossSizes) {
  const std::byte* const begin = node_->memory().data() + node_->writable_offset();
  const size_t lines_of_heap = (node_->memory().size() - node_->writable_offset()) / kLineBytes;
  SlabCache cache(allocator_.get());
  Random random(6);
  std::vector<Made> live;
  std::vector<uint64_t> newest(lines_of_heap);  // last version of each line
  const auto line_of = [&](const Made& made) { return static_cast<size_t>(made.at - begin) / kLineBytes; };
  int joined = 0;
  for (int i = 0; i < 20'000; ++i) {
    const size_t lines = random.OneIn(3) ? 1 + random.Below(64) : 1 + random.Below(4);
    const StatusOr<Made> made = Make(cache, lines, random());
    if (!made.ok()) {
      ++joined;
      // Blocks are freed in waves, and by address, so that there are neighbours.
      const size_t from = random.Below(live.size());
      const size_t count = std::min(live.size() - from, 1 + live.size() / 3);
      for (size_t n = from; n < from + count; ++n) {
        ASSERT_TRUE(live[n].IsWhole());
        Unmake(cache, live[n]);
        for (size_t at = 0; at < live[n].lines; ++at) {
          const uint64_t word = LoadWord(live[n].at + at * kLineBytes);
          ASSERT_NE(word & kNotAState, 0u);
          newest[line_of(live[n]) + at] = word & kVersionMask;
        }
      }
      live.erase(live.begin() + static_cast<ptrdiff_t>(from), live.begin() + static_cast<ptrdiff_t>(from + count));
      continue;
    }
    for (size_t at = 0; at < lines; ++at) {
      ASSERT_GT(made->state, newest[line_of(*made) + at]) << "line " << at << " of " << lines;
    }
    for (size_t at = 1; at < lines; ++at) ASSERT_NE(LoadWord(made->at + at * kLineBytes) & kNotAState, 0u);
    live.push_back(*made);
  }
  EXPECT_GT(joined, 20);
}

// Threads allocate, free and idle; a thread that finds the heap full empties the others' caches.
TEST_F(SmallSlabTest, ThreadsCutEachOthersMemoryAnew) {
  constexpr int kThreads = 4, kSteps = 8000;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &failures] {
      SlabCache cache(allocator_.get());
      Random random(t);
      std::vector<Made> held;
      for (int i = 0; i < kSteps; ++i) {
        const size_t lines = i / 500 % 2 == 0 ? 1 + random.Below(2) : 1 + random.Below(40);
        if (random.OneIn(2)) {
          const StatusOr<Made> made = Make(cache, lines, random());
          if (made.ok()) {
            held.push_back(*made);
            continue;
          }
          ++failures;
        }
        if (held.empty()) continue;
        std::swap(held[random.Below(held.size())], held.back());
        ASSERT_TRUE(held.back().IsWhole());
        Unmake(cache, held.back());
        held.pop_back();
      }
      for (Made& made : held) Unmake(cache, made);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(failures, 0);
  const SlabStatistics end = allocator_->statistics();
  EXPECT_EQ(end.free_bytes, end.carved_bytes);
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

TEST_F(SlabDeathTest, AnExtentThatIsFreedTwiceStopsTheProgram) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::byte* const extent = allocator_->AllocateExtent(4096).value();
  EXPECT_DEATH(allocator_->FreeExtent(extent + 4096, 64), "the extent at offset 4096 is freed; 4096 bytes are carved");
  allocator_->FreeExtent(extent, 4096);
  EXPECT_DEATH(allocator_->FreeExtent(extent + 64, 64), "64 bytes at 64 are freed; 4096 at 0 are free");
  EXPECT_DEATH(allocator_->FreeExtent(extent, 4096), "4096 bytes at 0 are freed; those at 0 are free");
}

// Another node may write anything into free records.
TEST_F(SlabTest, ALineOfAFreeBlockThatLooksBusyStopsNothing) {
  SlabCache cache(allocator_.get());
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(cache.Allocate(64 * kLineBytes).value());
  for (std::byte* const block : blocks) {
    StoreWord(block, kNotAState | 5);
    StoreWord(block + kLineBytes, kLineBusy);
    cache.Free(block, 64 * kLineBytes);
  }
  cache.GiveBack();
  allocator_->Trim(/*alone=*/true);  // joins them
  const StatusOr<std::byte*> block = cache.Allocate(3 * kLineBytes);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_FALSE(IsLineBusy(LoadWord(*block)));
}

}  // namespace slab_test
}  // namespace gannet::rdma
