#include "base/share_work.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <set>
#include <string>

#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet {
namespace share_work_test {

TEST(ShareWorkTest, DoesEachPieceOnceAndReturnsOk) {
  std::array<int, 100> done{};
  const Status shared = ShareWork("helper", done.size(), 4, [&done](size_t piece, int) {
    ++done[piece];
    return absl::OkStatus();
  });
  EXPECT_TRUE(shared.ok()) << shared;
  for (const int times : done) EXPECT_EQ(times, 1);
}

// Each piece waits until all three have begun, so fewer threads would never end.
TEST(ShareWorkTest, RunsOnAsManyThreadsAsAskedFor) {
  Latch all_here(3);
  std::array<int, 3> threads{};
  const Status shared = ShareWork("helper", threads.size(), 3, [&](size_t piece, int thread) {
    threads[piece] = thread;
    all_here.arrive_and_wait();
    return absl::OkStatus();
  });
  EXPECT_TRUE(shared.ok()) << shared;
  EXPECT_EQ(std::set<int>(threads.begin(), threads.end()), std::set<int>({0, 1, 2}));
}

TEST(ShareWorkTest, MakesNoThreadThatHasNoPiece) {
  for (const size_t pieces : {0, 1}) {
    const Status shared = ShareWork("helper", pieces, 4, [](size_t, int thread) {
      return thread == 0 ? absl::OkStatus() : absl::InternalError("one piece needs one thread");
    });
    EXPECT_TRUE(shared.ok()) << shared;
  }
}

TEST(ShareWorkTest, BeginsNoFurtherPieceAfterAFailure) {
  size_t last = 0;
  const Status alone = ShareWork("helper", 10, 1, [&last](size_t piece, int) {
    last = piece;
    return piece < 3 ? absl::OkStatus() : absl::DataLossError(std::to_string(piece));
  });
  EXPECT_EQ(alone, absl::DataLossError("3"));
  EXPECT_EQ(last, 3u);

  std::atomic<size_t> begun{0};
  const Status shared = ShareWork("helper", 1'000'000'000, 3, [&begun](size_t, int) {
    ++begun;
    return absl::CancelledError("stopped");
  });
  EXPECT_EQ(shared, absl::CancelledError("stopped"));
  EXPECT_LE(begun.load(), 3u);
}

}  // namespace share_work_test
}  // namespace gannet
