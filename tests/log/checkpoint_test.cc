// Checkpoint files: written, read back, damaged, interrupted.
#include "log/checkpoint/checkpoint.h"

#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "log/checkpoint/checkpoint_format.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/crc32c.h"
#include "log/format/identity.h"
#include "tests/log/image_file_system.h"
#include "tests/log/log_builder.h"

namespace gannet::log {
namespace checkpoint_test {

constexpr char kDirectory[] = "/data";

struct TestRecord {
  uint16_t table = 0;
  uint64_t epoch = 0;
  uint64_t version = 0;
  std::string key{};
  std::string payload{};
  friend bool operator==(const TestRecord&, const TestRecord&) = default;
};

CheckpointRecord ViewOf(const TestRecord& record) {
  return {record.table, record.epoch, record.version, BytesOf(record.key), BytesOf(record.payload)};
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() { EXPECT_TRUE(disk_.MakeDirectory(kDirectory).ok()); }

  StatusOr<CheckpointDescription> Write(uint64_t id, const std::vector<TestRecord>& records) {
    auto writer = CheckpointWriter::Create(&disk_, kDirectory, database_, id, 0);
    if (!writer.ok()) return writer.status();
    for (size_t i = 0; i < records.size(); ++i) {
      if (i == 0 || records[i].table != records[i - 1].table)
        GANNET_RETURN_IF_ERROR((*writer)->BeginTable(records[i].table));
      GANNET_RETURN_IF_ERROR((*writer)->Add(ViewOf(records[i])));
    }
    CheckpointDescription description;
    GANNET_RETURN_IF_ERROR((*writer)->Finish(&description));
    return description;
  }

  StatusOr<std::vector<TestRecord>> Read(FileSystem& files, uint64_t id, const CheckpointFile& file,
                                         std::vector<uint64_t>* damaged = nullptr) {
    std::vector<TestRecord> records;
    const auto visit = [&](std::span<const CheckpointRecord> some) {
      for (const CheckpointRecord& record : some)
        records.push_back({record.table, record.epoch, record.version, TextOf(record.key), TextOf(record.payload)});
      return absl::OkStatus();
    };
    std::function<void(uint64_t, const std::string&)> tell;
    if (damaged != nullptr) tell = [&](uint64_t offset, const std::string&) { damaged->push_back(offset); };
    GANNET_RETURN_IF_ERROR(ReadCheckpointFile(files, kDirectory, database_, id, file, visit, tell));
    return records;
  }

  StatusOr<std::vector<TestRecord>> Read(const CheckpointDescription& description) {
    std::vector<TestRecord> all;
    for (const CheckpointFile& file : description.files) {
      auto records = Read(disk_, description.id, file);
      if (!records.ok()) return records.status();
      all.insert(all.end(), records->begin(), records->end());
    }
    return all;
  }

  FaultyFileSystem disk_{1};
  Identity database_;
};

std::vector<TestRecord> SomeRecords() {
  std::vector<TestRecord> records;
  records.push_back({1, 2, 3, "", ""});
  records.push_back({1, 0, ~uint64_t{0}, std::string(kMaxKeyBytes, 'k'), std::string(64 << 10, 'p')});
  for (const size_t length : {kShortKeyBytes, kShortKeyBytes + 1, size_t{255}, size_t{256}})
    records.push_back({1, 1, 5, std::string(length, 'm'), "p"});
  for (size_t length = 0; length <= 17; ++length)
    records.push_back({1, length, 4, std::string(length, 'a'), std::string(17 - length, 'b')});
  records.push_back({2, 1, 1, "of another table", "x"});
  records.push_back({2, 1, 1, "larger than a block", std::string(CheckpointWriter::kBlockBytes * 3, 'y')});
  records.push_back({2, 1, 1, "last", "z"});
  return records;
}

TEST_F(CheckpointTest, RoundTrip) {
  const auto description = Write(7, SomeRecords());
  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_EQ(description->id, 7u);
  ASSERT_EQ(description->files.size(), 2u);
  EXPECT_EQ(description->files[0].table, 1);
  EXPECT_EQ(description->files[1].table, 2);
  EXPECT_EQ(description->records(), SomeRecords().size());
  EXPECT_GT(description->bytes(), CheckpointWriter::kBlockBytes * 3);
  const auto records = Read(*description);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(*records, SomeRecords());
}

TEST_F(CheckpointTest, LargeTablesAreSplitIntoFiles) {
  const std::string payload(CheckpointWriter::kBlockBytes / 2, 'p');
  auto writer = CheckpointWriter::Create(&disk_, kDirectory, database_, 1, 0);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->BeginTable(1).ok());
  const size_t count = 2 * CheckpointWriter::kFileBytes / CheckpointWriter::kBlockBytes + 3;  // half a block each
  for (size_t i = 0; i < count; ++i) ASSERT_TRUE((*writer)->Add(ViewOf({1, 1, i, "k", payload})).ok());
  CheckpointDescription description;
  ASSERT_TRUE((*writer)->Finish(&description).ok());
  EXPECT_EQ(description.records(), count);
  ASSERT_EQ(description.files.size(), 2u);
  EXPECT_NE(description.files[0].name, description.files[1].name);
  EXPECT_EQ(Read(description)->back().version, count - 1);
}

TEST_F(CheckpointTest, EmptyOneHasNoFiles) {
  const auto description = Write(1, {});
  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_TRUE(description->files.empty());
}

TEST_F(CheckpointTest, RecordOfAnotherTableIsRefused) {
  auto writer = CheckpointWriter::Create(&disk_, kDirectory, database_, 1, 0);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->BeginTable(1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Add(ViewOf({2, 1, 1, "k", "p"}))));
}

