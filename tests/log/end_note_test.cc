// A missing end of a log is detected: LOG-END says how far the log reaches, and nothing in it can become false by a
// crash.
#include "log/segment/end_note.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "log/file/aligned_buffer.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"
#include "log/format/segment_format.h"
#include "log/manifest/manifest.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace end_note_test {

using testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return std::string(kLogDirectory) + "/" + name;
}

std::vector<std::string> Segments(FaultyFileSystem& disk) {
  std::vector<std::string> names = disk.List(kLogDirectory).value();
  std::erase_if(names, [](const std::string& name) { return !SegmentOfName(name).has_value(); });
  return names;
}

// Truncates a file to `bytes` (a multiple of blocks), as a user or a copying program may do.
void Cut(FaultyFileSystem* disk, const std::string& path, uint64_t bytes) {
  AlignedBuffer content(bytes);
  ASSERT_EQ(disk->Open(path, OpenMode::kRead).value()->Read(0, content.span()).value(), bytes);
  ASSERT_TRUE(disk->Remove(path).ok());
  const auto file = disk->Open(path, OpenMode::kCreate).value();
  ASSERT_TRUE(file->Write(0, content.span()).ok());
}

Status ReadAs(FileSystem& disk, bool salvage = false) {
  return ReadLog(disk, kLogDirectory, {.salvage = salvage, .make_durable = !salvage}, nullptr).status();
}

// A log of several segments; every transaction is acknowledged.
class EndNoteTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeLogDirectory(&disk_);
    log_ = StartLog(&disk_, {}, SmallLog());
    writer_ = log_->OpenWriter().value();
    CommitUntil(4);
  }

  void CommitUntil(uint64_t segments) {
    while (log_->statistics().segments < segments) CommitOne();
    CommitOne();
  }
  void CommitOne() {
    const uint64_t epoch = Commit(writer_.get(), {1, committed_}, 4000).value();
    ASSERT_TRUE(log_->WaitDurable(epoch, kLongEnough).ok());
    ++committed_;
  }
  void Close() {
    writer_.reset();
    ASSERT_TRUE(log_->Stop().ok());
    log_.reset();
  }
  void Kill() {
    disk_.PowerOff();
    writer_.reset();
    log_.reset();
    disk_.PowerOn();
  }
  // Reading the log is refused with the name of the file, and nothing changes.
  void ExpectRefused(const std::string& name) {
    const std::vector<std::string> before = disk_.List(kLogDirectory).value();
    const uint64_t writes = disk_.operations(DiskOperation::kWrite);
    const Status refused = ReadAs(disk_);
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(PathOf(name)));
    EXPECT_EQ(disk_.List(kLogDirectory).value(), before);
    EXPECT_EQ(disk_.operations(DiskOperation::kWrite), writes);
    const StatusOr<LogSummary> salvaged = ReadLog(disk_, kLogDirectory, {.salvage = true}, nullptr);
    ASSERT_TRUE(salvaged.ok()) << salvaged.status();
    ASSERT_FALSE(salvaged->damages.empty());
    EXPECT_EQ(salvaged->damages.front().file, PathOf(name));
  }

  FaultyFileSystem disk_{21};
  std::unique_ptr<Log> log_;
  std::unique_ptr<LogWriter> writer_;
  uint64_t committed_ = 0;
};

TEST_F(EndNoteTest, RemovedSegmentsAtTheEndAreMissed) {
  for (const bool clean : {true, false}) {
    if (log_ == nullptr) {
      log_ = StartLog(&disk_, Recover(disk_).end, SmallLog());
      writer_ = log_->OpenWriter().value();
      CommitUntil(2);
    }
    clean ? Close() : Kill();
    EXPECT_EQ(Recover(disk_).epochs.size(), committed_);
    const auto whole = disk_.CrashedCopy(1);
    const std::vector<std::string> segments = Segments(disk_);
    for (size_t gone = segments.size(); gone-- > 0;) {
      ASSERT_TRUE(disk_.Remove(PathOf(segments[gone])).ok());
      ExpectRefused(segments.back());
    }
    // Restores the segments for the next round.
    for (const std::string& name : segments) {
      const auto from = whole->Open(PathOf(name), OpenMode::kRead).value();
      AlignedBuffer content(from->Size().value());
      ASSERT_TRUE(from->Read(0, content.span()).ok());
      ASSERT_TRUE(disk_.Open(PathOf(name), OpenMode::kCreate).value()->WriteDurably(0, content.span()).ok());
    }
    ASSERT_TRUE(disk_.SyncDirectory(kLogDirectory).ok());
    EXPECT_EQ(Recover(disk_).epochs.size(), committed_);
  }
}

