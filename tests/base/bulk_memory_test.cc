#include "base/bulk_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gtest/gtest.h"

namespace gannet {
namespace bulk_memory_test {

TEST(BulkMemoryTest, IsZerosAndAligned) {
  for (const size_t alignment : {kLineBytes, size_t{4096}}) {
    for (const size_t bytes :
         {size_t{1}, size_t{65}, size_t{64} << 10, (size_t{1} << 20) + 1, size_t{2} << 20, (size_t{5} << 20) + 3}) {
      BulkMemory memory(bytes, alignment);
      ASSERT_GE(memory.size(), bytes);
      const size_t aligned = bytes < BulkMemory::kHugePageBytes ? alignment : BulkMemory::kHugePageBytes;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % aligned, 0u) << bytes;
      EXPECT_TRUE(
          std::all_of(memory.data(), memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0}; }));
      std::fill_n(memory.data(), memory.size(), std::byte{1});
      BulkMemory other(std::move(memory));
      EXPECT_EQ(memory.data(), nullptr);  // NOLINT: moved-from memory is empty
      EXPECT_EQ(other.data()[bytes - 1], std::byte{1});
      memory = std::move(other);
      EXPECT_EQ(memory.data()[0], std::byte{1});
    }
  }
}

TEST(BulkMemoryTest, GrowsWithItsContent) {
  BulkMemory memory;
  size_t filled = 0;
  const auto content = [](size_t at) { return static_cast<std::byte>(at * 7 + at / 4096 + 1); };
  for (const size_t bytes : {size_t{100}, size_t{5000}, size_t{64} << 10, size_t{200} << 10, size_t{1} << 20,
                             size_t{2} << 20, (size_t{5} << 20) + 3, size_t{16} << 20}) {
    memory.Grow(bytes);
    ASSERT_GE(memory.size(), bytes);
    const size_t aligned = bytes < BulkMemory::kHugePageBytes ? kLineBytes : BulkMemory::kHugePageBytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % aligned, 0u);
    for (size_t at = 0; at < filled; ++at) ASSERT_EQ(memory.data()[at], content(at)) << at << " of " << bytes;
    EXPECT_TRUE(std::all_of(memory.data() + filled, memory.data() + memory.size(),
                            [](std::byte b) { return b == std::byte{0}; }));
    for (; filled < memory.size(); ++filled) memory.data()[filled] = content(filled);
  }
}

}  // namespace bulk_memory_test
}  // namespace gannet
