// How a client judges the image that a READ of a record brought.
#include "index/record_image.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace gannet::index {
namespace {

constexpr uint16_t kTable = 7;
constexpr uint64_t kVersion = 41;

// The record of `key` with `payload_bytes` of payload, as one write left it.
std::vector<std::byte> RecordOf(const Key& key, uint32_t payload_bytes, uint64_t state = kVersion) {
  std::vector<std::byte> image(RecordBytes(key.size(), payload_bytes));
  rdma::StampImage(image.data(), image.size() / kLineBytes, state, state);
  StoreHeader(image.data(),
              {.key_bytes = static_cast<uint8_t>(key.size()), .payload_bytes = payload_bytes, .table = kTable}, key);
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
  // A record header of one line, and one of two.
  const std::array<Key, 2> keys_ = {Key(uint64_t{12}), Key(std::string_view(bytes_))};
  const std::array<Key, 2> other_keys_ = {Key(uint64_t{13}), Key(std::string_view(others_))};
};

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

TEST_F(RecordImageTest, TheKeyAndTheTableDecide) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    const std::vector<std::byte> image = RecordOf(other_keys_[i], 1000);
    EXPECT_EQ(LookAt(image, keys_[i]).is, RecordImage::kOther);
    EXPECT_EQ(LookAt(image, keys_[i], HeaderReadBytes(keys_[i].size())).is, RecordImage::kOther);
    EXPECT_EQ(LookAt(image, other_keys_[i]).is, RecordImage::kWhole);
    EXPECT_EQ(LookAtRecord(image.data(), image.size(), kTable + 1, other_keys_[i]).is, RecordImage::kOther);
  }
}

}  // namespace
}  // namespace gannet::index
