// Logs damaged at every place: the reader returns a correct prefix or refuses, and never returns what was not written.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/crc32c.h"
#include "log/manifest/manifest_json.h"
#include "log/segment/log_reader.h"
#include "tests/log/log_builder.h"

namespace gannet::log {
namespace reader_damage_test {

using Transactions = std::vector<TestTransaction>;

struct SmallLog {
  ImageFileSystem files;
  Transactions all;         // in order
  size_t before_last = 0;   // transactions before the last batch
  size_t before_third = 0;  // before the last segment
};

// Three segments, two runs; unused room behind the batches of each.
SmallLog MakeSmallLog() {
  SmallLog log;
  const auto add = [&](SegmentBuilder* segment, uint64_t epoch, const Transactions& transactions) {
    log.before_last = log.all.size();
    segment->Add(epoch, transactions);
    log.all.insert(log.all.end(), transactions.begin(), transactions.end());
  };
  SegmentBuilder first(FirstHeader(3));
  add(&first, 1, {Simple(1, "a"), Simple(1, "b")});
  add(&first, 2, {Simple(2, "c")});
  SegmentBuilder second(HeaderAfter(first));
  add(&second, 3, {Simple(3, "d")});
  SegmentHeader header = HeaderAfter(second);
  header.run = 2;
  header.recovered_epoch = 3;
  header.closed_epoch = 3;
  SegmentBuilder third(header);
  log.before_third = log.all.size();
  add(&third, 5, {Simple(4, "e"), {.epoch = 5, .changes = {{.kind = ChangeKind::kRemove, .version = 9, .key = "k"}}}});
  add(&third, 6, {Simple(6, "f"), Simple(6, "g")});
  for (SegmentBuilder* segment : {&first, &second, &third}) Put(&log.files, segment);
  return log;
}

bool IsPrefix(const Transactions& read, const Transactions& all) {
  return read.size() <= all.size() && std::equal(read.begin(), read.end(), all.begin());
}

TEST(DamagedLog, EveryFlippedByte) {
  SmallLog log = MakeSmallLog();
  const std::string last = PathOf(3);
  size_t refused = 0;
  for (auto& [path, image] : log.files.files) {
    for (size_t at = 0; at < image.size(); ++at) {
      const std::byte flip{static_cast<uint8_t>(1 << at % 8)};
      image[at] ^= flip;
      const ReadResult read = ReadAll(log.files);
      image[at] ^= flip;
      if (!read.summary.ok()) {
        ASSERT_TRUE(absl::IsDataLoss(read.summary.status())) << path << " " << at << " " << read.summary.status();
        ++refused;
        continue;
      }
      ASSERT_TRUE(IsPrefix(read.transactions, log.all)) << path << " " << at;
      // Only the last batch can look like one that a crash has torn, and its loss is always reported.
      const size_t lost = log.all.size() - read.transactions.size();
      ASSERT_TRUE(lost == 0 || (path == last && read.transactions.size() == log.before_last)) << path << " " << at;
      ASSERT_TRUE(lost == 0 || read.summary->torn_tail) << path << " " << at;
    }
  }
  // One block each: three headers, three batches in the middle, and the first batch of the last segment.
  EXPECT_EQ(refused, 7 * kDiskBlockBytes);
}

TEST(DamagedLog, EveryLength) {
  const SmallLog log = MakeSmallLog();
  for (const auto& [path, image] : log.files.files) {
    SmallLog cut = log;
    for (size_t length = image.size(); length-- > 0;) {
      cut.files.files[path].resize(length);
      const ReadResult read = ReadAll(cut.files);
      if (!read.summary.ok()) {
        ASSERT_TRUE(absl::IsDataLoss(read.summary.status())) << path << " " << length << " " << read.summary.status();
        continue;
      }
      // The rest looks like a segment whose creation a crash has interrupted.
      ASSERT_EQ(path, PathOf(3)) << length;
      ASSERT_LE(length, kSegmentHeaderBytes);
      ASSERT_EQ(read.transactions.size(), log.before_third);
      ASSERT_TRUE(IsPrefix(read.transactions, log.all));
    }
  }
}

TEST(DamagedLog, EveryMissingOrExchangedSegment) {
  const SmallLog log = MakeSmallLog();
  for (const uint64_t segment : {1, 2}) {
    SmallLog missing = log;
    missing.files.files.erase(PathOf(segment));
    const Status status = ReadAll(missing.files).summary.status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  SmallLog exchanged = log;
  std::swap(exchanged.files.files[PathOf(1)], exchanged.files.files[PathOf(2)]);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(exchanged.files).summary.status()));
}

// Reads with one thing changed in the header of the last segment.
Status ReadWith(const std::function<void(SegmentHeader*)>& change) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(3));
  first.Add(1, {Simple(1, "a")});
  SegmentHeader header = HeaderAfter(first);
  change(&header);
  SegmentBuilder second(header);
  Put(&files, &first);
  files.files[PathOf(2)] = second.image();
  return ReadAll(files).summary.status();
}

