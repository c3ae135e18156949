// Undamaged logs: numbering, takeovers, torn tails, interrupted segments.
#include <atomic>
#include <set>

#include "gtest/gtest.h"
#include "log/segment/log_reader.h"
#include "tests/log/log_builder.h"

namespace gannet::log {
namespace reader_test {

using Transactions = std::vector<TestTransaction>;

void Tear(SegmentBuilder* segment, uint64_t offset, uint64_t bytes) {
  std::fill_n(segment->image().begin() + static_cast<ptrdiff_t>(offset), bytes, std::byte{0});
}

TEST(LogReader, NoLogIsNotFound) {
  ImageFileSystem files;
  EXPECT_TRUE(absl::IsNotFound(ReadAll(files).summary.status()));
  files.files["/log/checkpoint-0000000000000001/table-1"] = Image(10);
  EXPECT_TRUE(absl::IsNotFound(ReadAll(files).summary.status()));
}

TEST(LogReader, ReadsBatchesOverSegments) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(8));
  first.Add(10, {Simple(9, "a"), Simple(10, std::string(5000, 'b'))});
  first.Add(11, {});
  SegmentBuilder second(HeaderAfter(first));
  second.Add(12, {Simple(13, "c")});
  Put(&files, &first);
  Put(&files, &second);

  const ReadResult read = ReadAll(files);
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, (Transactions{Simple(9, "a"), Simple(10, std::string(5000, 'b')), Simple(13, "c")}));
  const LogSummary& summary = *read.summary;
  EXPECT_EQ(summary.first_segment, 1u);
  EXPECT_EQ(summary.segments, 2u);
  EXPECT_EQ(summary.batches, 3u);
  EXPECT_EQ(summary.transactions, 3u);
  EXPECT_EQ(summary.changes, 3u);
  EXPECT_EQ(summary.last_batch_wall_nanos, 1'700'000'000'000'000'003u);
  EXPECT_FALSE(summary.torn_tail);
  EXPECT_EQ(summary.end.segment, 2u);
  EXPECT_EQ(summary.end.offset, second.end());
  EXPECT_EQ(summary.end.next_batch, 4u);
  EXPECT_EQ(summary.end.run, 1u);
  EXPECT_EQ(summary.end.recovered_epoch, 12u);
  EXPECT_EQ(summary.end.last_epoch, 13u);
}

TEST(LogReader, TornTailIsDropped) {
  SegmentBuilder segment(FirstHeader(8));
  segment.Add(1, {Simple(1, "a")});
  const uint64_t torn = segment.Add(2, {Simple(2, std::string(6000, 'b'))});
  // Any sector may be missing: the header's, one in the middle, the last one.
  for (const uint64_t sector : {torn, torn + 1024, torn + 6000 / 512 * 512}) {
    ImageFileSystem files;
    SegmentBuilder copy = segment;
    Tear(&copy, sector, 512);
    Put(&files, &copy);
    const ReadResult read = ReadAll(files);
    ASSERT_TRUE(read.summary.ok()) << read.summary.status();
    EXPECT_EQ(read.transactions, Transactions{Simple(1, "a")});
    EXPECT_TRUE(read.summary->torn_tail);
    EXPECT_EQ(read.summary->torn_tail_place, PathOf(1) + " at offset " + std::to_string(torn));
    EXPECT_EQ(read.summary->end.offset, torn);
    EXPECT_EQ(read.summary->end.next_batch, 2u);
    EXPECT_EQ(read.summary->end.recovered_epoch, 1u);
  }
}

TEST(LogReader, InvalidBeforeAValidBatchIsDamage) {
  SegmentBuilder segment(FirstHeader(8));
  const uint64_t damaged = segment.Add(1, {Simple(1, "a")});
  const uint64_t valid = segment.Add(2, {Simple(2, "b")});
  for (const uint64_t at : {damaged, damaged + kBatchHeaderBytes}) {
    ImageFileSystem files;
    SegmentBuilder copy = segment;
    Tear(&copy, at, 16);
    Put(&files, &copy);
    const Status status = ReadAll(files).summary.status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(PathOf(1) + " is damaged at offset " + std::to_string(at)), std::string::npos)
        << status;
    EXPECT_NE(status.message().find(std::to_string(valid)), std::string::npos) << status;
  }
}

