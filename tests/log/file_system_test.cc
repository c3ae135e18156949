// The promises of every file system (log/file/file_system.h), tested on each of them.
#include "log/file/file_system.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/manifest/whole_file.h"
#include "tests/log/full_disk.h"

namespace gannet::log {
namespace file_system_test {

using testing::ElementsAre;
using testing::HasSubstr;

struct Kind {
  std::string name;
  std::function<std::unique_ptr<FileSystem>()> make;
  bool on_disk = true;
};

AlignedBuffer Filled(size_t bytes, uint64_t seed) {
  AlignedBuffer buffer(bytes);
  Random random(seed);
  for (std::byte& each : buffer.span()) each = static_cast<std::byte>(random());
  return buffer;
}

class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    files_ = GetParam().make();
    if (GetParam().on_disk) {
      std::string name = (std::filesystem::temp_directory_path() / "gannet-files-XXXXXX").string();
      ASSERT_NE(mkdtemp(name.data()), nullptr);
      directory_ = name;
    } else {
      directory_ = "/data";
      ASSERT_TRUE(files_->MakeDirectory(directory_).ok());
    }
  }
  void TearDown() override {
    if (GetParam().on_disk) std::filesystem::remove_all(directory_);
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::unique_ptr<File> Create(const std::string& name) {
    StatusOr<std::unique_ptr<File>> file = files_->Open(Path(name), OpenMode::kCreate);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::move(*file);
  }
  std::unique_ptr<File> OpenToRead(const std::string& name) {
    StatusOr<std::unique_ptr<File>> file = files_->Open(Path(name), OpenMode::kRead);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::move(*file);
  }
  static std::vector<std::byte> Read(File& file, uint64_t offset, size_t bytes) {
    std::vector<std::byte> out(bytes, std::byte{0xee});
    const StatusOr<size_t> read = file.Read(offset, out);
    EXPECT_TRUE(read.ok()) << read.status();
    out.resize(*read);
    return out;
  }
  static bool Holds(File& file, uint64_t offset, std::span<const std::byte> data) {
    return std::ranges::equal(Read(file, offset, data.size()), data);
  }

  std::unique_ptr<FileSystem> files_;
  std::string directory_;
};

TEST_P(FileSystemTest, WhatWasWrittenIsReadThroughThisFileAndAnother) {
  const auto file = Create("a");
  const AlignedBuffer data = Filled(3 * kDiskBlockBytes, 1);
  ASSERT_TRUE(file->Write(kDiskBlockBytes, data.span()).ok());
  EXPECT_TRUE(Holds(*file, kDiskBlockBytes, data.span()));
  ASSERT_TRUE(file->Sync().ok());
  const auto reader = OpenToRead("a");
  EXPECT_TRUE(Holds(*reader, kDiskBlockBytes, data.span()));
  EXPECT_TRUE(Holds(*reader, 0, AlignedBuffer(kDiskBlockBytes).span()));
  EXPECT_EQ(*reader->Size(), 4 * kDiskBlockBytes);
  EXPECT_EQ(*file->Size(), 4 * kDiskBlockBytes);
  EXPECT_EQ(file->path(), Path("a"));
}

TEST_P(FileSystemTest, ReadsNeedNoAlignmentAndStopAtTheEnd) {
  const auto file = Create("a");
  const AlignedBuffer data = Filled(2 * kDiskBlockBytes, 2);
  ASSERT_TRUE(file->WriteDurably(0, data.span()).ok());
  const auto reader = OpenToRead("a");
  for (File* each : {file.get(), reader.get()}) {
    EXPECT_TRUE(Holds(*each, 1, data.span().subspan(1, 5000)));
    EXPECT_TRUE(Holds(*each, 4095, data.span().subspan(4095, 2)));
    EXPECT_EQ(Read(*each, 2 * kDiskBlockBytes - 3, 100).size(), 3u);
    EXPECT_EQ(Read(*each, 2 * kDiskBlockBytes, 100).size(), 0u);
    EXPECT_EQ(Read(*each, 9 * kDiskBlockBytes, 100).size(), 0u);
  }
}

TEST_P(FileSystemTest, AllocatedSpaceIsZerosAndKeepsWhatWasWritten) {
  const auto file = Create("a");
  EXPECT_EQ(*file->Size(), 0u);
  ASSERT_TRUE(file->Allocate(16 * kDiskBlockBytes).ok());
  EXPECT_EQ(*file->Size(), 16 * kDiskBlockBytes);
  EXPECT_TRUE(Holds(*file, 0, AlignedBuffer(16 * kDiskBlockBytes).span()));
  const AlignedBuffer data = Filled(kDiskBlockBytes, 3);
  ASSERT_TRUE(file->WriteDurably(15 * kDiskBlockBytes, data.span()).ok());
  ASSERT_TRUE(file->Allocate(64 * kDiskBlockBytes).ok());
  ASSERT_TRUE(file->Allocate(64 * kDiskBlockBytes).ok());
  EXPECT_TRUE(Holds(*file, 15 * kDiskBlockBytes, data.span()));
  EXPECT_TRUE(Holds(*file, 16 * kDiskBlockBytes, AlignedBuffer(48 * kDiskBlockBytes).span()));
  EXPECT_EQ(*OpenToRead("a")->Size(), 64 * kDiskBlockBytes);
}

TEST_P(FileSystemTest, ALargeWriteIsOneWrite) {
  // More than is written at once, and not a multiple of a piece.
  const AlignedBuffer data = Filled((size_t{19} << 20) + kDiskBlockBytes, 4);
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(data.size() + kDiskBlockBytes).ok());
  ASSERT_TRUE(file->WriteDurably(kDiskBlockBytes, data.span()).ok());
  EXPECT_TRUE(Holds(*OpenToRead("a"), kDiskBlockBytes, data.span()));
}

