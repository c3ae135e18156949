// How a client judges the image that a READ of a record brought.
#include "index/record_image.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::index {
namespace record_image_test {

constexpr uint16_t kTable = 7;
constexpr uint64_t kVersion = 41;

// The record of `key` with `payload_bytes` of payload, as one write left it.
std::vector<std::byte> RecordOf(const Key& key, uint32_t payload_bytes, uint64_t state = kVersion) {
  std::vector<std::byte> image(RecordBytes(key.size(), payload_bytes));
  rdma::StampImage(image.data(), image.size() / kLineBytes, state, state);
  StoreHeader(image.data(),
              {.key_bytes = static_cast<uint16_t>(key.size()), .payload_bytes = payload_bytes, .table = kTable}, key);
  return image;
}

RecordLook LookAt(const std::vector<std::byte>& image, const Key& key, size_t bytes) {
  return LookAtRecord(image.data(), bytes, kTable, key);
}
RecordLook LookAt(const std::vector<std::byte>& image, const Key& key) {
  return LookAt(image, key, image.size());
}

class RecordImageTest : public testing::Test {
 protected:
  const std::string bytes_ = absl::StrCat(std::string(60, 'k'), "1");
  const std::string others_ = absl::StrCat(std::string(60, 'k'), "2");
  const std::string long_ = absl::StrCat(std::string(kMaxKeyBytes - 1, 'k'), "1");
  const std::string other_long_ = absl::StrCat(std::string(kMaxKeyBytes - 1, 'k'), "2");
  // A record header of one line, one of two, and the longest.
  const std::array<Key, 3> keys_ = {Key(uint64_t{12}), Key(bytes_), Key(long_)};
  const std::array<Key, 3> other_keys_ = {Key(uint64_t{13}), Key(others_), Key(other_long_)};
};

// Keys of all lengths, in memory of exactly their size, and with anything behind them in the record.
TEST(RecordHeaderTest, ARecordHoldsItsKeyAndNoOther) {
  Random random(5);
  for (size_t size = 0; size <= 80; ++size) {
    std::vector<char> text(size);
    for (char& byte : text) byte = static_cast<char>(random.Below(256));
    const auto key = [&] { return Key(std::string_view(text.data(), text.size())); };
    std::vector<std::byte> image = RecordOf(key(), 24);
    EXPECT_TRUE(RecordHoldsKey(image.data(), key())) << size;
    for (size_t at = size; at < PayloadDataOffset(size) - kKeyDataOffset + 24; ++at) {
      image[rdma::PlaceOf(kKeyDataOffset + at)] = static_cast<std::byte>(random.Below(256));
    }
    EXPECT_TRUE(RecordHoldsKey(image.data(), key())) << size;
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
      EXPECT_FALSE(RecordHoldsKey(image.data(), key())) << size << " bytes, bit " << bit;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    }
    if (size == 0) continue;
    EXPECT_FALSE(RecordHoldsKey(image.data(), Key(std::string_view(text.data(), size - 1)))) << size;
    EXPECT_FALSE(RecordHoldsKey(RecordOf(Key(std::string_view(text.data(), size - 1)), 24).data(), key())) << size;
  }
}

TEST_F(RecordImageTest, AWholeRecordIsTold) {
  for (const Key& key : keys_) {
    for (const uint32_t payload : {0u, 8u, 500u}) {
      std::vector<std::byte> image = RecordOf(key, payload);
      const size_t size = image.size();
      image.resize(size + 2 * kLineBytes);  // bytes that a READ brings beyond the record have no effect
      for (const size_t bytes : {size, image.size()}) {
        const RecordLook look = LookAt(image, key, bytes);
        EXPECT_EQ(look.is, RecordImage::kWhole);
        EXPECT_EQ(look.state, kVersion);
        EXPECT_EQ(look.meta.payload_bytes, payload);
        EXPECT_EQ(look.bytes, size);
        EXPECT_FALSE(look.is_unsettled());
      }
    }
  }
}

TEST_F(RecordImageTest, ALongerRecordTellsHowMuchToRead) {
  for (const Key& key : keys_) {
    const std::vector<std::byte> image = RecordOf(key, 1000);
    for (size_t bytes = HeaderReadBytes(key.size()); bytes < image.size(); bytes += kLineBytes) {
      const RecordLook look = LookAt(image, key, bytes);
      ASSERT_EQ(look.is, RecordImage::kLonger) << bytes;
      EXPECT_EQ(look.bytes, image.size());
      EXPECT_FALSE(look.is_unsettled());
    }
    EXPECT_EQ(LookAt(image, key, image.size()).is, RecordImage::kWhole);
  }
}