TEST_F(CheckpointTest, SurvivesACrashOnceFinished) {
  const auto description = Write(7, SomeRecords());
  ASSERT_TRUE(description.ok());
  disk_.Crash();
  const auto records = Read(*description);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(*records, SomeRecords());
}

TEST_F(CheckpointTest, ReplacesAnInterruptedOne) {
  {
    auto writer = CheckpointWriter::Create(&disk_, kDirectory, database_, 7, 0);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->BeginTable(3).ok());
    ASSERT_TRUE((*writer)->Add(ViewOf({3, 1, 1, "k", "p"})).ok());
  }
  const auto description = Write(7, SomeRecords());
  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_EQ(disk_.List(CheckpointDirectory(kDirectory, 7))->size(), 2u);
}

TEST_F(CheckpointTest, FailingDiskIsNotAFinishedCheckpoint) {
  for (const DiskOperation operation : {DiskOperation::kWrite, DiskOperation::kSync, DiskOperation::kSyncDirectory,
                                        DiskOperation::kRead, DiskOperation::kOpen, DiskOperation::kMakeDirectory}) {
    disk_.Heal();
    disk_.Schedule({.operation = operation});
    EXPECT_FALSE(Write(7, SomeRecords()).ok()) << static_cast<int>(operation);
  }
  disk_.Heal();
  EXPECT_TRUE(Write(7, SomeRecords()).ok());
}

TEST_F(CheckpointTest, ReadingBackFindsWhatTheDiskMadeOfIt) {
  disk_.SetOptions({.read_bit_flip_one_in = 1});
  EXPECT_FALSE(Write(7, SomeRecords()).ok());
}

// Copies the files of a checkpoint into images.
void CopyOut(FileSystem& from, const std::string& path, ImageFileSystem* to) {
  auto file = from.Open(path, OpenMode::kRead);
  ASSERT_TRUE(file.ok());
  Image image((*file)->Size().value());
  ASSERT_EQ((*file)->Read(0, image).value(), image.size());
  to->files[path] = std::move(image);
}

