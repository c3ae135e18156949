#include "ycsb/key_space.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ycsb/permutation.h"

namespace gannet::ycsb {
namespace {

TEST(Permutation, HitsEveryNumberOnce) {
  for (const uint64_t n : {1, 2, 3, 5, 64, 1000, 4097}) {
    const Permutation permutation(n);
    std::set<uint64_t> hit;
    for (uint64_t i = 0; i < n; ++i) hit.insert(permutation(i));
    EXPECT_EQ(hit.size(), n);
    EXPECT_EQ(*hit.rbegin(), n - 1);
  }
}

TEST(Permutation, TearsNeighboursApart) {
  constexpr uint64_t kN = 100'000;
  const Permutation permutation(kN);
  uint64_t close = 0;
  for (uint64_t i = 0; i + 1 < 10'000; ++i) {
    const uint64_t a = permutation(i);
    const uint64_t b = permutation(i + 1);
    close += std::max(a, b) - std::min(a, b) < kN / 100 ? 1 : 0;
  }
  // About 2% of random pairs are that close.
  EXPECT_LT(close, 400u);
}

class KeySpaces : public ::testing::TestWithParam<KeyForm> {};

TEST_P(KeySpaces, LoadedKeysAscendAndInsertedOnesAreNew) {
  for (const uint64_t loaded : {1, 7, 1000, 50'000}) {
    const KeySpace space(GetParam(), loaded, 1);
    std::vector<uint64_t> keys;
    for (uint64_t rank = 0; rank < loaded; ++rank) keys.push_back(space.LoadedKey(rank));
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end(), std::less_equal<>())) << loaded;
    for (uint64_t n = 0; n < 3 * loaded; ++n) keys.push_back(space.InsertedKey(n));
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end()) << loaded;
    EXPECT_GE(space.max_inserts(), 3 * loaded);
  }
}

TEST_P(KeySpaces, ServersShareTheLoadedKeysEquallyByRange) {
  constexpr uint64_t kLoaded = 10'000;
  constexpr int kServers = 3;
  const KeySpace space(GetParam(), kLoaded, kServers);
  for (int server = 0; server < kServers; ++server) {
    const uint64_t first = space.FirstRankOf(server);
    const uint64_t end = space.FirstRankOf(server + 1);
    EXPECT_NEAR(static_cast<double>(end - first), static_cast<double>(kLoaded) / kServers, 1);
    EXPECT_EQ(space.OwnerOf(space.LoadedKey(first)), server);
    EXPECT_EQ(space.OwnerOf(space.LoadedKey(end - 1)), server);
  }
  EXPECT_EQ(space.FirstRankOf(kServers), kLoaded);
  for (uint64_t n = 0; n < kLoaded; ++n) EXPECT_LT(space.OwnerOf(space.InsertedKey(n)), kServers);
}

INSTANTIATE_TEST_SUITE_P(Forms, KeySpaces, ::testing::Values(KeyForm::kLinear, KeyForm::kNoised, KeyForm::kOsmLike));

TEST(KeySpace, LinearIsOneLineAndOsmLikeIsFarFromOne) {
  constexpr uint64_t kLoaded = 65'536;
  for (const KeyForm form : {KeyForm::kLinear, KeyForm::kNoised, KeyForm::kOsmLike}) {
    const KeySpace space(form, kLoaded, 1);
    const auto low = static_cast<double>(space.LoadedKey(0));
    const auto high = static_cast<double>(space.LoadedKey(kLoaded - 1));
    double worst = 0;  // greatest distance from the line between both ends, as a share of all ranks
    for (uint64_t rank = 0; rank < kLoaded; ++rank) {
      const double at = (static_cast<double>(space.LoadedKey(rank)) - low) / (high - low);
      worst = std::max(worst, std::abs(at - static_cast<double>(rank) / (kLoaded - 1)));
    }
    if (form == KeyForm::kOsmLike) {
      EXPECT_GT(worst, 0.05);
    } else {
      EXPECT_LT(worst, 1e-4);
    }
  }
}

}  // namespace
}  // namespace gannet::ycsb