TEST_F(EndNoteTest, ALastSegmentThatWasCutIsMissed) {
  Kill();
  const std::string last = Segments(disk_).back();
  Cut(&disk_, PathOf(last), kSegmentHeaderBytes);
  ExpectRefused(last);
  Cut(&disk_, PathOf(last), 0);
  ExpectRefused(last);
}

TEST_F(EndNoteTest, AfterACleanCloseNothingAtTheEndMayBeTorn) {
  Close();
  const LogEnd end = Recover(disk_).end;
  const std::string last = Segments(disk_).back();
  const std::string path = PathOf(last);
  const EndNote note = ReadEndNote(disk_, kLogDirectory).value();
  EXPECT_EQ(note.segment, end.segment);
  EXPECT_EQ(note.offset, end.offset);
  EXPECT_EQ(note.next_batch, end.next_batch);
  EXPECT_EQ(note.run, end.run);
  EXPECT_EQ(note.closed_epoch, end.recovered_epoch);
  // Destroys the last batch in a file that keeps its length.
  AlignedBuffer zeros(kDiskBlockBytes);
  ASSERT_TRUE(
      disk_.Open(path, OpenMode::kReuse).value()->WriteDurably(end.offset - kDiskBlockBytes, zeros.span()).ok());
  ExpectRefused(last);
}

TEST_F(EndNoteTest, ANoteThatIsGoneIsMissedIfTheManifestHasIt) {
  Manifest manifest;
  ASSERT_TRUE(WriteManifest(disk_, kLogDirectory, manifest).ok());
  Close();
  const auto old = disk_.CrashedCopy(1);
  ASSERT_TRUE(old->Remove(PathOf(kEndNoteName)).ok());
  EXPECT_TRUE(ReadAs(*old).ok()) << "no version before this one had it";
  manifest.log_end = true;
  ASSERT_TRUE(WriteManifest(disk_, kLogDirectory, manifest).ok());
  EXPECT_TRUE(ReadAs(disk_).ok());
  Cut(&disk_, PathOf(kEndNoteName), 0);
  ExpectRefused(kEndNoteName);
  ASSERT_TRUE(disk_.Remove(PathOf(kEndNoteName)).ok());
  ExpectRefused(kEndNoteName);
}

// Block of LOG-END that has the newest note.
uint64_t NewestBlock(FileSystem& disk) {
  AlignedBuffer blocks(2 * kEndNoteBytes);
  EXPECT_TRUE(disk.Open(PathOf(kEndNoteName), OpenMode::kRead).value()->Read(0, blocks.span()).ok());
  const auto sequence = [&](uint64_t block) {
    return LoadLittle<uint64_t>(blocks.data() + block * kEndNoteBytes + 16);
  };
  return sequence(1) > sequence(0) ? 1 : 0;
}

// A note lies in one sector, so a wrong checksum of the newest one is damage and no torn write: the one before would
// say less than was known.
TEST_F(EndNoteTest, AFlippedBitOfTheNewestNoteIsDamage) {
  Close();
  const uint64_t newest = NewestBlock(disk_) * kEndNoteBytes;
  for (uint64_t at = 0; at < kEndNoteBytes; at += at < 128 ? 1 : 509) {
    if (at >= 104 && at < 112) continue;  // the number at the end of the note: below
    const auto copy = disk_.CrashedCopy(1);
    ASSERT_TRUE(copy->FlipBit(PathOf(kEndNoteName), newest + at, static_cast<int>(at % 8)).ok());
    const Status refused = ReadAs(*copy);
    EXPECT_TRUE(absl::IsDataLoss(refused)) << at << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(PathOf(kEndNoteName) + " is damaged at offset "));
  }
  ASSERT_TRUE(disk_.FlipBit(PathOf(kEndNoteName), newest + 33, 0).ok());
  ExpectRefused(kEndNoteName);
}

