#include "log/file/zero_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/posix_file_system.h"

namespace gannet::log {
namespace zero_ahead_test {

using internal::Descriptor;
using internal::ZeroAhead;

constexpr uint64_t kPieces = 8;
constexpr uint64_t kBytes = kPieces * ZeroAhead::kPieceBytes;

class ZeroAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "gannet-zeros-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    path_ = directory_ + "/a";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Makes a file full of ones, so that a zero must have been written.
  void FillWithOnes() const {
    const Descriptor fd(open(path_.c_str(), O_WRONLY | O_CREAT, 0644));
    const std::vector<std::byte> ones(kBytes, std::byte{1});
    ASSERT_EQ(write(fd.get(), ones.data(), ones.size()), static_cast<ssize_t>(ones.size()));
  }
  std::vector<std::byte> Content() const {
    PosixFileSystem files;
    std::vector<std::byte> all(kBytes);
    EXPECT_EQ(*(*files.Open(path_, OpenMode::kRead))->Read(0, all), kBytes);
    return all;
  }
  static bool All(std::span<const std::byte> data, int value) {
    return std::ranges::all_of(data, [&](std::byte each) { return each == static_cast<std::byte>(value); });
  }
  Descriptor OpenToWrite() const { return Descriptor(open(path_.c_str(), O_WRONLY | O_CLOEXEC)); }

  std::string directory_;
  std::string path_;
};

TEST_F(ZeroAheadTest, FillsItsRangeAndNothingElse) {
  FillWithOnes();
  ZeroAhead zeros(OpenToWrite(), kDiskBlockBytes, kBytes - kDiskBlockBytes);
  while (!zeros.done()) std::this_thread::yield();
  const std::vector<std::byte> content = Content();
  EXPECT_TRUE(All(std::span(content).first(kDiskBlockBytes), 1));
  EXPECT_TRUE(All(std::span(content).subspan(kDiskBlockBytes, kBytes - 2 * kDiskBlockBytes), 0));
  EXPECT_TRUE(All(std::span(content).last(kDiskBlockBytes), 1));
}

TEST_F(ZeroAheadTest, WhatWasLeftToOthersIsNeverTouchedAgain) {
  FillWithOnes();
  const Descriptor mine = OpenToWrite();
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    ZeroAhead zeros(OpenToWrite(), 0, kBytes);
    const uint64_t begin = random.Below(kBytes / kDiskBlockBytes - 1) * kDiskBlockBytes;
    const uint64_t end = begin + kDiskBlockBytes;
    const std::vector<std::byte> data(kDiskBlockBytes, static_cast<std::byte>(2 + round));
    zeros.Leave(begin, end);
    ASSERT_EQ(pwrite(mine.get(), data.data(), data.size(), static_cast<off_t>(begin)),
              static_cast<ssize_t>(data.size()));
    while (!zeros.done()) std::this_thread::yield();
    const std::vector<std::byte> content = Content();
    ASSERT_TRUE(All(std::span(content).subspan(begin, kDiskBlockBytes), 2 + round)) << round;
    ASSERT_TRUE(All(std::span(content).subspan(end), 0)) << round;
  }
}

TEST_F(ZeroAheadTest, AFailureEndsItAndHarmsNobody) {
  FillWithOnes();
  ZeroAhead zeros(Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC)), 0, kBytes);
  while (!zeros.done()) std::this_thread::yield();
  zeros.Leave(0, kBytes);
  EXPECT_TRUE(All(Content(), 1));
}

// The log does the same: it allocates a segment and writes it at once from its beginning.
TEST_F(ZeroAheadTest, WritesRightAfterAllocateAreKept) {
  PosixFileSystem files;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    std::unique_ptr<File> file = std::move(*files.Open(path_, OpenMode::kCreate));
    ASSERT_TRUE(file->Allocate(kBytes).ok());
    uint64_t end = 0;
    std::vector<std::byte> model(kBytes);
    while (end < kBytes / 2) {
      AlignedBuffer data((1 + random.Below(40)) * kDiskBlockBytes);
      std::ranges::fill(data.span(), static_cast<std::byte>(random()));
      ASSERT_TRUE((random.OneIn(4) ? file->WriteDurably(end, data.span()) : file->Write(end, data.span())).ok());
      std::ranges::copy(data.span(), model.begin() + static_cast<ptrdiff_t>(end));
      end += data.size();
    }
    // The zeros stay right while filling continues, and when the file is closed in the middle of it.
    if (random.OneIn(2)) file.reset();
    EXPECT_EQ(Content(), model) << seed;
    file.reset();
    EXPECT_EQ(Content(), model) << seed;
    ASSERT_TRUE(files.Remove(path_).ok());
  }
}

}  // namespace zero_ahead_test
}  // namespace gannet::log