TEST_P(FileSystemTest, ManyWritesInAnyOrderGiveWhatAModelSays) {
  constexpr size_t kBlocks = 64;
  std::vector<std::byte> model(kBlocks * kDiskBlockBytes);
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(model.size()).ok());
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const size_t block = random.Below(kBlocks);
    const AlignedBuffer data = Filled((1 + random.Below(kBlocks - block)) * kDiskBlockBytes, random());
    const uint64_t offset = block * kDiskBlockBytes;
    ASSERT_TRUE((i % 8 == 0 ? file->WriteDurably(offset, data.span()) : file->Write(offset, data.span())).ok());
    std::ranges::copy(data.span(), model.begin() + static_cast<ptrdiff_t>(offset));
    ASSERT_TRUE(i % 16 != 0 || Holds(*file, 0, model)) << i;
  }
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(Holds(*OpenToRead("a"), 0, model));
}

TEST_P(FileSystemTest, AWriteOfNothingIsASync) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Write(0, {}).ok());
  ASSERT_TRUE(file->WriteDurably(0, {}).ok());
  EXPECT_EQ(*file->Size(), 0u);
}

TEST_P(FileSystemTest, OpenSaysWhatIsInTheWay) {
  EXPECT_TRUE(absl::IsNotFound(files_->Open(Path("none"), OpenMode::kRead).status()));
  EXPECT_TRUE(absl::IsNotFound(files_->Open(Path("none/a"), OpenMode::kCreate).status()));
  Create("a");
  const Status exists = files_->Open(Path("a"), OpenMode::kCreate).status();
  EXPECT_TRUE(absl::IsAlreadyExists(exists)) << exists;
  EXPECT_THAT(std::string(exists.message()), HasSubstr(Path("a")));
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Open(directory_, OpenMode::kRead).status()));
}

