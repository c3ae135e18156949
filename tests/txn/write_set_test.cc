#include "txn/session/write_set.h"

#include <cstring>
#include <new>

#include "gtest/gtest.h"
#include "txn/store/arena.h"
#include "txn/store/requests.h"

namespace gannet::txn {
namespace write_set_test {

TEST(WriteSetTest, FindsEveryRecordAndNoOther) {
  WriteSet set;
  for (uint64_t i = 1; i <= 1000; ++i) set.Add(rdma::GlobalAddress(1, i * 64));
  for (uint64_t i = 1; i <= 1000; ++i)
    EXPECT_EQ(set.FindRecord(rdma::GlobalAddress(1, i * 64)), static_cast<int>(i - 1));
  EXPECT_EQ(set.FindRecord(rdma::GlobalAddress(2, 64)), -1);
  set.SetRecord(0, rdma::GlobalAddress(2, 64));
  EXPECT_EQ(set.FindRecord(rdma::GlobalAddress(2, 64)), 0);
  EXPECT_EQ(set.FindRecord(rdma::GlobalAddress(1, 64)), -1);
  set.Clear();
  EXPECT_EQ(set.FindRecord(rdma::GlobalAddress(2, 64)), -1);
}

TEST(ArenaTest, KeepsWhatItGaveUntilReset) {
  Arena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::byte*, size_t>> given;
    for (size_t size : {size_t{1}, size_t{8}, size_t{1000}, size_t{70000}, size_t{0}, size_t{16384}, size_t{5}}) {
      std::byte* memory = arena.Allocate(size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 8, 0u);
      std::memset(memory, static_cast<int>(given.size()), size);
      given.emplace_back(memory, size);
    }
    for (size_t i = 0; i < given.size(); ++i) {
      for (size_t k = 0; k < given[i].second; ++k) ASSERT_EQ(given[i].first[k], static_cast<std::byte>(i));
    }
    arena.Reset();
  }
}

// Rows of a large scan: address space, of which two pages are touched.
TEST(RowBytesTest, PlacesHave64Bits) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr size_t kMuch = size_t{5} << 30;
  RowBytes rows;
  try {
    EXPECT_EQ(rows.Append(kMuch), 0u);
  } catch (const std::bad_alloc&) {
    GTEST_SKIP() << "no 5 GiB of address space";
  }
  rows.At(100, 1)[0] = std::byte{1};
  rows.At(kMuch - 1, 1)[0] = std::byte{2};
  EXPECT_EQ(rows.size(), kMuch);
  EXPECT_EQ(rows.At(100, 1)[0], std::byte{1});
  rows.Cut(kMuch - 1);
  EXPECT_EQ(rows.Append(1), kMuch - 1);
  EXPECT_EQ(rows.At(kMuch - 1, 1)[0], std::byte{2});
#endif
}

}  // namespace write_set_test
}  // namespace gannet::txn
