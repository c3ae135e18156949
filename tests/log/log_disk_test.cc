// The log on real files, with each file system: it begins, is closed, and continues in another run.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "log/format/segment_format.h"
#include "log/log.h"
#include "log/segment/end_note.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace log_disk_test {

template <class Files>
class LogDiskTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = testing::TempDir() + "gannet_log_disk_test." + std::to_string(getpid());
  Files files_;
};

using Kinds = testing::Types<PosixFileSystem, PmemFileSystem>;
TYPED_TEST_SUITE(LogDiskTest, Kinds);

TYPED_TEST(LogDiskTest, RunAfterRun) {
  LogOptions options = SmallLog();
  options.segment_bytes = 1 << 20;
  LogEnd end;
  constexpr uint64_t kRuns = 3;
  constexpr uint64_t kCommits = 1500;
  for (uint64_t run = 0; run < kRuns; ++run) {
    auto log = Log::Create(&this->files_, this->directory_, end, options).value();
    ASSERT_TRUE(log->Start(nullptr).ok());
    auto writer = log->OpenWriter().value();
    for (uint64_t i = 0; i < kCommits; ++i) ASSERT_TRUE(Commit(writer.get(), {run, i}, 1000).ok());
    ASSERT_TRUE(log->WaitDurable(log->last_dirty_epoch(), kLongEnough).ok());
    EXPECT_GT(log->statistics().segments, 1u);
    writer.reset();
    ASSERT_TRUE(log->Stop().ok());
    log.reset();
    const Recovered recovered = Recover(this->files_, 0, this->directory_);
    ASSERT_EQ(recovered.epochs.size(), (run + 1) * kCommits);
    for (const auto& [name, epoch] : recovered.epochs) ASSERT_TRUE(recovered.Has(name));
    end = recovered.end;
  }
  for (const auto& entry : std::filesystem::directory_iterator(this->directory_)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(SegmentOfName(name).has_value() || name == kEndNoteName) << entry.path() << " was left behind";
  }
}

}  // namespace log_disk_test
}  // namespace gannet::log