TEST_P(FileSystemTest, AFileOpenForReadingCannotBeWritten) {
  Create("a");
  const auto reader = OpenToRead("a");
  const AlignedBuffer data = Filled(kDiskBlockBytes, 6);
  EXPECT_TRUE(absl::IsPermissionDenied(reader->Write(0, data.span())));
  EXPECT_TRUE(absl::IsPermissionDenied(reader->WriteDurably(0, data.span())));
  EXPECT_TRUE(absl::IsPermissionDenied(reader->Allocate(kDiskBlockBytes)));
  EXPECT_EQ(*reader->Size(), 0u);
}

TEST_P(FileSystemTest, NamesAreListedSortedRemovedAndReplaced) {
  Create("b");
  Create("a");
  ASSERT_TRUE(files_->MakeDirectory(Path("c")).ok());
  ASSERT_TRUE(files_->MakeDirectory(Path("c")).ok());
  Create("c/inside");
  EXPECT_THAT(*files_->List(directory_), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*files_->List(Path("c")), ElementsAre("inside"));
  EXPECT_TRUE(absl::IsAlreadyExists(files_->MakeDirectory(Path("a"))));
  EXPECT_TRUE(absl::IsNotFound(files_->MakeDirectory(Path("x/y"))));
  EXPECT_TRUE(absl::IsNotFound(files_->List(Path("x")).status()));

  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Remove(Path("c"))));
  ASSERT_TRUE(files_->Remove(Path("c/inside")).ok());
  ASSERT_TRUE(files_->Remove(Path("c")).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Remove(Path("c"))));
  ASSERT_TRUE(files_->Remove(Path("a")).ok());
  EXPECT_THAT(*files_->List(directory_), ElementsAre("b"));
  ASSERT_TRUE(files_->SyncDirectory(directory_).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->SyncDirectory(Path("x"))));
}

TEST_P(FileSystemTest, RenameReplacesFilesWithinADirectory) {
  const AlignedBuffer data = Filled(kDiskBlockBytes, 7);
  ASSERT_TRUE(Create("new")->WriteDurably(0, data.span()).ok());
  Create("old");
  ASSERT_TRUE(files_->MakeDirectory(Path("directory")).ok());
  ASSERT_TRUE(files_->Rename(Path("new"), Path("old")).ok());
  EXPECT_THAT(*files_->List(directory_), ElementsAre("directory", "old"));
  EXPECT_TRUE(Holds(*OpenToRead("old"), 0, data.span()));
  EXPECT_TRUE(absl::IsNotFound(files_->Rename(Path("new"), Path("old"))));
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Rename(Path("old"), Path("directory/old"))));
  EXPECT_TRUE(absl::IsAlreadyExists(files_->Rename(Path("old"), Path("directory"))));
  ASSERT_TRUE(files_->Rename(Path("directory"), Path("renamed")).ok());
  EXPECT_THAT(*files_->List(directory_), ElementsAre("old", "renamed"));
}

TEST_P(FileSystemTest, AnOpenFileThatIsRenamedGoesOnUnderItsNewName) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(2 * kDiskBlockBytes).ok());
  const AlignedBuffer data = Filled(kDiskBlockBytes, 9);
  ASSERT_TRUE(file->WriteDurably(0, data.span()).ok());
  ASSERT_TRUE(files_->Rename(Path("a"), Path("b")).ok());
  EXPECT_EQ(file->path(), Path("a")) << "nobody has told it";
  file->Renamed(Path("b"));
  EXPECT_EQ(file->path(), Path("b"));
  ASSERT_TRUE(file->WriteDurably(kDiskBlockBytes, data.span()).ok());
  ASSERT_TRUE(file->Allocate(4 * kDiskBlockBytes).ok());
  EXPECT_TRUE(Holds(*OpenToRead("b"), kDiskBlockBytes, data.span()));
}