TEST(LogReader, InvalidBatchWithGarbageBehindItIsDamage) {
  // The last batch but one was damaged, and the last one torn: acknowledged data is lost, which must be detected.
  ImageFileSystem files;
  SegmentBuilder segment(FirstHeader(8));
  const uint64_t damaged = segment.Add(1, {Simple(1, "a")});
  const uint64_t torn = segment.Add(2, {Simple(2, std::string(6000, 'b'))});
  segment.image()[damaged + kBatchHeaderBytes + 40] ^= std::byte{1};
  Tear(&segment, torn, 512);
  Put(&files, &segment);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files).summary.status()));
}

TEST(LogReader, BatchOfAnotherPlaceIsDamage) {
  ImageFileSystem files;
  SegmentBuilder segment(FirstHeader(8));
  SegmentHeader header = FirstHeader(8);
  header.first_batch = 2;
  SegmentBuilder other(header);
  segment.Add(1, {Simple(1, "a")});
  other.Add(1, {Simple(1, "a")});
  std::copy_n(other.image().begin() + kSegmentHeaderBytes, kDiskBlockBytes,
              segment.image().begin() + kSegmentHeaderBytes);
  Put(&files, &segment);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files).summary.status()));
}

TEST(LogReader, CopyOfABatchInAPayloadIsNoBatch) {
  // A database holds a backup of another log, and is torn within it.
  SegmentHeader other_header = FirstHeader(2);
  other_header.segment = 3;
  other_header.first_batch = 50;
  SegmentBuilder other(other_header);
  other.Add(1, {Simple(1, "a")});
  const std::string copied(reinterpret_cast<const char*>(other.image().data()) + kSegmentHeaderBytes, kDiskBlockBytes);
  ImageFileSystem files;
  SegmentBuilder segment(FirstHeader(8));
  constexpr size_t kBeforePayload = 8;  // in the change: control 2, table 1, length 2, version 1, key 1 + 1
  const size_t before = kDiskBlockBytes - kBatchHeaderBytes - kTransactionHeaderBytes - kBeforePayload;
  const uint64_t torn = segment.Add(2, {Simple(1, std::string(before, 'x') + copied)});
  Tear(&segment, torn, 512);
  Put(&files, &segment);
  const ReadResult read = ReadAll(files);
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_TRUE(read.summary->torn_tail);
}

SegmentHeader NextRun(const LogEnd& end, const SegmentHeader& like, uint64_t recovered_epoch) {
  SegmentHeader header = like;
  header.segment = end.segment + 1;
  header.run = end.run + 1;
  header.first_batch = end.next_batch;
  header.previous_end = end.offset;
  header.recovered_epoch = recovered_epoch;
  header.closed_epoch = recovered_epoch;
  return header;
}

TEST(LogReader, NextRunMakesTheTornTailVoidForEver) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(8));
  first.Add(1, {Simple(1, "a")});
  const uint64_t torn = first.Add(2, {Simple(2, "void")});
  SegmentBuilder cut = first;
  Tear(&cut, torn + kBatchHeaderBytes, 16);
  Put(&files, &cut);
  const LogEnd end = ReadAll(files).summary->end;

  SegmentBuilder second(NextRun(end, first.header(), 1));
  second.Add(3, {Simple(3, "b")});
  Put(&files, &second);
  EXPECT_EQ(ReadAll(files).transactions, (Transactions{Simple(1, "a"), Simple(3, "b")}));
  // The lost batch stays lost even if its content reappears.
  Put(&files, &first);
  const ReadResult read = ReadAll(files);
  EXPECT_EQ(read.transactions, (Transactions{Simple(1, "a"), Simple(3, "b")}));
  EXPECT_FALSE(read.summary->torn_tail);
  EXPECT_EQ(read.summary->end.next_batch, 3u);
  EXPECT_EQ(read.summary->end.run, 2u);
}