TEST(DamagedLog, HeaderThatDoesNotFitItsPlace) {
  EXPECT_TRUE(ReadWith([](SegmentHeader*) {}).ok());
  const std::vector<std::function<void(SegmentHeader*)>> changes = {
      [](SegmentHeader* header) { header->segment = 3; },
      [](SegmentHeader* header) { header->run = 0; },
      [](SegmentHeader* header) { header->node = 1; },
      [](SegmentHeader* header) { header->num_nodes = 2; },
      [](SegmentHeader* header) { header->first_batch = 1; },
      [](SegmentHeader* header) { header->first_batch = 3; },
      [](SegmentHeader* header) { header->previous_end = 0; },
      [](SegmentHeader* header) { header->previous_end += 1; },
      [](SegmentHeader* header) { header->previous_end += kDiskBlockBytes; },
      [](SegmentHeader* header) { header->previous_end -= kDiskBlockBytes; },
      [](SegmentHeader* header) { header->previous_end = uint64_t{1} << 40; },
      [](SegmentHeader* header) { header->recovered_epoch = 1; },
      [](SegmentHeader* header) { header->closed_epoch = 0, header->recovered_epoch = 1, header->run = 2; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Status status = ReadWith(changes[i]);
    EXPECT_TRUE(absl::IsDataLoss(status)) << i << " " << status;
  }
  const Status newer = ReadWith([](SegmentHeader* header) { header->version = kFormatVersion + 1; });
  EXPECT_TRUE(absl::IsInvalidArgument(newer)) << newer;
  EXPECT_NE(newer.message().find(PathOf(2)), std::string::npos) << newer;
}

constexpr char kMine[] = "0123456789abcdef0123456789abcdef";
constexpr char kOther[] = "0123456789abcdef0123456789abcdee";

// Three segments with one transaction each, equal but for the databases that their headers name. With kMine in the
// manifest, unless it is empty.
ImageFileSystem LogOf(const std::array<const char*, 3>& databases, const std::string& manifest) {
  ImageFileSystem files;
  SegmentHeader header = FirstHeader(1);
  for (uint64_t i = 0; i < 3; ++i) {
    if (*databases[i] == 0) header.version = 3;
    if (*databases[i] != 0) header.version = kFormatVersion;
    header.database = Identity::FromText(databases[i]);
    SegmentBuilder segment(header);
    segment.Add(i + 1, {Simple(i + 1, std::string(1, static_cast<char>('a' + i)))});
    Put(&files, &segment);
    header = HeaderAfter(segment);
  }
  if (manifest.empty()) return files;
  const std::string text = ManifestToJson({.database = manifest});
  const std::string whole = absl::StrFormat("%s\ngannet-crc32c %08x %d\n", text, Crc32c(BytesOf(text)), text.size());
  const auto bytes = BytesOf(whole);
  files.files[std::string(kLogDirectory) + "/MANIFEST"] = Image(bytes.begin(), bytes.end());
  return files;
}

TEST(DamagedLog, ASegmentOfAnotherDatabase) {
  for (const std::array<const char*, 3>& good : {std::array{kMine, kMine, kMine}, {"", "", kMine}, {"", "", ""}}) {
    ImageFileSystem files = LogOf(good, kMine);
    EXPECT_EQ(ReadAll(files).transactions.size(), 3u) << ReadAll(files).summary.status();
  }
  for (size_t foreign = 0; foreign < 3; ++foreign) {
    std::array<const char*, 3> databases = {kMine, kMine, kMine};
    databases[foreign] = kOther;
    ImageFileSystem files = LogOf(databases, kMine);
    const Status refused = ReadAll(files).summary.status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    for (const std::string& says : {PathOf(foreign + 1), std::string("is of another database (") + kOther})
      EXPECT_NE(refused.message().find(says), std::string::npos) << refused;

    const ReadResult salvaged = ReadAll(files, {.salvage = true});
    ASSERT_TRUE(salvaged.summary.ok()) << salvaged.summary.status();
    EXPECT_EQ(salvaged.transactions.size(), 2u) << "nothing of the other database";
    for (const TestTransaction& transaction : salvaged.transactions) EXPECT_NE(transaction.epoch, foreign + 1);
    ASSERT_FALSE(salvaged.summary->damages.empty());
    bool named = false;
    for (const Damage& damage : salvaged.summary->damages) named = named || damage.file == PathOf(foreign + 1);
    EXPECT_TRUE(named);
    EXPECT_EQ(salvaged.summary->end.segment, 3u) << "its number is not given to another file";

    ImageFileSystem alone = LogOf(databases, "");
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(alone).summary.status())) << "two databases, whichever is meant";
  }
  // All later segments of a database with an identity have it.
  ImageFileSystem back = LogOf({kMine, "", kMine}, kMine);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(back).summary.status()));
}

