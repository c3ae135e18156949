// The log on a disk that works: what was acknowledged is there after a crash, and what is there is a prefix.
#include "log/log.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace {

LogOptions SmallOptions() {
  return {.group_commit = absl::Microseconds(100), .segment_bytes = 256 << 10, .buffer_bytes = 16 << 10};
}

class LogTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk_.MakeDirectory(kLogDirectory).ok()); }

  std::unique_ptr<Log> Open(const LogEnd& end = {}, const LogOptions& options = SmallOptions()) {
    auto log = Log::Create(&disk_, kLogDirectory, end, options);
    EXPECT_TRUE(log.ok()) << log.status();
    EXPECT_TRUE((*log)->Start(nullptr).ok());
    return std::move(*log);
  }

  FaultyFileSystem disk_{1};
};

TEST_F(LogTest, ACommitIsThereAfterTheCrash) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  ASSERT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
  const auto after = disk_.CrashedCopy(7);
  const Recovered recovered = Recover(*after);
  EXPECT_TRUE(recovered.Has({1, 1}));
  EXPECT_EQ(recovered.epochs.size(), 1u);
  EXPECT_EQ(recovered.end.recovered_epoch, epoch);
}

TEST_F(LogTest, StopFlushes) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(Commit(writer.get(), {1, i}, 10).ok());
  ASSERT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(*disk_.CrashedCopy(7)).epochs.size(), 10u);
  bool wait = true;
  EXPECT_EQ(writer->Reserve(10, &wait).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(wait);
}

}  // namespace
}  // namespace gannet::log
