#include "bench/peers/data.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::bench::peers {
namespace data_test {

constexpr uint64_t kCount = 275'000;

std::vector<std::string> WordsOf(const Data& data) {
  std::vector<std::string> words;
  for (uint64_t i = 0; i < data.size(Table::kWords); ++i) words.emplace_back(data.key(Table::kWords, i).bytes);
  return words;
}

TEST(PeersData, WordsAreDifferentAndAsLongAsEnglishOnes) {
  const Data data(kCount, 10, 1);
  const std::vector<std::string> words = WordsOf(data);
  ASSERT_EQ(words.size(), kCount);
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), kCount);
  size_t bytes = 0;
  for (const std::string& word : words) {
    ASSERT_GE(word.size(), 2u);
    ASSERT_LE(word.size(), kMaxWordBytes);
    bytes += word.size();
  }
  EXPECT_NEAR(static_cast<double>(bytes) / kCount, 9, 0.5);
  EXPECT_FALSE(std::ranges::is_sorted(words));
}

TEST(PeersData, TheSeedDecides) {
  EXPECT_EQ(WordsOf(Data(100, 100, 7)), WordsOf(Data(100, 100, 7)));
  EXPECT_NE(WordsOf(Data(100, 100, 7)), WordsOf(Data(100, 100, 8)));
}

TEST(PeersData, PayloadsOfARowKeepTheirSizeAndChange) {
  const Data data(100, 2'000, 1);
  std::set<size_t> sizes;
  for (uint64_t i = 0; i < data.size(Table::kRows); ++i) {
    const Key key = data.key(Table::kRows, i);
    const Payload before = Data::payload(Table::kRows, key, 0);
    const Payload after = Data::payload(Table::kRows, key, 1);
    ASSERT_EQ(before.size, after.size);
    ASSERT_NE(before.view(), after.view());
    sizes.insert(before.size);
  }
  EXPECT_EQ(*sizes.begin(), kMinRowPayloadBytes);
  EXPECT_EQ(*sizes.rbegin(), kMaxRowPayloadBytes);
  EXPECT_EQ(Data::payload(Table::kWords, data.key(Table::kWords, 3), 0).size, kWordPayloadBytes);
}

TEST(PeersData, ADigestDependsOnOrderAndContent) {
  Payload payload;
  payload.size = kWordPayloadBytes;
  SetNumber(-5, &payload);
  EXPECT_EQ(NumberOf(payload.view()), -5);
  Digest ab;
  ab.AddRow({.bytes = "a"}, payload.view());
  ab.AddRow({.bytes = "b"}, payload.view());
  Digest ba;
  ba.AddRow({.bytes = "b"}, payload.view());
  ba.AddRow({.bytes = "a"}, payload.view());
  EXPECT_NE(ab.value(), ba.value());
  EXPECT_EQ(ab.sum(), ba.sum());
}

}  // namespace data_test
}  // namespace gannet::bench::peers