TEST_P(FileSystemTest, AnOpenFileOutlivesItsName) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(4 * kDiskBlockBytes).ok());
  ASSERT_TRUE(files_->Remove(Path("a")).ok());
  const AlignedBuffer data = Filled(kDiskBlockBytes, 8);
  ASSERT_TRUE(file->WriteDurably(0, data.span()).ok());
  EXPECT_TRUE(Holds(*file, 0, data.span()));
  EXPECT_THAT(*files_->List(directory_), ElementsAre());
}

TEST_P(FileSystemTest, OneHolderOfALockAtATime) {
  StatusOr<std::shared_ptr<void>> lock = files_->Lock(directory_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_THAT(*files_->List(directory_), ElementsAre());
  const Status refused = files_->Lock(directory_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("in use by this process"));
  lock->reset();
  EXPECT_TRUE(files_->Lock(directory_).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Lock(Path("none")).status()));
}

TEST_P(FileSystemTest, FreeBytesAreSomeAndOfADirectory) {
  EXPECT_GT(*files_->FreeBytes(directory_), uint64_t{1} << 20);
  EXPECT_TRUE(absl::IsNotFound(files_->FreeBytes(Path("none")).status()));
}

TEST_P(FileSystemTest, UnalignedWritesAreABug) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(4 * kDiskBlockBytes).ok());
  const AlignedBuffer data = Filled(2 * kDiskBlockBytes, 9);
  EXPECT_DEATH(file->Write(512, data.span()).IgnoreError(), "check failed");
  EXPECT_DEATH(file->Write(0, data.span().first(100)).IgnoreError(), "check failed");
  EXPECT_DEATH(file->Write(0, data.span().subspan(8, kDiskBlockBytes)).IgnoreError(), "check failed");
  EXPECT_DEATH(file->Allocate(kDiskBlockBytes).IgnoreError(), "check failed");
}

TEST_P(FileSystemTest, WholeFilesAreReplacedAndChecked) {
  const std::string path = Path("MANIFEST");
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(*files_, path).status()));
  std::string binary(10000, '\0');
  binary += "\ngannet-crc32c 00000000 3\n";
  for (const std::string& content : {std::string("{}\n"), std::string(), std::string(4096, 'x'), binary}) {
    ASSERT_TRUE(ReplaceWholeFile(*files_, path, std::as_bytes(std::span(content))).ok());
    const StatusOr<std::string> read = ReadWholeFile(*files_, path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, content);
  }
  // A temporary file that a crash has left is no obstacle.
  Create("MANIFEST.tmp");
  ASSERT_TRUE(ReplaceWholeFile(*files_, path, std::as_bytes(std::span("again", 5))).ok());
  EXPECT_EQ(*ReadWholeFile(*files_, path), "again");
  EXPECT_THAT(*files_->List(directory_), ElementsAre("MANIFEST"));
}

