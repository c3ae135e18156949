#include "ycsb/key_space.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ycsb/permutation.h"

namespace gannet::ycsb {
namespace key_space_test {

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
    uint64_t last = keys.back();
    for (const uint64_t n : {uint64_t{0}, uint64_t{1}, space.max_inserts() - 1}) {
      const uint64_t key = space.InsertedKey(n, InsertPlace::kAppend);
      EXPECT_GT(key, last) << loaded;
      last = key;
    }
    EXPECT_GE(space.max_inserts(), 3 * loaded);
  }
}

// A tree that they fill has leaves that are full, and leaves that were just split, at any time.
TEST(KeySpace, RandomInsertsAreAsUnevenAsDraws) {
  constexpr uint64_t kLoaded = 100;
  constexpr size_t kParts = 1000;
  const KeySpace space(KeyForm::kRandom, kLoaded, 1);
  std::vector<uint64_t> keys;
  for (uint64_t rank = 0; rank < kLoaded; ++rank) keys.push_back(space.LoadedKey(rank));
  std::vector<int> counts(kParts);
  for (uint64_t n = 0; n < space.max_inserts(); ++n) {
    const uint64_t key = space.InsertedKey(n, InsertPlace::kRandom);
    keys.push_back(key);
    ++counts.at(key / ((uint64_t{1} << 60) / kParts + 1));
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  const double mean = static_cast<double>(keys.size() - kLoaded) / kParts;
  double variance = 0;
  for (const int count : counts) variance += (count - mean) * (count - mean) / kParts;
  EXPECT_NEAR(variance / mean, 1, 0.2) << "a Poisson distribution";
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
  uint64_t inserts[kServers] = {};
  for (uint64_t n = 0; n < kLoaded; ++n) ++inserts[space.OwnerOf(space.InsertedKey(n))];
  for (const uint64_t each : inserts)
    EXPECT_NEAR(static_cast<double>(each), static_cast<double>(kLoaded) / kServers, 1);
  EXPECT_EQ(space.OwnerOf(space.InsertedKey(7, InsertPlace::kAppend)), kServers - 1);
}

// The largest space, around the ranks where keys are closest, where the computation changes, and at both ends.
TEST_P(KeySpaces, KeysOfTheLargestSpaceAscendWithRoomBetweenThem) {
  constexpr uint64_t kLoaded = (uint64_t{1} << 32) - 1;
  const KeySpace space(GetParam(), kLoaded, 1);
  constexpr double kPlaces[] = {0, 0.0227, 0.075, 0.5, 0.925, 1};
  for (const double place : kPlaces) {
    const auto middle = static_cast<uint64_t>(place * static_cast<double>(kLoaded));
    const uint64_t first = middle < 1000 ? 0 : middle - 1000;
    uint64_t before = 0;
    for (uint64_t rank = first; rank < std::min(first + 2000, kLoaded); ++rank) {
      const uint64_t key = space.LoadedKey(rank);
      // A key lies in the first half of its stretch, and the other half has room for kLeastGap / 2 inserts.
      if (rank > first) {
        EXPECT_GT(key, before + 512) << place << ", rank " << rank;
      }
      before = key;
    }
  }
  EXPECT_LT(space.LoadedKey(kLoaded - 1), uint64_t{1} << 63);
}

INSTANTIATE_TEST_SUITE_P(Forms, KeySpaces,
                         ::testing::Values(KeyForm::kLinear, KeyForm::kNoised, KeyForm::kOsmLike, KeyForm::kNormal,
                                           KeyForm::kLognormal, KeyForm::kRandom));

struct Quantile {
  double share;  // of keys that are less
  double z;      // from tables of the normal distribution
};
constexpr Quantile kQuantiles[] = {{0.001, -3.0902}, {0.01, -2.3263}, {0.1, -1.2816}, {0.25, -0.6745}, {0.5, 0},
                                   {0.75, 0.6745},   {0.9, 1.2816},   {0.99, 2.3263}, {0.999, 3.0902}};

TEST(KeySpace, NormalAndLognormalHaveTheirQuantiles) {
  constexpr uint64_t kLoaded = 1'000'000;
  const KeySpace normal(KeyForm::kNormal, kLoaded, 1);
  const KeySpace lognormal(KeyForm::kLognormal, kLoaded, 1);
  for (const auto& [share, z] : kQuantiles) {
    const auto rank = static_cast<uint64_t>(share * kLoaded);
    const auto key = static_cast<double>(normal.LoadedKey(rank));
    EXPECT_NEAR((key - 0x1p62) / 0x1p59, z, 1e-3) << share;
    EXPECT_NEAR(std::log(static_cast<double>(lognormal.LoadedKey(rank)) / 0x1p44) / 2, z, 1e-3) << share;
  }
}

// Inserted keys have the distribution of the loaded ones.
TEST(KeySpace, InsertsLeaveTheQuantilesAsTheyAre) {
  constexpr uint64_t kLoaded = 10'000;
  for (const KeyForm form : {KeyForm::kOsmLike, KeyForm::kNormal, KeyForm::kLognormal, KeyForm::kRandom}) {
    const KeySpace space(form, kLoaded, 1);
    std::vector<uint64_t> inserted;
    for (uint64_t n = 0; n < kLoaded / 2; ++n) inserted.push_back(space.InsertedKey(n));
    std::sort(inserted.begin(), inserted.end());
    for (const double share : {0.1, 0.5, 0.9}) {
      const uint64_t key = space.LoadedKey(static_cast<uint64_t>(share * kLoaded));
      const auto below = std::lower_bound(inserted.begin(), inserted.end(), key) - inserted.begin();
      EXPECT_NEAR(static_cast<double>(below) / static_cast<double>(inserted.size()), share, 0.03);
    }
  }
}

TEST(KeySpace, LinearIsOneLineAndTheUnevenFormsAreFarFromOne) {
  constexpr uint64_t kLoaded = 65'536;
  for (const KeyForm form :
       {KeyForm::kLinear, KeyForm::kNoised, KeyForm::kOsmLike, KeyForm::kNormal, KeyForm::kLognormal}) {
    const KeySpace space(form, kLoaded, 1);
    const auto low = static_cast<double>(space.LoadedKey(0));
    const auto high = static_cast<double>(space.LoadedKey(kLoaded - 1));
    double worst = 0;  // greatest distance from the line between both ends, as a share of all ranks
    for (uint64_t rank = 0; rank < kLoaded; ++rank) {
      const double at = (static_cast<double>(space.LoadedKey(rank)) - low) / (high - low);
      worst = std::max(worst, std::abs(at - static_cast<double>(rank) / (kLoaded - 1)));
    }
    if (form != KeyForm::kLinear && form != KeyForm::kNoised) {
      EXPECT_GT(worst, 0.05);
    } else {
      EXPECT_LT(worst, 1e-4);
    }
  }
}

// The greatest distance from the line, times the square root of the number of keys, has the distribution of Kolmogorov
// and Smirnov: between 0.4 and 2 in all but a few of a thousand samples. And squares of the distances of neighbours are
// twice the square of their mean, as those of samples are.
TEST(KeySpace, RandomKeysAreSpacedAsSamplesAre) {
  for (const uint64_t loaded : {uint64_t{1000}, uint64_t{30'000}, uint64_t{100'000}}) {
    const KeySpace space(KeyForm::kRandom, loaded, 1);
    const auto n = static_cast<double>(loaded);
    double worst = 0;
    double squares = 0;
    double before = 0;
    for (uint64_t rank = 0; rank < loaded; ++rank) {
      const double at = static_cast<double>(space.LoadedKey(rank)) * 0x1p-60;
      worst = std::max(worst, std::abs(at - static_cast<double>(rank) / n));
      const double distance = (at - before) * n;
      squares += distance * distance;
      before = at;
    }
    EXPECT_GT(worst * std::sqrt(n), 0.4) << loaded;
    EXPECT_LT(worst * std::sqrt(n), 2) << loaded;
    EXPECT_NEAR(squares / n, 2, 0.5) << loaded;
  }
}

}  // namespace key_space_test
}  // namespace gannet::ycsb
