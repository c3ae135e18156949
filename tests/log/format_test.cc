// Encoding and decoding of segments, batches and transactions on plain buffers.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "tests/log/log_builder.h"

namespace gannet::log {
namespace format_test {

TEST(Crc32c, IsTheStandardOne) {
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c(BytesOf(digits)), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
  // The values are those of RFC 3720, B.4: 32 bytes of zeros, of ones.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
}

TEST(Crc32c, GoesOnFromWhatIsBefore) {
  const std::string digits = "123456789";
  for (size_t cut = 0; cut <= digits.size(); ++cut) {
    const auto bytes = BytesOf(digits);
    EXPECT_EQ(Crc32c(bytes.subspan(cut), Crc32c(bytes.first(cut))), 0xe3069283u);
  }
}

TEST(SegmentName, RoundTrip) {
  EXPECT_EQ(SegmentName(0x2a), "log-000000000000002a");
  EXPECT_EQ(SegmentOfName("log-000000000000002a"), 0x2a);
  EXPECT_EQ(SegmentOfName(SegmentName(~uint64_t{0})), ~uint64_t{0});
  for (const char* name : {"log-2a", "log-000000000000002A", "log-000000000000002a.tmp", "xog-000000000000002a", "",
                           "log-00000000000000-1"}) {
    EXPECT_EQ(SegmentOfName(name), std::nullopt) << name;
  }
}

const SegmentHeader kHeader{.segment = 7,
                            .bytes = 1 << 20,
                            .run = 3,
                            .node = 2,
                            .num_nodes = 5,
                            .first_batch = 99,
                            .previous_end = 8192,
                            .recovered_epoch = 1234567890123,
                            .closed_epoch = 1234567890124,
                            .database = Identity::FromText("0123456789abcdef0123456789ABCDEF"),
                            .run_identity = Identity::FromText("00112233445566778899aabbccddeeff"),
                            .previous_run_identity = Identity::FromText("ffeeddccbbaa99887766554433221100")};

TEST(SegmentHeader, RoundTrip) {
  std::array<std::byte, kSegmentHeaderBytes> block;
  block.fill(std::byte{0xff});
  kHeader.Encode(block);
  const auto header = SegmentHeader::Decode(block);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->segment, kHeader.segment);
  EXPECT_EQ(header->bytes, kHeader.bytes);
  EXPECT_EQ(header->run, kHeader.run);
  EXPECT_EQ(header->node, kHeader.node);
  EXPECT_EQ(header->num_nodes, kHeader.num_nodes);
  EXPECT_EQ(header->first_batch, kHeader.first_batch);
  EXPECT_EQ(header->previous_end, kHeader.previous_end);
  EXPECT_EQ(header->recovered_epoch, kHeader.recovered_epoch);
  EXPECT_EQ(header->closed_epoch, kHeader.closed_epoch);
  EXPECT_EQ(header->database, kHeader.database);
  EXPECT_EQ(header->database.ToText(), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(block[88], std::byte{0x01});
  EXPECT_EQ(header->run_identity, kHeader.run_identity);
  EXPECT_EQ(block[113], std::byte{0x11});
  EXPECT_EQ(header->previous_run_identity, kHeader.previous_run_identity);
  EXPECT_EQ(block[128], std::byte{0xff});
}

TEST(SegmentHeader, EarlierVersionsHaveNoIdentities) {
  for (uint32_t version = 1; version <= kFormatVersion; ++version) {
    SegmentHeader header = kHeader;
    header.version = version;
    std::array<std::byte, kSegmentHeaderBytes> block;
    header.Encode(block);
    EXPECT_EQ(SegmentHeader::Decode(block)->database.is_known(), version >= 4) << version;
    EXPECT_EQ(AllZero(std::span(block).subspan(88)), version < 4) << version;
    EXPECT_EQ(SegmentHeader::Decode(block)->run_identity.is_known(), version >= 5) << version;
    EXPECT_EQ(SegmentHeader::Decode(block)->previous_run_identity.is_known(), version >= 5) << version;
    EXPECT_EQ(AllZero(std::span(block).subspan(112)), version < 5) << version;
  }
}

TEST(IdentityTest, OnlyThirtyTwoHexDigitsAreOne) {
  for (const char* text : {"", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdeg",
                           "0123456789abcdef0123456789abcdef0", "00000000000000000000000000000000"}) {
    EXPECT_FALSE(Identity::FromText(text).is_known()) << text;
  }
  const Identity known = kHeader.database;
  Identity other = known;
  other.bytes[0] ^= 1;
  EXPECT_EQ(OtherDatabase(known, known), "");
  EXPECT_EQ(OtherDatabase({}, known), "");
  EXPECT_EQ(OtherDatabase(known, {}), "");
  EXPECT_NE(OtherDatabase(other, known), "");
}

TEST(SegmentHeader, EachVersionSaysInItsWayThatTheFileIsReused) {
  for (uint32_t version = 1; version <= kFormatVersion; ++version) {
    for (const bool reused : {false, true}) {
      SegmentHeader header = kHeader;
      header.version = version;
      header.reused = reused;
      std::array<std::byte, kSegmentHeaderBytes> block;
      header.Encode(block);
      const auto read = SegmentHeader::Decode(block);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->reused, version == 2 || (version >= 3 && reused)) << version;
    }
  }
}

TEST(SegmentHeader, EveryFlippedBitIsSeen) {
  std::array<std::byte, kSegmentHeaderBytes> block;
  kHeader.Encode(block);
  for (size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(SegmentHeader::Decode(block).ok()) << bit;
    EXPECT_FALSE(SegmentHeader::Torn(block)) << bit;
    block[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST(SegmentHeader, OfANewerVersionIsRefusedBySayingSo) {
  std::array<std::byte, kSegmentHeaderBytes> block;
  SegmentHeader newer = kHeader;
  newer.version = kFormatVersion + 1;
  newer.Encode(block);
  const auto header = SegmentHeader::Decode(block);
  EXPECT_TRUE(absl::IsInvalidArgument(header.status()));
  EXPECT_NE(header.status().message().find(absl::StrCat("version ", kFormatVersion + 1)), std::string::npos)
      << header.status();
}

TEST(SegmentHeader, WrittenFromFrontToBackIsTornUntilItsEnd) {
  std::array<std::byte, kSegmentHeaderBytes> whole;
  kHeader.Encode(whole);
  for (size_t done = 0; done < whole.size(); done += 8) {
    std::array<std::byte, kSegmentHeaderBytes> block{};
    std::copy_n(whole.begin(), done, block.begin());
    EXPECT_TRUE(SegmentHeader::Torn(block) || SegmentHeader::Decode(block).ok()) << done;
  }
}

TEST(BatchHeader, RoundTripAndEveryFlippedBitIsSeen) {
  const BatchHeader batch{
      .batch = 5, .segment = 9, .closed_epoch = 77, .wall_nanos = 88, .body_bytes = 4096, .transactions = 3};
  std::array<std::byte, kBatchHeaderBytes> bytes;
  batch.Encode(bytes);
  const auto header = BatchHeader::Decode(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->batch, 5u);
  EXPECT_EQ(header->segment, 9u);
  EXPECT_EQ(header->closed_epoch, 77u);
  EXPECT_EQ(header->wall_nanos, 88u);
  EXPECT_EQ(header->body_bytes, 4096u);
  EXPECT_EQ(header->transactions, 3u);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(BatchHeader::Decode(bytes).ok()) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

// Everything that a transaction may hold, with the smallest and largest values.
std::vector<TestTransaction> AllKinds() {
  const std::string long_key(kMaxKeyBytes, 'k');
  const std::string long_payload(64 << 10, 'p');
  std::vector<TestTransaction> all;
  all.push_back({.epoch = 1});
  all.push_back({.epoch = 2, .changes = {{.table = 3, .version = 4, .key = "", .payload = ""}}});
  all.push_back(
      {.epoch = 3, .changes = {{.kind = ChangeKind::kRemove, .table = 65535, .version = 5, .key = long_key}}});
  all.push_back(
      {.epoch = ~uint64_t{0}, .changes = {{.version = ~uint64_t{0}, .key = long_key, .payload = long_payload}}});
  for (const size_t length : {kShortKeyBytes - 1, kShortKeyBytes, kShortKeyBytes + 1, size_t{255}, size_t{256}})
    all.push_back({.epoch = 3, .changes = {{.version = 6, .key = std::string(length, 'm'), .payload = "of one"}}});
  for (const TransactionPart part : {TransactionPart::kPart, TransactionPart::kDecision})
    all.push_back({.epoch = 4, .part = part, .id = TransactionIdOf(7, 8), .changes = {{.key = "x", .payload = "y"}}});
  TestTransaction lengths{.epoch = 5};
  for (size_t length = 0; length <= 17; ++length)
    lengths.changes.push_back(
        {.version = length, .key = std::string(length, 'a'), .payload = std::string(17 - length, 'b')});
  all.push_back(lengths);
  return all;
}

std::vector<TestChange> CopyOf(const std::vector<ChangeView>& views) {
  std::vector<TestChange> changes;
  for (const ChangeView& change : views) changes.push_back(CopyOf(change));
  return changes;
}

TEST(Transaction, RoundTripOfEveryKind) {
  std::vector<std::byte> body;
  for (const TestTransaction& transaction : AllKinds()) {
    const auto bytes = Encode(transaction);
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  TransactionDecoder decoder(body, kFormatVersion);
  for (const TestTransaction& expected : AllKinds()) {
    std::vector<ChangeView> changes;
    const StatusOr<bool> more = decoder.Next(&changes);
    ASSERT_TRUE(more.ok() && *more) << more.status();
    EXPECT_EQ(decoder.epoch(), expected.epoch);
    EXPECT_EQ(decoder.part(), expected.part);
    EXPECT_EQ(decoder.id(), expected.id);
    EXPECT_EQ(decoder.changes(), expected.changes.size());
    EXPECT_EQ(CopyOf(changes), expected.changes);
  }
  EXPECT_FALSE(decoder.Next().value());
  EXPECT_EQ(decoder.consumed(), body.size());
}

// Numbers of every encoded length, in all combinations.
TEST(Transaction, NumbersTakeAsManyBytesAsTheyNeedAndComeBack) {
  std::vector<uint64_t> numbers = {0};
  for (int bits = 8; bits <= 64; bits += 8) {
    const uint64_t most = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    numbers.insert(numbers.end(), {most / 255, most});
  }
  for (const uint64_t version : numbers) {
    for (const uint64_t key : numbers) {
      for (const uint16_t table : {uint16_t{0}, uint16_t{255}, uint16_t{256}, uint16_t{65535}}) {
        for (const size_t payload_bytes : {0, 1, 255, 256}) {
          std::vector<std::byte> buffer(kTransactionOverheadBytes + MaxChangeBytes(8, payload_bytes), std::byte{0xcc});
          TransactionEncoder encoder(buffer.data());
          std::byte* const payload = encoder.Add(ChangeKind::kPut, table, version, key, payload_bytes);
          std::fill_n(payload, payload_bytes, std::byte{7});
          std::fill_n(payload + payload_bytes, kPayloadSlackBytes, std::byte{0xee});  // as its filler may
          buffer.resize(encoder.Finish(1));
          TransactionDecoder decoder(buffer, kFormatVersion);
          std::vector<ChangeView> changes;
          ASSERT_TRUE(decoder.Next(&changes).value());
          ASSERT_EQ(changes.size(), 1u);
          const ChangeView& change = changes[0];
          EXPECT_EQ(change.version, version);
          EXPECT_EQ(change.table, table);
          EXPECT_EQ(change.payload.size(), payload_bytes);
          uint64_t big_endian = __builtin_bswap64(key);
          const auto expected = std::as_bytes(std::span(&big_endian, 1));
          EXPECT_TRUE(std::ranges::equal(change.key(), expected)) << key;
        }
      }
    }
  }
}

TEST(Transaction, AnIntegerKeyIsTheSameAsItsEightBytes) {
  const std::string bytes("\0\0\0\0\0\1\2\3", 8);
  std::vector<std::byte> buffer(kTransactionOverheadBytes + MaxChangeBytes(8, 0));
  TransactionEncoder encoder(buffer.data());
  encoder.Add(ChangeKind::kPut, 1, 1, uint64_t{0x010203}, 0);
  buffer.resize(encoder.Finish(1));
  EXPECT_EQ(buffer, Encode({.epoch = 1, .changes = {{.table = 1, .version = 1, .key = bytes}}}));
}

// Changes that no encoder writes, with a valid checksum.
TEST(Transaction, WhatCouldBeShorterOrIsNotDefinedIsRefused) {
  const auto read = [](const std::vector<uint8_t>& change) {
    std::vector<std::byte> body(kTransactionHeaderBytes + Padded8(change.size()));
    std::memcpy(body.data() + kTransactionHeaderBytes, change.data(), change.size());
    StoreLittle(&body[4], static_cast<uint32_t>(body.size()));
    StoreLittle(&body[24], uint32_t{1});
    StoreLittle(&body[0], Crc32c(std::span<const std::byte>(body).subspan(4)));
    return TransactionDecoder(body, kFormatVersion).Next().ok();
  };
  EXPECT_TRUE(read({0x11, 0x01, 1, 2, 9, 5, 'p', 'q'}));                       // version 9, key 5, payload "pq"
  EXPECT_FALSE(read({0x11, 0x11, 1, 2, 9, 5, 'p', 'q'}));                      // bit 12
  EXPECT_FALSE(read({0x11, 0x09, 1, 2, 9, 5, 'p', 'q'}));                      // a removal with a payload
  EXPECT_FALSE(read({0x19, 0x00, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5}));           // a version of 9 bytes
  EXPECT_FALSE(read({0x12, 0x00, 1, 9, 0, 5}));                                // a version of 2 bytes that needs 1
  EXPECT_FALSE(read({0x21, 0x00, 1, 9, 5, 0}));                                // a key of 2 bytes that needs 1
  EXPECT_FALSE(read({0xb1, 0x00, 1, 9, 5}));                                   // no such kind of key
  EXPECT_FALSE(read({0x11, 0x04, 1, 0, 9, 5}));                                // a table of 2 bytes that needs 1
  EXPECT_FALSE(read({0x11, 0x02, 1, 2, 0, 9, 5, 'p', 'q'}));                   // a length of 2 bytes that needs 1
  EXPECT_FALSE(read({0x11, 0x01, 1, 200, 9, 5, 'p', 'q'}));                    // a payload that is missing
  EXPECT_FALSE(read({0x91, 0x00, 1, 9, 65}));                                  // a long key that is missing
  EXPECT_FALSE(read({0x91, 0x00, 1, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8}));           // a long key of 8 bytes
  EXPECT_FALSE(read({0x11, 0x00, 1, 9, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));  // more padding than needed
  EXPECT_FALSE(read({0x11, 0x00, 1, 9, 5, 0, 1}));                             // padding that is not zero
  // A key of `length` bytes with its length in one byte (code 9) or in two (code 10).
  const auto read_key = [&read](uint8_t code, size_t length) {
    std::vector<uint8_t> change = {static_cast<uint8_t>(code << 4 | 1), 0x00, 1, 9, static_cast<uint8_t>(length)};
    if (code == 10) change.push_back(static_cast<uint8_t>(length >> 8));
    change.resize(change.size() + length, 'k');
    return read(change);
  };
  EXPECT_TRUE(read_key(9, kShortKeyBytes));
  EXPECT_FALSE(read_key(9, kShortKeyBytes + 1));
  EXPECT_FALSE(read_key(10, kShortKeyBytes));
  EXPECT_TRUE(read_key(10, kShortKeyBytes + 1));
  EXPECT_TRUE(read_key(10, kMaxKeyBytes));
  EXPECT_FALSE(read_key(10, kMaxKeyBytes + 1));
}

TEST(Transaction, IdNamesItsCoordinator) {
  EXPECT_EQ(IdNode(TransactionIdOf(12, ~uint64_t{0})), 12);
}

TEST(Transaction, EveryFlippedBitAndEveryCutIsSeen) {
  const auto whole = Encode({.epoch = 6,
                             .changes = {{.version = 1, .key = "key", .payload = "payload"},
                                         {.kind = ChangeKind::kRemove, .version = 2, .key = "gone"}}});
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    // A separate buffer, so that AddressSanitizer detects an over-read.
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut));
    EXPECT_TRUE(absl::IsDataLoss(TransactionDecoder(part, kFormatVersion).Next().status())) << cut;
  }
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> flipped = whole;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_TRUE(absl::IsDataLoss(TransactionDecoder(flipped, kFormatVersion).Next().status())) << bit;
  }
}

TEST(Transaction, DamagedOneCanBeSkipped) {
  std::vector<std::byte> body = Encode(Simple(1, "first"));
  const size_t first = body.size();
  body[kTransactionHeaderBytes + 8] ^= std::byte{1};
  const auto second = Encode(Simple(2, "second"));
  body.insert(body.end(), second.begin(), second.end());
  TransactionDecoder decoder(body, kFormatVersion);
  EXPECT_FALSE(decoder.Next().ok());
  EXPECT_EQ(decoder.consumed(), 0u);
  ASSERT_TRUE(decoder.SkipDamaged());
  EXPECT_EQ(decoder.consumed(), first);
  std::vector<ChangeView> changes;
  ASSERT_TRUE(decoder.Next(&changes).value());
  EXPECT_EQ(CopyOf(changes), Simple(2, "second").changes);
}

}  // namespace format_test
}  // namespace gannet::log
