#include "rdma/prefault.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::rdma {
namespace prefault_test {

constexpr size_t kMegabyte = size_t{1} << 20;

// Fresh memory without huge pages, so that the test can measure what is resident.
class PrefaultTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 256 * kMegabyte;

  void SetUp() override {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    (void)madvise(memory_, kBytes, MADV_NOHUGEPAGE);
  }
  void TearDown() override { munmap(memory_, kBytes); }

  size_t ResidentBytes() const {
    const size_t page = static_cast<size_t>(getpagesize());
    std::vector<unsigned char> pages(kBytes / page);
    EXPECT_EQ(mincore(memory_, kBytes, pages.data()), 0);
    size_t resident = 0;
    for (const unsigned char state : pages) resident += (state & 1) * page;
    return resident;
  }
  // Kernels before 5.14 cannot. There a Prefaulter does nothing, and there is nothing to test.
  bool KernelCan() const {
#ifdef MADV_POPULATE_WRITE
    return madvise(memory_, static_cast<size_t>(getpagesize()), MADV_POPULATE_WRITE) == 0;
#else
    return false;
#endif
  }

  std::byte* memory_ = nullptr;
};

TEST_F(PrefaultTest, LeavesSmallUsersAlone) {
  Prefaulter prefaulter(memory_, kBytes);
  prefaulter.Advance(8 * kMegabyte);
  prefaulter.Drain();
  EXPECT_EQ(ResidentBytes(), 0u);
}

TEST_F(PrefaultTest, GetsAnEighthAheadAndNoMore) {
  if (!KernelCan()) GTEST_SKIP() << "this kernel cannot get pages ahead";
  Prefaulter prefaulter(memory_, kBytes);
  prefaulter.Advance(64 * kMegabyte);
  EXPECT_GE(prefaulter.Drain(), 72 * kMegabyte);
  EXPECT_GE(ResidentBytes(), 8 * kMegabyte);
  EXPECT_LE(ResidentBytes(), 13 * kMegabyte);  // plus a part of a huge page at each end, and the page of KernelCan
  prefaulter.Advance(66 * kMegabyte);          // half of the lead is left: nothing to do yet
  EXPECT_LE(prefaulter.Drain(), 76 * kMegabyte);
  prefaulter.Advance(70 * kMegabyte);
  EXPECT_GE(prefaulter.Drain(), 78 * kMegabyte);
}

TEST_F(PrefaultTest, GetsWhatIsReserved) {
  if (!KernelCan()) GTEST_SKIP() << "this kernel cannot get pages ahead";
  Prefaulter prefaulter(memory_, kBytes);
  prefaulter.Reserve(32 * kMegabyte);
  EXPECT_GE(prefaulter.Drain(), 32 * kMegabyte);
  EXPECT_GE(ResidentBytes(), 32 * kMegabyte);
  prefaulter.Advance(24 * kMegabyte);  // asks for less
  EXPECT_LE(prefaulter.Drain(), 34 * kMegabyte);
}

TEST_F(PrefaultTest, StopsAtTheEnd) {
  if (!KernelCan()) GTEST_SKIP() << "this kernel cannot get pages ahead";
  const size_t bytes = 100 * kMegabyte + 64;
  Prefaulter prefaulter(memory_ + 64, bytes);
  prefaulter.Advance(bytes - 2 * kMegabyte);
  EXPECT_LE(prefaulter.Drain(), bytes);
  EXPECT_LE(ResidentBytes(), 5 * kMegabyte);
  memory_[0] = std::byte{1};  // memory up to the end was not touched, and stays usable
}

TEST_F(PrefaultTest, KeepsWhatIsThere) {
  for (size_t at = 0; at < kBytes; at += kMegabyte) memory_[at] = static_cast<std::byte>(at / kMegabyte);
  Prefaulter prefaulter(memory_, kBytes);
  prefaulter.Advance(200 * kMegabyte);
  prefaulter.Drain();
  for (size_t at = 0; at < kBytes; at += kMegabyte) EXPECT_EQ(memory_[at], static_cast<std::byte>(at / kMegabyte));
}

TEST_F(PrefaultTest, GivesUpWhereTheKernelRefuses) {
  ASSERT_EQ(mprotect(memory_ + 128 * kMegabyte, 64 * kMegabyte, PROT_READ), 0);
  Prefaulter prefaulter(memory_, kBytes);
  prefaulter.Advance(126 * kMegabyte);
  prefaulter.Drain();
  prefaulter.Advance(127 * kMegabyte);
  memory_[0] = std::byte{1};
}

}  // namespace prefault_test
}  // namespace gannet::rdma