TEST(LogReader, EpochsThatWereNotRecoveredAreVoid) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(8));
  first.Add(5, {Simple(4, "a"), Simple(5, "void"), Simple(6, "void")});
  Put(&files, &first);
  EXPECT_EQ(ReadAll(files).summary->end.recovered_epoch, 5u);
  // The other nodes had closed only epoch 4. The new run is interrupted before its first batch, and another run
  // follows.
  SegmentBuilder second(NextRun(ReadAll(files).summary->end, first.header(), 4));
  Put(&files, &second);
  const ReadResult interrupted = ReadAll(files);
  EXPECT_EQ(interrupted.transactions, Transactions{Simple(4, "a")});
  EXPECT_EQ(interrupted.summary->end.recovered_epoch, 4u);
  EXPECT_EQ(interrupted.summary->end.last_epoch, 6u);
  EXPECT_EQ(interrupted.summary->end.offset, kSegmentHeaderBytes);
  SegmentBuilder third(NextRun(interrupted.summary->end, first.header(), 4));
  third.Add(8, {Simple(7, "b")});
  Put(&files, &third);
  const ReadResult read = ReadAll(files);
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.transactions, (Transactions{Simple(4, "a"), Simple(7, "b")}));
  EXPECT_EQ(read.summary->end.recovered_epoch, 8u);
}

TEST(LogReader, SegmentThatWasGivenUpIsVoidFromThere) {
  // Batch 2 was written to segment 1 with an error; in any case segment 2 has it.
  SegmentBuilder first(FirstHeader(8));
  first.Add(1, {Simple(1, "a")});
  SegmentBuilder second(HeaderAfter(first));
  second.Add(2, {Simple(2, "b")});
  for (const bool torn : {false, true}) {
    ImageFileSystem files;
    SegmentBuilder given_up = first;
    const uint64_t offset = given_up.Add(2, {Simple(2, "b")});
    if (torn) Tear(&given_up, offset, 512);
    Put(&files, &given_up);
    Put(&files, &second);
    const ReadResult read = ReadAll(files);
    ASSERT_TRUE(read.summary.ok()) << read.summary.status();
    EXPECT_EQ(read.transactions, (Transactions{Simple(1, "a"), Simple(2, "b")}));
    EXPECT_FALSE(read.summary->torn_tail);
  }
}

TEST(LogReader, SegmentWhoseMakingWasInterruptedIsEmpty) {
  SegmentBuilder first(FirstHeader(8));
  first.Add(1, {Simple(1, "a")});
  SegmentBuilder second(HeaderAfter(first));
  Image short_header(second.image().begin(), second.image().begin() + kSegmentHeaderBytes);
  const std::vector<Image> leftovers = {Image{},
                                        Image(100),
                                        Image(kSegmentHeaderBytes),
                                        Image(5 * kDiskBlockBytes),
                                        Image(short_header.begin(), short_header.begin() + 64),
                                        short_header};
  for (const Image& leftover : leftovers) {
    ImageFileSystem files;
    Put(&files, &first);
    files.files[PathOf(2)] = leftover;
    files.files[PathOf(3)] = leftovers[1];
    const ReadResult interrupted = ReadAll(files);
    ASSERT_TRUE(interrupted.summary.ok()) << leftover.size() << interrupted.summary.status();
    EXPECT_EQ(interrupted.transactions, Transactions{Simple(1, "a")});
    const LogEnd& end = interrupted.summary->end;
    EXPECT_EQ(end.segment, 3u);
    EXPECT_EQ(end.offset, kSegmentHeaderBytes);
    EXPECT_EQ(end.next_batch, 2u);
    EXPECT_EQ(end.run, 1u);
    // Interrupted segments stay where they are, in the middle of the log.
    SegmentBuilder next(NextRun(end, first.header(), 1));
    next.Add(2, {Simple(2, "b")});
    Put(&files, &next);
    const ReadResult read = ReadAll(files);
    ASSERT_TRUE(read.summary.ok()) << read.summary.status();
    EXPECT_EQ(read.transactions, (Transactions{Simple(1, "a"), Simple(2, "b")}));
  }
}

