#include "rdma/versioned.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::rdma {
namespace versioned_test {

// An object of some lines, and its data as plain bytes.
struct Object {
  explicit Object(size_t data_bytes) : lines(LinesFor(data_bytes)), memory(lines * kLineBytes / 8), data(data_bytes) {}
  std::byte* at() { return reinterpret_cast<std::byte*>(memory.data()); }
  void Write(uint64_t state, Random* random) {
    for (std::byte& byte : data) byte = static_cast<std::byte>((*random)());
    StoreWord(at(), state | kLockBit);
    BeginWrite(at(), lines);
    CopyIn(at(), 0, data);
    EndWrite(at(), lines, state);
  }

  size_t lines;
  std::vector<uint64_t> memory;
  std::vector<std::byte> data;
};

TEST(Versioned, SizesCountOneVersionPerLine) {
  EXPECT_EQ(LinesFor(0), 1u);
  EXPECT_EQ(LinesFor(1), 1u);
  EXPECT_EQ(LinesFor(56), 1u);
  EXPECT_EQ(LinesFor(57), 2u);
  EXPECT_EQ(ObjectBytesFor(65536), 1171u * 64);
  EXPECT_EQ(PlaceOf(0), 8u);
  EXPECT_EQ(PlaceOf(55), 63u);
  EXPECT_EQ(PlaceOf(56), 72u);
}

TEST(Versioned, DataComesBackFromAnyPartToAnyPart) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    Object object(1 + random.Below(400));
    object.Write(8, &random);
    const size_t from = random.Below(object.data.size());
    const size_t size = random.Below(object.data.size() - from + 1);
    std::vector<std::byte> out(size);
    CopyOut(object.at(), from, out);
    ASSERT_TRUE(std::equal(out.begin(), out.end(), object.data.begin() + static_cast<ptrdiff_t>(from)));
    // A write of a part leaves the rest, and all versions, unchanged.
    for (std::byte& byte : out) byte = ~byte;
    CopyIn(object.at(), from, out);
    std::copy(out.begin(), out.end(), object.data.begin() + static_cast<ptrdiff_t>(from));
    std::vector<std::byte> all(object.data.size());
    uint64_t state;
    ASSERT_TRUE(TryReadLocal(object.at(), 0, all, &state));
    ASSERT_EQ(state, 8u);
    ASSERT_EQ(all, object.data);
    ASSERT_TRUE(IsConsistentImage(object.at(), object.lines));
  }
}

// Copies of any size may write beyond the requested bytes, but only up to the documented limit.
TEST(Versioned, WhoHoldsTheLockCopiesWholeLines) {
  constexpr size_t kOffset = 16;
  constexpr std::byte kUntouched{0xcc};
  Random random(2);
  for (size_t data_bytes = kOffset; data_bytes < 4 * kLineDataBytes; ++data_bytes) {
    Object object(data_bytes);
    object.Write(8, &random);
    const size_t size = data_bytes - kOffset;
    std::vector<std::byte> out(size + kLineDataBytes, kUntouched);
    CopyOutHeld<kOffset>(object.at(), out.data(), size);
    ASSERT_TRUE(std::equal(object.data.begin() + kOffset, object.data.end(), out.begin())) << data_bytes;
    ASSERT_EQ(out.back(), kUntouched) << data_bytes;
  }
}

TEST(Versioned, EveryStageOfAWriteIsRefusedByReaders) {
  Random random(2);
  Object object(200);
  object.Write(1, &random);
  uint64_t state;
  std::vector<std::byte> out(200);

  StoreWord(object.at(), 1 | kLockBit);
  EXPECT_FALSE(IsConsistentImage(object.at(), object.lines));
  EXPECT_FALSE(TryReadLocal(object.at(), 0, out, &state));
  EXPECT_EQ(state, 1 | kLockBit);
  // A reader that READ the first line before the lock, and the others later.
  BeginWrite(object.at(), object.lines);
  std::vector<uint64_t> image = object.memory;
  image[0] = 1;
  EXPECT_FALSE(IsConsistentImage(reinterpret_cast<std::byte*>(image.data()), object.lines));
  EndWrite(object.at(), object.lines, 2);
  image = object.memory;
  image[0] = 1;
  EXPECT_FALSE(IsConsistentImage(reinterpret_cast<std::byte*>(image.data()), object.lines));
  EXPECT_TRUE(IsConsistentImage(object.at(), object.lines));
}

TEST(Versioned, OneLineOfAnotherVersionSpoilsAnImage) {
  Random random(3);
  Object object(500);
  object.Write(6, &random);
  for (size_t line = 0; line < object.lines; ++line) {
    std::vector<uint64_t> image = object.memory;
    image[line * 8] = 7;
    EXPECT_FALSE(IsConsistentImage(reinterpret_cast<std::byte*>(image.data()), object.lines)) << line;
  }
}

TEST(Versioned, AStampedImageIsLikeAnObjectWrittenInPlace) {
  Random random(4);
  Object in_place(300), image(300);
  in_place.Write(12, &random);
  CopyIn(image.at(), 0, in_place.data);
  StampImage(image.at(), image.lines, 12, 12);
  EXPECT_EQ(image.memory, in_place.memory);
  StampImage(image.at(), image.lines, 12 | kLockBit, 12);
  EXPECT_FALSE(IsConsistentImage(image.at(), image.lines));
  StoreWord(image.at(), 12);
  EXPECT_TRUE(IsConsistentImage(image.at(), image.lines));
}

TEST(Versioned, ABusyLineLooksLocked) {
  EXPECT_NE(kLineBusy & kLockBit, 0u);
}

// A reader with a stale address takes any line for the first one. Data that looks like an object must not deceive it.
TEST(Versioned, OnlyTheFirstLineHasAState) {
  Random random(3);
  Object object(5 * kLineDataBytes);
  object.Write(77, &random);
  EXPECT_EQ(LoadWord(object.at()) & kNotAState, 0u);
  for (size_t line = 1; line < object.lines; ++line) {
    EXPECT_EQ(LoadWord(object.at() + line * kLineBytes), 77 | kNotAState);
  }
  BeginWrite(object.at(), object.lines);
  EXPECT_NE(LoadWord(object.at() + kLineBytes) & kLockBit, 0u);
  EndWrite(object.at(), object.lines, 78 | kNotAState);  // removed
  EXPECT_TRUE(IsConsistentImage(object.at(), object.lines));
}

TEST(Versioned, AnObjectOfOtherLinesGoesOnFromTheNewest) {
  Random random(4);
  Object object(3 * kLineDataBytes);
  object.Write(40, &random);
  StoreWord(object.at() + kLineBytes, 90 | kNotAState);
  ContinueVersions(object.at(), object.lines);
  EXPECT_EQ(LoadWord(object.at()), 90 | kNotAState);
  StoreWord(object.at(), kVersionMask | kLockBit | kNotAState | uint64_t{5} << 47);
  ContinueVersions(object.at(), object.lines);
  EXPECT_EQ(LoadWord(object.at()), kVersionMask | kNotAState);
}

}  // namespace versioned_test
}  // namespace gannet::rdma
