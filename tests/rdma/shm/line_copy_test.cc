#include "rdma/shm/line_copy.h"

#include <array>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace gannet::rdma::shm {
namespace line_copy_test {

struct alignas(kLineBytes) Line {
  std::array<uint64_t, kLineWords> words{};
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
};

TEST(LineCopy, ALineThatStaysBusyIsReturnedAsBusy) {
  for (const uint64_t busy : {kLineBusy, BusyMarker(0, 0), BusyMarker(kMaxShmNodes - 1, kShmChannelSlots - 1)}) {
    Line line, out;
    line.words[0] = busy;
    ReadLines(line.bytes(), out.bytes(), kLineBytes);
    EXPECT_EQ(out.words[0], kLineBusy);
  }
}

TEST(LineCopy, AWriteThatLeavesOutTheFirstWordLeavesItAlone) {
  Line line, from;
  line.words[0] = 9;
  from.words.fill(1);
  StoreNote note{};
  LineWriter(BusyMarker(1, 2), &note, line.bytes()).WriteLines(line.bytes() + 8, from.bytes(), kLineBytes - 8);
  EXPECT_EQ(line.words[0], 9u);
  EXPECT_EQ(line.words[7], 1u);
}

// The writer and the reader are often stopped in the middle. No reader may see half of a WRITE.
TEST(LineCopy, AReaderSeesAllWordsOfOneWrite) {
  Line line;
  std::atomic<bool> stop = false;
  const auto pause = [] { std::this_thread::yield(); };
  std::thread writer([&] {
    StoreNote note{};
    const LineWriter channel(BusyMarker(1, 2), &note, line.bytes());
    Line from;
    for (uint64_t i = 1; !stop; ++i) {
      from.words.fill(i);
      channel.WriteWithinLine(line.bytes(), from.bytes(), kLineBytes, pause);
      for (uint64_t j = i % 64; j > 0; --j) CpuRelax();
    }
  });
  uint64_t last = 0;
  const uint64_t enough = NowNanos() + 10'000'000'000;  // a yield takes milliseconds on a busy machine
  for (int i = 0; i < 500 && NowNanos() < enough; ++i) {
    Line out;
    ReadWithinLine(line.bytes(), out.bytes(), i % 2 == 0 ? kLineBytes : 16, pause);
    if (out.words[0] == kLineBusy) continue;
    ASSERT_EQ(out.words[1], out.words[0]);
    if (i % 2 == 0) {
      for (const uint64_t word : out.words) ASSERT_EQ(word, out.words[0]);
    }
    ASSERT_GE(out.words[0], last);
    last = out.words[0];
  }
  stop = true;
  writer.join();
}

}  // namespace line_copy_test
}  // namespace gannet::rdma::shm