// Without its newest note, nobody would miss the last batches.
TEST_F(EndNoteTest, ADamagedNoteDoesNotHideLostBatches) {
  Close();
  const LogEnd end = Recover(disk_).end;
  const std::string last = PathOf(Segments(disk_).back());
  AlignedBuffer zeros(end.offset - kSegmentHeaderBytes);
  ASSERT_TRUE(disk_.Open(last, OpenMode::kReuse).value()->WriteDurably(kSegmentHeaderBytes, zeros.span()).ok());
  ASSERT_TRUE(disk_.FlipBit(PathOf(kEndNoteName), NewestBlock(disk_) * kEndNoteBytes + 8, 0).ok());
  ExpectRefused(kEndNoteName);
}

TEST_F(EndNoteTest, ADamagedNoteBeforeTheNewestIsNotNeededButTold) {
  Close();
  const EndNote last = ReadEndNote(disk_, kLogDirectory).value();
  std::string doubt = "not set";
  EXPECT_TRUE(ReadEndNote(disk_, kLogDirectory, &doubt).ok());
  EXPECT_EQ(doubt, "");
  const uint64_t older = (1 - NewestBlock(disk_)) * kEndNoteBytes;
  for (const uint64_t at : {0, 8, 12, 33, 1000}) {
    const auto copy = disk_.CrashedCopy(1);
    ASSERT_TRUE(copy->FlipBit(PathOf(kEndNoteName), older + at, 0).ok());
    EXPECT_EQ(ReadEndNote(*copy, kLogDirectory, &doubt).value(), last);
    EXPECT_THAT(doubt, HasSubstr("It has the note before the newest"));
    EXPECT_TRUE(ReadAs(*copy).ok());
  }
  AlignedBuffer zeros(kEndNoteBytes);
  ASSERT_TRUE(disk_.Open(PathOf(kEndNoteName), OpenMode::kReuse).value()->WriteDurably(older, zeros.span()).ok());
  ExpectRefused(kEndNoteName);
}

// Persistent memory is written from front to back. Wherever a crash stops that, one of the two notes counts.
TEST_F(EndNoteTest, ANoteThatWasBeingWrittenLeavesTheNoteBefore) {
  Close();
  const EndNote before = ReadEndNote(disk_, kLogDirectory).value();
  EndNote after = before;
  after.closed_epoch += 1000;
  const std::string path = PathOf(kEndNoteName);
  for (const bool first_use : {false, true}) {
    if (first_use) {
      ASSERT_TRUE(disk_.Remove(path).ok());
      ASSERT_TRUE(EndNoteFile(&disk_, kLogDirectory).Write(before).ok());
    }
    const auto whole = disk_.CrashedCopy(1);
    ASSERT_TRUE(EndNoteFile(whole.get(), kLogDirectory).Write(after).ok());
    const uint64_t block = NewestBlock(*whole) * kEndNoteBytes;
    AlignedBuffer old_note(kEndNoteBytes);
    AlignedBuffer new_note(kEndNoteBytes);
    ASSERT_TRUE(disk_.Open(path, OpenMode::kRead).value()->Read(block, old_note.span()).ok());
    ASSERT_TRUE(whole->Open(path, OpenMode::kRead).value()->Read(block, new_note.span()).ok());
    for (size_t done = 0; done <= 128; done += 8) {
      AlignedBuffer torn(kEndNoteBytes);
      std::copy_n(old_note.data(), kEndNoteBytes, torn.data());
      std::copy_n(new_note.data(), done, torn.data());
      const auto copy = disk_.CrashedCopy(1);
      ASSERT_TRUE(copy->Open(path, OpenMode::kReuse).value()->WriteDurably(block, torn.span()).ok());
      const StatusOr<EndNote> read = ReadEndNote(*copy, kLogDirectory);
      ASSERT_TRUE(read.ok()) << done << ": " << read.status();
      EXPECT_EQ(*read, done >= 112 ? after : before) << done;
    }
  }
}