TEST_P(FileSystemTest, DamagedWholeFilesAreRefused) {
  Create("empty");
  EXPECT_TRUE(absl::IsDataLoss(ReadWholeFile(*files_, Path("empty")).status()));
  const std::string content = "some words";
  ASSERT_TRUE(ReplaceWholeFile(*files_, Path("a"), std::as_bytes(std::span(content))).ok());
  AlignedBuffer good(kDiskBlockBytes);
  ASSERT_EQ(*OpenToRead("a")->Read(0, good.span()), kDiskBlockBytes);
  const size_t line = std::string_view(reinterpret_cast<const char*>(good.data())).size();
  for (size_t at = 0; at < line; ++at) {
    AlignedBuffer bad = Filled(kDiskBlockBytes, 0);
    std::ranges::copy(good.span(), bad.data());
    bad.data()[at] ^= std::byte{0x10};
    const std::string name = "bad" + std::to_string(at);
    ASSERT_TRUE(Create(name)->WriteDurably(0, bad.span()).ok());
    const Status status = ReadWholeFile(*files_, Path(name)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << at << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST_P(FileSystemTest, AFullDiskIsToldAndLeavesTheFileAsLongAsItWas) {
  auto* const faulty = dynamic_cast<FaultyFileSystem*>(files_.get());
  const auto file = Create("a");
  const AlignedBuffer data = Filled(8 * kDiskBlockBytes, 10);
  {
    const FullDisk full(20 * kDiskBlockBytes);
    if (faulty != nullptr) faulty->SetCapacity(20 * kDiskBlockBytes);
    ASSERT_TRUE(file->Allocate(8 * kDiskBlockBytes).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(file->Allocate(1000 * kDiskBlockBytes)));
    EXPECT_EQ(*OpenToRead("a")->Size(), 8 * kDiskBlockBytes);
    const Status refused = file->WriteDurably(16 * kDiskBlockBytes, data.span());
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(Path("a")));
    EXPECT_EQ(*OpenToRead("a")->Size(), 8 * kDiskBlockBytes);
    EXPECT_TRUE(file->WriteDurably(0, data.span()).ok()) << "there was room for that";
  }
  if (faulty != nullptr) faulty->SetCapacity(1000 * kDiskBlockBytes);
  EXPECT_TRUE(file->WriteDurably(16 * kDiskBlockBytes, data.span()).ok());
  EXPECT_TRUE(Holds(*OpenToRead("a"), 0, data.span()));
  EXPECT_TRUE(Holds(*OpenToRead("a"), 16 * kDiskBlockBytes, data.span()));
}

// The kernel writes up to the limit, within a block, before it refuses.
TEST_P(FileSystemTest, ALimitWithinABlockIsAFullDisk) {
  if (!GetParam().on_disk) GTEST_SKIP() << "no limit of the process holds there";
  const AlignedBuffer data = Filled(4 * kDiskBlockBytes, 11);
  ASSERT_TRUE(Create("before")->Write(0, data.span()).ok());
  const std::string description = files_->Description();
  for (const uint64_t more : {1, 100, 512, 1696, 4095}) {
    for (const bool durably : {false, true}) {
      const auto write = [&](File& file) {
        return durably ? file.WriteDurably(kDiskBlockBytes, data.span()) : file.Write(kDiskBlockBytes, data.span());
      };
      for (const uint64_t blocks : {0, 1, 2}) {
        const std::string name = absl::StrCat("a", more, "-", durably, "-", blocks);
        const auto file = Create(name);
        ASSERT_TRUE(file->Allocate(kDiskBlockBytes).ok());
        {
          const uint64_t limit = blocks * kDiskBlockBytes + more;
          const FullDisk full(limit);
          const Status refused = write(*file);
          EXPECT_TRUE(absl::IsResourceExhausted(refused)) << name << ": " << refused;
          EXPECT_THAT(std::string(refused.message()), HasSubstr(Path(name)));
          EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat(limit, " bytes")));
          EXPECT_EQ(*OpenToRead(name)->Size(), kDiskBlockBytes) << name;
        }
        EXPECT_TRUE(write(*file).ok()) << name;
        EXPECT_TRUE(Holds(*OpenToRead(name), kDiskBlockBytes, data.span())) << name;
      }
    }
  }
  EXPECT_EQ(files_->Description(), description) << "a full disk is no reason to write in another way";
}

std::vector<Kind> Kinds() {
  return {
      {"Posix", [] { return std::make_unique<PosixFileSystem>(); }},
      {"PosixWithoutRing", [] { return std::make_unique<PosixFileSystem>(PosixOptions{.io_uring = false}); }},
      {"PosixCached", [] { return std::make_unique<PosixFileSystem>(PosixOptions{.direct = false}); }},
      {"Pmem", [] { return std::make_unique<PmemFileSystem>(); }},
      {"Faulty", [] { return std::make_unique<FaultyFileSystem>(1); }, false},
  };
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, testing::ValuesIn(Kinds()),
                         [](const testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

}  // namespace file_system_test
}  // namespace gannet::log