TEST_F(RecordImageTest, LinesOfSeveralWritesAreTorn) {
  for (const Key& key : keys_) {
    const std::vector<std::byte> image = RecordOf(key, 300);
    for (size_t line = 0; line < image.size(); line += kLineBytes) {
      std::vector<std::byte> torn = image;
      StoreWord(torn.data() + line, line == 0 ? kVersion + 1 : rdma::VersionWord(kVersion + 1));
      EXPECT_EQ(LookAt(torn, key).is, RecordImage::kTorn) << line;
      EXPECT_TRUE(LookAt(torn, key).is_unsettled());
      // A line after the image is not known yet; the READ of the whole record finds it.
      const size_t first = HeaderReadBytes(key.size());
      EXPECT_EQ(LookAt(torn, key, first).is, line == 0 && first == kLineBytes ? RecordImage::kLonger
                                             : line < first                   ? RecordImage::kTorn
                                                                              : RecordImage::kLonger);
    }
  }
}

TEST_F(RecordImageTest, LockedAndAbsentRecordsAreTold) {
  for (const Key& key : keys_) {
    const RecordLook locked = LookAt(RecordOf(key, 300, Locked(kVersion, OwnerBits(1, 2))), key);
    EXPECT_EQ(locked.is, RecordImage::kLocked);
    EXPECT_EQ(locked.state, Locked(kVersion, OwnerBits(1, 2)));
    EXPECT_TRUE(locked.is_unsettled());
    // An insert that has not committed.
    EXPECT_EQ(LookAt(RecordOf(key, 300, Locked(kVersion | kAbsentBit, OwnerBits(1, 2))), key).is, RecordImage::kLocked);
    // The other lines do not matter, because they may belong to another object now.
    std::vector<std::byte> absent = RecordOf(key, 300, kVersion | kAbsentBit);
    StoreWord(absent.data() + kLineBytes, rdma::VersionWord(kVersion + 9));
    EXPECT_EQ(LookAt(absent, key).is, RecordImage::kAbsent);
    EXPECT_FALSE(LookAt(absent, key).is_unsettled());
    // A stale address in the middle of a record.
    const std::vector<std::byte> image = RecordOf(key, 300);
    EXPECT_EQ(LookAt({image.begin() + kLineBytes, image.end()}, key).is, RecordImage::kAbsent);
  }
}

// A record of a table with short keys has the meta word that it had before there were long ones.
TEST_F(RecordImageTest, TheMetaWordHasEveryLength) {
  const RecordMeta meta{.key_bytes = 0x40, .payload_bytes = 0x10000, .table = 0x1234, .incarnation = 0x5678};
  EXPECT_EQ(meta.Pack(), 0x5678'1234'0100'0040u);
  for (const uint16_t key_bytes : {0, 8, 64, 255, 256, 1024, 4095}) {
    for (const uint32_t payload_bytes : {0u, 1u, 65536u, (1u << 20) - 1}) {
      const RecordMeta all{
          .key_bytes = key_bytes, .payload_bytes = payload_bytes, .table = 65535, .incarnation = 65535};
      const RecordMeta read = RecordMeta::Unpack(all.Pack());
      EXPECT_EQ(read.key_bytes, key_bytes);
      EXPECT_EQ(read.payload_bytes, payload_bytes);
      EXPECT_EQ(read.table, 65535);
      EXPECT_EQ(read.incarnation, 65535);
    }
  }
}

// A client can write any length into a record. The image has as many bytes as the key that is looked for needs.
TEST_F(RecordImageTest, NoMoreOfTheKeyIsReadThanTheImageHas) {
  for (const Key& key : keys_) {
    std::vector<std::byte> image = RecordOf(key, 0);
    image.resize(HeaderReadBytes(key.size()));
    image.shrink_to_fit();
    for (const uint16_t claimed : {0, 7, 8, 61, 64, 65, 1023, 1024, 1025, 4095}) {
      const uint64_t word = RecordMeta{.key_bytes = claimed, .table = kTable}.Pack();
      rdma::CopyIn(image.data(), kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
      EXPECT_EQ(RecordHoldsKey(image.data(), key), claimed == key.size()) << claimed;
    }
  }
  // LoadKey: at most the longest key, also if the record claims more.
  std::vector<std::byte> image = RecordOf(keys_[2], 100);
  const uint64_t word = RecordMeta{.key_bytes = 4095, .table = kTable}.Pack();
  rdma::CopyIn(image.data(), kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
  EXPECT_EQ(LoadKey(image.data(), KeyKind::kBytes).bytes(), keys_[2].bytes());
}

TEST_F(RecordImageTest, TheKeyAndTheTableDecide) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    const std::vector<std::byte> image = RecordOf(other_keys_[i], 1000);
    EXPECT_EQ(LookAt(image, keys_[i]).is, RecordImage::kOther);
    EXPECT_EQ(LookAt(image, keys_[i], HeaderReadBytes(keys_[i].size())).is, RecordImage::kOther);
    EXPECT_EQ(LookAt(image, other_keys_[i]).is, RecordImage::kWhole);
    EXPECT_EQ(LookAtRecord(image.data(), image.size(), kTable + 1, other_keys_[i]).is, RecordImage::kOther);
  }
}

}  // namespace record_image_test
}  // namespace gannet::index