TEST_F(EndNoteTest, ANoteOfANewerVersionIsRefusedAsThat) {
  Close();
  const std::string path = PathOf(kEndNoteName);
  AlignedBuffer block(kEndNoteBytes);
  EndNote{}.Encode(1000, block.span().first<kEndNoteBytes>());
  block.data()[12] = std::byte{4};
  const uint32_t crc = Crc32c(std::span<const std::byte>(block.span()).subspan(12));
  StoreLittle(&block.data()[8], crc);
  ASSERT_TRUE(disk_.Open(path, OpenMode::kReuse).value()->WriteDurably(0, block.span()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadAs(disk_)));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadAs(disk_, /*salvage=*/true)));
}

// A note of version 1 ended where the identity is now.
TEST_F(EndNoteTest, ANoteOfTheFirstVersionIsRead) {
  Close();
  EndNote note = ReadEndNote(disk_, kLogDirectory).value();
  AlignedBuffer block(kEndNoteBytes);
  note.Encode(1000, block.span().first<kEndNoteBytes>());
  block.data()[12] = std::byte{1};
  StoreLittle(&block.data()[104], uint64_t{0});  // the number at the end came later
  StoreLittle(&block.data()[8], Crc32c(std::span<const std::byte>(block.span()).subspan(12)));
  uint64_t sequence = 0;
  const auto bytes = std::span<const std::byte>(block.span()).first<kEndNoteBytes>();
  EXPECT_EQ(EndNote::Decode(bytes, &sequence).value(), note);
  note.database = Identity::FromText("0123456789abcdef0123456789abcdef");
  note.Encode(1000, block.span().first<kEndNoteBytes>());
  EXPECT_EQ(EndNote::Decode(bytes, &sequence).value(), note);
  block.data()[12] = std::byte{1};
  StoreLittle(&block.data()[104], uint64_t{0});  // the number at the end came later
  StoreLittle(&block.data()[8], Crc32c(std::span<const std::byte>(block.span()).subspan(12)));
  EXPECT_TRUE(absl::IsDataLoss(EndNote::Decode(bytes, &sequence).status())) << "it has no identity in version 1";
}

TEST_F(EndNoteTest, TheNoteOfAnotherDatabaseIsRefused) {
  Close();
  EndNote note = ReadEndNote(disk_, kLogDirectory).value();
  Manifest manifest{.database = "0123456789abcdef0123456789abcdef"};
  ASSERT_TRUE(WriteManifest(disk_, kLogDirectory, manifest).ok());
  EXPECT_TRUE(ReadAs(disk_).ok()) << "this log says no database";
  note.database = Identity::FromText(manifest.database);
  ASSERT_TRUE(EndNoteFile(&disk_, kLogDirectory).Write(note).ok());
  EXPECT_TRUE(ReadAs(disk_).ok());
  note.database.bytes[15] ^= 1;
  ASSERT_TRUE(EndNoteFile(&disk_, kLogDirectory).Write(note).ok());
  ExpectRefused(kEndNoteName);
  EXPECT_THAT(std::string(ReadAs(disk_).message()),
              HasSubstr("of another database (0123456789abcdef0123456789abcdee)"));
  ASSERT_TRUE(disk_.Remove(PathOf("MANIFEST")).ok());
  EXPECT_TRUE(ReadAs(disk_).ok()) << "without a manifest it is unknown which is meant";
}

TEST_F(EndNoteTest, ANoteThatSaysLessThanTheOneBeforeStopsTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Close();
  EndNote note = ReadEndNote(disk_, kLogDirectory).value();
  EndNoteFile file(&disk_, kLogDirectory);
  note.offset += kDiskBlockBytes;
  ASSERT_TRUE(file.Write(note).ok());
  note.offset -= kDiskBlockBytes;
  EXPECT_DEATH(file.Write(note).IgnoreError(), "LOG-END: run .* after run");
}