TEST_F(CheckpointTest, EveryFlippedByteAndEveryLengthIsSeen) {
  const std::vector<TestRecord> written = {{1, 2, 3, "a", "b"}, {1, 2, 4, "c", "d"}};
  const auto description = Write(7, written);
  ASSERT_TRUE(description.ok());
  const CheckpointFile& file = description->files[0];
  ImageFileSystem images;
  const std::string path = CheckpointDirectory(kDirectory, 7) + "/" + file.name;
  CopyOut(disk_, path, &images);
  Image& image = images.files[path];
  ASSERT_EQ(Read(images, 7, file).value(), written);
  for (size_t at = 0; at < image.size(); ++at) {
    const std::byte flip{static_cast<uint8_t>(1 << at % 8)};
    image[at] ^= flip;
    ASSERT_TRUE(absl::IsDataLoss(Read(images, 7, file).status())) << at;
    std::vector<uint64_t> damaged;
    const auto salvaged = Read(images, 7, file, &damaged);
    image[at] ^= flip;
    ASSERT_TRUE(salvaged.ok()) << at;
    ASSERT_FALSE(damaged.empty()) << at;
    ASSERT_TRUE(salvaged->empty() || *salvaged == written) << at;
  }
  for (size_t length = image.size(); length-- > 0;) {
    image.resize(length);
    ASSERT_TRUE(absl::IsDataLoss(Read(images, 7, file).status())) << length;
  }
  images.files.clear();
  EXPECT_TRUE(absl::IsDataLoss(Read(images, 7, file).status()));
  std::vector<uint64_t> damaged;
  EXPECT_TRUE(Read(images, 7, file, &damaged).ok());
  EXPECT_EQ(damaged.size(), 1u);
}

TEST_F(CheckpointTest, FileOfAnotherCheckpointIsRefused) {
  const auto description = Write(7, {{1, 2, 3, "a", "b"}});
  const auto other = Write(8, {{1, 2, 3, "a", "c"}});
  ASSERT_TRUE(description.ok() && other.ok());
  ImageFileSystem images;
  CopyOut(disk_, CheckpointDirectory(kDirectory, 8) + "/" + other->files[0].name, &images);
  images.files[CheckpointDirectory(kDirectory, 7) + "/" + description->files[0].name] = images.files.begin()->second;
  EXPECT_TRUE(absl::IsDataLoss(Read(images, 7, description->files[0]).status()));
  // The file has the same name, but is not the one in the manifest.
  EXPECT_TRUE(absl::IsDataLoss(Read(images, 8, description->files[0]).status()));
  EXPECT_TRUE(Read(images, 8, other->files[0]).ok());
}

TEST_F(CheckpointTest, SalvageLosesOnlyTheDamagedBlock) {
  std::vector<TestRecord> records;
  for (uint64_t i = 0; i < 5; ++i)
    records.push_back({1, 1, i, "k", std::string(CheckpointWriter::kBlockBytes / 2, 'p')});
  const auto description = Write(7, records);
  ASSERT_TRUE(description.ok());
  const std::string path = CheckpointDirectory(kDirectory, 7) + "/" + description->files[0].name;
  ASSERT_TRUE(disk_.FlipBit(path, kCheckpointHeaderBytes + 100, 3).ok());
  EXPECT_TRUE(absl::IsDataLoss(Read(*description).status()));
  std::vector<uint64_t> damaged;
  const auto salvaged = Read(disk_, 7, description->files[0], &damaged);
  ASSERT_TRUE(salvaged.ok());
  EXPECT_EQ(*salvaged, std::vector<TestRecord>(records.begin() + 1, records.end()));
  EXPECT_EQ(damaged.front(), kCheckpointHeaderBytes);
}

TEST_F(CheckpointTest, AFileOfAnotherDatabaseIsRefusedBeforeItsRecords) {
  const auto unknown = Write(6, SomeRecords());
  database_ = Identity::FromText("0123456789abcdef0123456789abcdef");
  const auto mine = Write(7, SomeRecords());
  ASSERT_TRUE(unknown.ok() && mine.ok());
  EXPECT_EQ(*Read(*mine), SomeRecords());
  EXPECT_EQ(*Read(*unknown), SomeRecords()) << "written before there was an identity";
  database_ = Identity::FromText("0123456789abcdef0123456789abcde0");
  EXPECT_EQ(*Read(*unknown), SomeRecords());
  const Status refused = Read(*mine).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  for (const std::string& says : {CheckpointDirectory(kDirectory, 7) + "/" + mine->files[0].name,
                                  std::string("of another database (0123456789abcdef0123456789abcdef)")})
    EXPECT_NE(refused.message().find(says), std::string::npos) << refused;
  std::vector<uint64_t> damaged;
  const auto salvaged = Read(disk_, 7, mine->files[0], &damaged);
  ASSERT_TRUE(salvaged.ok()) << salvaged.status();
  EXPECT_EQ(*salvaged, std::vector<TestRecord>());
  EXPECT_EQ(damaged, std::vector<uint64_t>{0});
}