TEST(LogReader, LogOfNothingButAnInterruptedSegmentIsEmpty) {
  ImageFileSystem files;
  files.files[PathOf(1)] = Image(kSegmentHeaderBytes * 3);
  const ReadResult read = ReadAll(files);
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.summary->end.segment, 1u);
  EXPECT_EQ(read.summary->end.next_batch, 1u);
  EXPECT_EQ(read.summary->end.run, 0u);
  SegmentBuilder next(NextRun(read.summary->end, FirstHeader(4), 0));
  next.Add(1, {Simple(1, "a")});
  Put(&files, &next);
  EXPECT_EQ(ReadAll(files).transactions, Transactions{Simple(1, "a")});
}

TEST(LogReader, SegmentsBelowAreLeftOut) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(4));
  first.Add(1, {Simple(1, "a")});
  SegmentBuilder second(HeaderAfter(first));
  second.Add(2, {Simple(2, "b")});
  SegmentBuilder third(HeaderAfter(second));
  third.Add(3, {Simple(3, "c")});
  Put(&files, &second);
  Put(&files, &third);
  // Neither a gap nor other files below matter.
  files.files[PathOf(0)] = Image(77, std::byte{1});
  for (const uint64_t from : {2, 3}) {
    const ReadResult read = ReadAll(files, {.from_segment = from});
    ASSERT_TRUE(read.summary.ok()) << read.summary.status();
    EXPECT_EQ(read.transactions.size(), 4 - from);
    EXPECT_EQ(read.summary->first_segment, from);
    EXPECT_EQ(read.summary->end.recovered_epoch, 3u);
  }
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, {.from_segment = 1}).summary.status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, {.from_segment = 4}).summary.status()));
  files.files.erase(PathOf(0));
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files).summary.status()));
}

TEST(LogReader, WhatRemovedSegmentsClosedIsKnown) {
  ImageFileSystem files;
  SegmentBuilder first(FirstHeader(4));
  first.Add(41, {Simple(40, "a")});
  SegmentBuilder second(HeaderAfter(first));
  Put(&files, &second);
  const ReadResult read = ReadAll(files, {.from_segment = 2});
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  EXPECT_EQ(read.summary->end.recovered_epoch, 41u);
  EXPECT_EQ(read.summary->end.last_epoch, 41u);
}

TEST(LogReader, ManyThreadsSeeEverySegmentOnce) {
  ImageFileSystem files;
  SegmentBuilder segment(FirstHeader(4));
  for (uint64_t i = 1; i <= 20; ++i) {
    segment.Add(i, {Simple(i, "a")});
    Put(&files, &segment);
    segment = SegmentBuilder(HeaderAfter(segment));
  }
  std::array<std::atomic<int>, 21> seen{};
  const TransactionVisitor visit = [&](int thread, const TransactionView& view) {
    EXPECT_TRUE(thread >= 0 && thread < 4);
    ++seen[view.epoch];
    return absl::OkStatus();
  };
  const auto summary = ReadLog(files, kLogDirectory, {.threads = 4}, visit);
  ASSERT_TRUE(summary.ok()) << summary.status();
  for (size_t epoch = 1; epoch < seen.size(); ++epoch) EXPECT_EQ(seen[epoch], 1) << epoch;
  EXPECT_EQ(summary->end.next_batch, 21u);

  const TransactionVisitor refuse = [](int, const TransactionView&) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(ReadLog(files, kLogDirectory, {.threads = 4}, refuse).status()));
  EXPECT_TRUE(ReadLog(files, kLogDirectory, {}, nullptr).ok());
}

TEST(LogReader, BatchesLargerThanOneRead) {
  ImageFileSystem files;
  SegmentBuilder segment(FirstHeader(4000));
  Transactions all;
  for (const size_t bytes : {3 << 20, 5 << 20, 100, 4 << 20}) {
    all.push_back(Simple(all.size() + 1, std::string(bytes, static_cast<char>('a' + all.size()))));
    segment.Add(all.size(), {all.back()});
  }
  Put(&files, &segment);
  EXPECT_EQ(ReadAll(files).transactions, all);
}

}  // namespace reader_test
}  // namespace gannet::log
