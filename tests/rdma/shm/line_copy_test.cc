#include "rdma/shm/line_copy.h"

#include <array>
#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace gannet::rdma::shm {
namespace {

struct alignas(kLineBytes) Line {
  std::array<uint64_t, kLineWords> words{};
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
};

TEST(LineCopy, ALineThatStaysBusyIsReturnedAsBusy) {
  Line line, out;
  line.words[0] = kLineBusy;
  ReadLines(line.bytes(), out.bytes(), kLineBytes);
  EXPECT_EQ(out.words[0], kLineBusy);
}

TEST(LineCopy, AWriteThatLeavesOutTheFirstWordLeavesItAlone) {
  Line line, from;
  line.words[0] = 9;
  from.words.fill(1);
  WriteLines(line.bytes() + 8, from.bytes(), kLineBytes - 8);
  EXPECT_EQ(line.words[0], 9u);
  EXPECT_EQ(line.words[7], 1u);
}

// The writer of two words is slow: it is stopped in the middle again and again. No reader may see half of it.
TEST(LineCopy, AReaderOfTwoWordsSeesBothOfOneWrite) {
  Line line;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    Line from;
    for (uint64_t i = 1; !stop; ++i) {
      from.words.fill(i);
      WriteLines(line.bytes(), from.bytes(), 16);
    }
  });
  uint64_t last = 0;
  for (int i = 0; i < 200'000; ++i) {
    Line out;
    ReadLines(line.bytes(), out.bytes(), 16);
    if (out.words[0] == kLineBusy) continue;
    ASSERT_EQ(out.words[0], out.words[1]);
    ASSERT_GE(out.words[0], last);
    last = out.words[0];
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace gannet::rdma::shm