TEST_F(CheckpointTest, VersionOneHasNoIdentity) {
  std::array<std::byte, kCheckpointHeaderBytes> block{};
  CheckpointHeader header{.checkpoint = 7, .table = 3};
  const auto decode = [&](uint8_t version) {
    header.Encode(block);
    block[12] = std::byte{version};
    const uint32_t crc = Crc32c(std::span(block).subspan(12));
    std::memcpy(block.data() + 8, &crc, sizeof crc);
    return CheckpointHeader::Decode(block);
  };
  EXPECT_TRUE(decode(1).ok());
  header.database = Identity::FromText("0123456789abcdef0123456789abcdef");
  EXPECT_TRUE(absl::IsDataLoss(decode(1).status()));
  EXPECT_EQ(decode(2)->database, header.database);
}

TEST_F(CheckpointTest, NewerVersionIsRefusedBySayingSo) {
  const auto description = Write(7, {{1, 2, 3, "a", "b"}});
  ASSERT_TRUE(description.ok());
  ImageFileSystem images;
  const std::string path = CheckpointDirectory(kDirectory, 7) + "/" + description->files[0].name;
  CopyOut(disk_, path, &images);
  Image& image = images.files[path];
  image[12] = std::byte{kCheckpointVersion + 1};
  const uint32_t crc = Crc32c(std::span(image).subspan(12, kCheckpointHeaderBytes - 12));
  std::memcpy(image.data() + 8, &crc, sizeof crc);
  EXPECT_TRUE(absl::IsInvalidArgument(Read(images, 7, description->files[0]).status()));
}

TEST_F(CheckpointTest, ReadingBackStopsWhenAsked) {
  auto writer = CheckpointWriter::Create(&disk_, kDirectory, database_, 7, 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const TestRecord record = SomeRecords().front();
  ASSERT_TRUE((*writer)->BeginTable(record.table).ok());
  ASSERT_TRUE((*writer)->Add(ViewOf(record)).ok());
  CheckpointDescription description;
  const Status stopped = (*writer)->Finish(&description, [] { return absl::CancelledError("enough"); });
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
}

TEST_F(CheckpointTest, StraysAreRemoved) {
  ASSERT_TRUE(Write(7, SomeRecords()).ok());
  ASSERT_TRUE(Write(8, SomeRecords()).ok());
  ASSERT_TRUE(Write(9, {}).ok());
  // These are none of ours, whoever made them.
  const std::vector<std::string> foreign = {"checkpoint-00000000000000ZZ", "checkpoint-9", "checkpoint-of-monday"};
  for (const std::string& name : foreign) ASSERT_TRUE(disk_.MakeDirectory(absl::StrCat(kDirectory, "/", name)).ok());
  Manifest manifest;
  manifest.checkpoints.emplace_back().id = 8;
  ASSERT_TRUE(RemoveStrayCheckpoints(disk_, kDirectory, manifest).ok());
  EXPECT_TRUE(disk_.List(CheckpointDirectory(kDirectory, 8)).ok());
  EXPECT_EQ(disk_.List(kDirectory)->size(), 1 + foreign.size());
  EXPECT_TRUE(RemoveCheckpoint(disk_, kDirectory, 8).ok());
  EXPECT_TRUE(RemoveCheckpoint(disk_, kDirectory, 8).ok());
  EXPECT_EQ(disk_.List(kDirectory)->size(), foreign.size());
}

}  // namespace checkpoint_test
}  // namespace gannet::log