// Salvage continues from what is left, and so do all later runs.
TEST_F(EndNoteTest, AfterSalvageTheLogReachesWhatWasSalvaged) {
  Close();
  ASSERT_TRUE(disk_.Remove(PathOf(Segments(disk_).back())).ok());
  const auto summary = ReadLog(disk_, kLogDirectory, {.salvage = true, .make_durable = true}, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  log_ = StartLog(&disk_, summary->end, SmallLog());
  writer_ = log_->OpenWriter().value();
  committed_ = 100'000;
  CommitOne();
  Kill();
  EXPECT_TRUE(Recover(disk_).Has({1, 100'000}));
}

// --- Interruption at each operation ---

// Cuts the power when `at` operations that change something have passed.
class PowerCutAt {
 public:
  PowerCutAt(FaultyFileSystem* disk, uint64_t at) : disk_(disk), at_(at) {
    disk_->SetOptions({.before = [this](DiskOperation operation, const std::string&) {
      const bool changes = operation == DiskOperation::kWrite || operation == DiskOperation::kSync ||
                           operation == DiskOperation::kRename || operation == DiskOperation::kRemove ||
                           operation == DiskOperation::kSyncDirectory;
      if (changes && passed_++ == at_) disk_->PowerOff();
    }});
  }
  ~PowerCutAt() { disk_->SetOptions({}); }
  bool happened() const { return passed_ > at_; }

 private:
  FaultyFileSystem* const disk_;
  const uint64_t at_;
  std::atomic<uint64_t> passed_{0};
};

LogOptions TinyLog() {
  LogOptions options = SmallLog();
  options.segment_bytes = 96 << 10;
  options.buffer_bytes = 8 << 10;
  return options;
}

// The work of a run: commits over several segments, removes some segments, whose files are reused for later ones, and
// closes the log. Appends every acknowledged name to *acknowledged; ends at an error.
Status WorkAndClose(Log* log, uint64_t run, std::vector<Name>* acknowledged) {
  StatusOr<std::unique_ptr<LogWriter>> writer = log->OpenWriter();
  if (!writer.ok()) return writer.status();
  for (uint64_t i = 0; i < 12; ++i) {
    if (i % 4 == 2) {
      const StatusOr<uint64_t> segment = log->BeginSegment();
      if (!segment.ok()) return segment.status();
      if (i == 6) {
        acknowledged->clear();
        GANNET_RETURN_IF_ERROR(log->RemoveSegmentsBelow(*segment));
      }
    }
    const StatusOr<uint64_t> epoch = Commit(writer->get(), {run, i}, 2000);
    if (!epoch.ok()) return epoch.status();
    // The power may be cut in the meantime: then nothing becomes durable.
    Status durable;
    do {
      durable = log->WaitDurable(*epoch, absl::Milliseconds(2));
    } while (!durable.ok() && log->health().ok());
    GANNET_RETURN_IF_ERROR(durable);
    acknowledged->push_back({run, i});
  }
  return log->Stop();
}

Recovered RecoverWhatIsLeft(FaultyFileSystem& disk) {
  return Recover(disk, FindLogBegin(disk, kLogDirectory).value().segment);
}

TEST(EndNoteCrash, EveryOperationMayBeTheLastOne) {
  uint64_t cuts = 0;
  for (bool cut_again = true; cut_again; ++cuts) {
    FaultyFileSystem disk(100 + cuts);
    MakeLogDirectory(&disk);
    std::vector<Name> acknowledged;
    {
      auto log = StartLog(&disk, {}, TinyLog());
      ASSERT_TRUE(WorkAndClose(log.get(), 1, &acknowledged).ok());
    }
    const LogEnd end = RecoverWhatIsLeft(disk).end;
    {
      const PowerCutAt cut(&disk, cuts);
      if (StatusOr<std::unique_ptr<Log>> log = Log::Create(&disk, kLogDirectory, end, TinyLog()); log.ok()) {
        ASSERT_TRUE((*log)->Start(nullptr).ok());
        WorkAndClose(log->get(), 2, &acknowledged).IgnoreError();
      }
      cut_again = cut.happened();
    }
    if (cut_again) disk.PowerOn();
    for (int again = 0; again < 2; ++again) {
      const Recovered recovered = RecoverWhatIsLeft(disk);
      for (const Name& name : acknowledged) ASSERT_TRUE(recovered.Has(name)) << cuts << ": " << name.second;
      const uint64_t run = 3 + static_cast<uint64_t>(again);
      auto log = StartLog(&disk, recovered.end, TinyLog());
      ASSERT_TRUE(WorkAndClose(log.get(), run, &acknowledged).ok()) << cuts;
    }
  }
  EXPECT_GT(cuts, 50u);
}

}  // namespace end_note_test
}  // namespace gannet::log