TEST(Salvage, GivesAllButTheDamagedTransaction) {
  SmallLog log = MakeSmallLog();
  // The damage is in the payload of the first transaction of the first batch.
  log.files.files[PathOf(1)][kSegmentHeaderBytes + kBatchHeaderBytes + kTransactionHeaderBytes + 7] ^= std::byte{4};
  const ReadResult read = ReadAll(log.files, {.salvage = true});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, Transactions(log.all.begin() + 1, log.all.end()));
  ASSERT_EQ(read.summary->damages.size(), 1u);
  EXPECT_EQ(read.summary->damages[0].file, PathOf(1));
  EXPECT_EQ(read.summary->damages[0].offset, kSegmentHeaderBytes + kBatchHeaderBytes);
  EXPECT_EQ(read.summary->end.next_batch, 6u);
}

TEST(Salvage, GoesOnBehindADamagedBatchHeader) {
  SmallLog log = MakeSmallLog();
  log.files.files[PathOf(1)][kSegmentHeaderBytes + 20] ^= std::byte{4};
  const ReadResult read = ReadAll(log.files, {.salvage = true});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, Transactions(log.all.begin() + 2, log.all.end()));
  EXPECT_EQ(read.summary->damages.size(), 1u);
}

TEST(Salvage, ReadsSegmentsWithoutHeaderAndWithoutNeighbours) {
  SmallLog log = MakeSmallLog();
  log.files.files[PathOf(1)][50] ^= std::byte{4};
  ReadResult read = ReadAll(log.files, {.salvage = true});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, log.all);
  EXPECT_FALSE(read.summary->damages.empty());

  log.files.files.erase(PathOf(2));
  read = ReadAll(log.files, {.salvage = true});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  Transactions without = log.all;
  without.erase(without.begin() + 3);
  EXPECT_EQ(read.transactions, without);
}

TEST(Salvage, EveryFlippedByteGivesASubset) {
  SmallLog log = MakeSmallLog();
  for (auto& [path, image] : log.files.files) {
    for (size_t at = 0; at < image.size(); at += at % kDiskBlockBytes < 256 ? 1 : 97) {
      image[at] ^= std::byte{0x10};
      const ReadResult read = ReadAll(log.files, {.salvage = true});
      image[at] ^= std::byte{0x10};
      ASSERT_TRUE(read.summary.ok()) << path << " " << at << " " << read.summary.status();
      // At most the content of one batch is lost.
      ASSERT_GE(read.transactions.size() + 2, log.all.size()) << path << " " << at;
      auto next = log.all.begin();
      for (const TestTransaction& transaction : read.transactions) {
        next = std::find(next, log.all.end(), transaction);
        ASSERT_NE(next, log.all.end()) << path << " " << at;
        ++next;
      }
    }
  }
}

TEST(Salvage, StepsOverBlocksThatCannotBeRead) {
  FaultyFileSystem disk(1);
  ASSERT_TRUE(disk.MakeDirectory(kLogDirectory).ok());
  const SmallLog log = MakeSmallLog();
  for (const auto& [path, image] : log.files.files) {
    auto file = disk.Open(path, OpenMode::kCreate);
    ASSERT_TRUE(file.ok()) << file.status();
    std::unique_ptr<std::byte, decltype(&std::free)> aligned(
        static_cast<std::byte*>(std::aligned_alloc(kDiskBlockBytes, image.size())), &std::free);
    std::copy(image.begin(), image.end(), aligned.get());
    ASSERT_TRUE((*file)->WriteDurably(0, {aligned.get(), image.size()}).ok());
  }
  EXPECT_EQ(ReadAll(disk).transactions, log.all);
  // The faults are in segment 1: the header is read, then the large read fails, then its first block.
  disk.Schedule({.operation = DiskOperation::kRead, .after = 1, .times = 2, .path_contains = SegmentName(1)});
  const ReadResult read = ReadAll(disk, {.salvage = true});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, Transactions(log.all.begin() + 2, log.all.end()));
  EXPECT_GE(read.summary->damages.size(), 1u);
  disk.Schedule({.operation = DiskOperation::kRead, .after = 1, .times = 1, .path_contains = SegmentName(1)});
  EXPECT_FALSE(ReadAll(disk).summary.ok());
}

}  // namespace reader_damage_test
}  // namespace gannet::log
