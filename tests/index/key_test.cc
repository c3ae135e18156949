// Keys that own their bytes, of every length and after every kind of copy.
#include "index/key.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "index/index.h"
#include "index/key_wire.h"

namespace gannet::index {
namespace key_test {

// An integer, no bytes, keys in place and long ones.
std::vector<std::string> ByteKeys() {
  std::vector<std::string> keys;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, kShortKeyBytes, kShortKeyBytes + 1, kMaxKeyBytes}) {
    keys.emplace_back(size, static_cast<char>('a' + size % 26));
  }
  return keys;
}

TEST(OwnedKeyTest, CopiesAndMovesKeepTheKey) {
  const std::vector<std::string> bytes = ByteKeys();
  std::vector<Key> keys = {Key(7)};
  for (const std::string& one : bytes) keys.emplace_back(one);
  for (const Key& key : keys) {
    for (const Key& before : keys) {
      OwnedKey owned(before);
      owned = key;
      EXPECT_EQ(owned.kind(), key.kind());
      EXPECT_EQ(owned.view(), key);
      const OwnedKey copy(owned);
      OwnedKey moved(std::move(owned));
      EXPECT_EQ(moved.view(), key);
      owned = before;  // usable again
      EXPECT_EQ(owned.view(), before);
      owned = std::move(moved);
      EXPECT_EQ(owned.view(), key);
      moved = OwnedKey(before);
      owned = moved;
      EXPECT_EQ(owned.view(), before);
      EXPECT_EQ(copy.view(), key);
    }
  }
  EXPECT_EQ(OwnedKey().view(), Key(0));
}

TEST(OwnedKeyTest, AKeyMayBeAssignedAPartOfItself) {
  for (const size_t first : {size_t{0}, size_t{10}}) {
    for (const size_t size : {size_t{5}, size_t{50}, size_t{500}}) {
      std::string bytes;
      while (bytes.size() < kMaxKeyBytes) bytes += std::to_string(bytes.size());
      bytes.resize(kMaxKeyBytes);
      OwnedKey owned{Key(bytes)};
      owned = Key(owned.bytes().substr(first, size));
      EXPECT_EQ(owned.bytes(), bytes.substr(first, size));
      owned = Key(owned.bytes().substr(1));
      EXPECT_EQ(owned.bytes(), bytes.substr(first, size).substr(1));
      const OwnedKey& same = owned;
      owned = same;
      EXPECT_EQ(owned.bytes(), bytes.substr(first, size).substr(1));
    }
  }
}

TEST(OwnedKeyTest, VectorsOfThemGrow) {
  std::vector<OwnedKey> keys;
  const std::vector<std::string> bytes = ByteKeys();
  for (size_t i = 0; i < 100; ++i) keys.emplace_back(Key(bytes[i % bytes.size()]));
  keys.erase(keys.begin(), keys.begin() + 6);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i].bytes(), bytes[i % bytes.size()]);
}

TEST(KeyTest, AMessageShortensALongKey) {
  EXPECT_EQ(Key(std::string(64, 'a')).ToString().size(), 2 + 128u);
  const std::string text = Key(std::string(1000, 'a')).ToString();
  EXPECT_TRUE(text.starts_with("0x616161"));
  EXPECT_TRUE(text.ends_with("61... (1000 bytes)")) << text;
  EXPECT_LT(text.size(), 160u);
}

TEST(KeyWireTest, AKeyTakesTheBytesThatAreGiven) {
  std::array<std::byte, 2048> buffer;
  const std::vector<std::string> bytes = ByteKeys();
  std::vector<Key> keys = {Key(7)};
  for (const std::string& one : bytes) keys.emplace_back(one);
  for (const Key& key : keys) {
    rdma::WireWriter writer(buffer);
    PutKey(writer, key);
    EXPECT_EQ(writer.size(), WireKeyBytes(key));
    EXPECT_LE(writer.size(), kMostWireKeyBytes);
    rdma::WireReader reader(writer.written());
    bool valid = false;
    EXPECT_EQ(GetKey(reader, &valid), key);
    EXPECT_TRUE(valid);
    for (size_t size = 0; size < writer.size(); ++size) {
      rdma::WireReader cut(writer.written().first(size));
      static_cast<void>(GetKey(cut, &valid));
      EXPECT_FALSE(valid) << size;
    }
  }
  rdma::WireWriter writer(buffer);
  PutKey(writer, Key(std::string(kMaxKeyBytes + 1, 'x')));
  rdma::WireReader reader(writer.written());
  bool valid = true;
  static_cast<void>(GetKey(reader, &valid));
  EXPECT_FALSE(valid);
}

// Positions of few and of many words, as of a message, compare by their words; missing ones are zeros.
TEST(ScanPositionTest, ComparesWordByWord) {
  const auto at = [](std::initializer_list<uint64_t> words) { return ScanPosition{PositionWords(words)}; };
  EXPECT_EQ(ScanPosition{}.words.size(), kFewPositionWords);
  EXPECT_EQ(ScanPosition{}, at({}));
  EXPECT_EQ(at({1, 2}), at({1, 2, 0, 0}));
  EXPECT_LT(at({1, 2}), at({1, 2, 0, 1}));
  EXPECT_GT(at({1, 2, 1}), at({1, 2}));
  EXPECT_LT(at({1, 2, 9, 9}), at({1, 3}));
  EXPECT_GT(at({UINT64_MAX}), at({1, UINT64_MAX, 1}));
  ScanPosition most;
  most.words.assign(kMostPositionWords, 0);
  EXPECT_EQ(most, ScanPosition{});
  most.words.back() = 1;
  EXPECT_GT(most, ScanPosition{});
}

}  // namespace key_test
}  // namespace gannet::index
