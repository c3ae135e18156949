#include "ycsb/key_chooser.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace key_chooser_test {

constexpr uint64_t kChosenFrom = 1000;
constexpr int kChoices = 200'000;

std::map<uint64_t, int> Draw(const KeyChooser& chooser) {
  Random random(3);
  std::map<uint64_t, int> seen;
  for (int i = 0; i < kChoices; ++i) ++seen[chooser.Existing(&random)];
  return seen;
}

double Share(const std::map<uint64_t, int>& seen, uint64_t key) {
  const auto at = seen.find(key);
  return at == seen.end() ? 0 : static_cast<double>(at->second) / kChoices;
}

double HarmonicSum(uint64_t n) {
  double sum = 0;
  for (uint64_t r = 1; r <= n; ++r) sum += std::pow(static_cast<double>(r), -kYcsbTheta);
  return sum;
}

TEST(KeyChooser, UniformDrawsLoadedAndInsertedKeysAlike) {
  const KeySpace space(KeyForm::kLinear, kChosenFrom, 1);
  KeyChooser chooser(&space, Distribution::kUniform, 0, 0, 1);
  for (int i = 0; i < 1000; ++i) chooser.Inserted(chooser.Fresh().value());
  const auto seen = Draw(chooser);
  EXPECT_EQ(seen.size(), 2 * kChosenFrom) << "each is drawn 100 times on average";
  for (const auto& [key, times] : seen) EXPECT_NEAR(times, 100, 60) << key;
}

TEST(KeyChooser, ZipfianHasTheSamePopularKeysForEveryClient) {
  const KeySpace space(KeyForm::kLinear, kChosenFrom, 1);
  const auto one = Draw(KeyChooser(&space, Distribution::kZipfian, 0, 0, 2));
  const auto other = Draw(KeyChooser(&space, Distribution::kZipfian, 0, 1, 2));
  const uint64_t popular = space.LoadedKey(Permutation(kChosenFrom)(0));
  EXPECT_NEAR(Share(one, popular), 1 / HarmonicSum(kChosenFrom), 0.01);
  EXPECT_NEAR(Share(other, popular), 1 / HarmonicSum(kChosenFrom), 0.01);
}

TEST(KeyChooser, ThetaSaysHowPopularThePopularKeysAre) {
  const KeySpace space(KeyForm::kLinear, kChosenFrom, 1);
  KeyChooser chooser(&space, Distribution::kZipfian, 0, 0, 1);
  chooser.SetTheta(2);
  const auto seen = Draw(chooser);
  const Permutation scatter(kChosenFrom);
  EXPECT_NEAR(Share(seen, space.LoadedKey(scatter(0))), 0.608, 0.01) << "6 / pi^2";
  EXPECT_NEAR(Share(seen, space.LoadedKey(scatter(1))), 0.152, 0.01) << "a quarter of that";
}

TEST(KeyChooser, LatestPrefersTheNewestInsertOfItsOwn) {
  const KeySpace space(KeyForm::kLinear, kChosenFrom, 1);
  KeyChooser chooser(&space, Distribution::kLatest, 0, 0, 1);
  uint64_t newest = 0;
  uint64_t second = 0;
  for (int i = 0; i < 50; ++i) {
    second = newest;
    newest = chooser.Fresh().value();
    chooser.Inserted(newest);
  }
  const auto seen = Draw(chooser);
  const double sum = HarmonicSum(kChosenFrom + 50);
  EXPECT_NEAR(Share(seen, newest), 1 / sum, 0.01);
  EXPECT_NEAR(Share(seen, second), std::pow(2, -kYcsbTheta) / sum, 0.01);
}

TEST(KeyPart, PartsHaveKeysOfAllServersAndNoneInCommon) {
  constexpr int kServers = 3;
  constexpr int kParts = 4;
  const KeySpace space(KeyForm::kLinear, 1000, kServers);
  std::map<uint64_t, int> parts;
  for (int part = 0; part < kParts; ++part) {
    const KeyPart own(&space, part, kParts);
    std::map<rdma::NodeId, int> owners;
    for (uint64_t n = 0; n < own.size(); ++n) {
      const uint64_t rank = own.RankOf(n);
      EXPECT_TRUE(own.Has(rank));
      EXPECT_TRUE(parts.try_emplace(rank, part).second) << rank;
      ++owners[space.OwnerOf(space.LoadedKey(rank))];
    }
    EXPECT_EQ(owners.size(), size_t{kServers});
    for (const auto& [owner, keys] : owners) EXPECT_EQ(keys, 1000 / kServers / kParts);
    for (uint64_t rank = 0; rank < space.loaded(); ++rank) {
      const auto known = parts.find(rank);
      EXPECT_EQ(own.Has(rank), known != parts.end() && known->second == part) << rank;
    }
  }
  EXPECT_GE(parts.size(), 1000u - kServers * kParts);
}

TEST(KeyChooser, ALimitedClientReadsAndInsertsInItsPart) {
  const KeySpace space(KeyForm::kLinear, 1000, 2);
  const KeyPart part(&space, 1, 2);
  KeyChooser chooser(&space, Distribution::kZipfian, 0, 0, 1);
  chooser.Limit(part);
  std::map<uint64_t, bool> own;
  for (uint64_t n = 0; n < part.size(); ++n) own[space.LoadedKey(part.RankOf(n))] = true;
  Random random(1);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(own.contains(chooser.Existing(&random)));
  for (int i = 0; i < 100; ++i) {
    const uint64_t fresh = chooser.Fresh().value();
    EXPECT_TRUE(own.contains(std::prev(own.upper_bound(fresh))->first)) << "it lies behind a key of the part";
    EXPECT_FALSE(own.contains(fresh));
  }
}

TEST(KeyChooser, AClientHasNoFreshKeyWhereThereIsNoRoom) {
  const KeySpace space(KeyForm::kRandom, 10, 1);
  KeyChooser chooser(&space, Distribution::kUniform, space.max_inserts() - 2, 0, 1);
  EXPECT_TRUE(chooser.Fresh().has_value());
  EXPECT_TRUE(chooser.Fresh().has_value());
  EXPECT_EQ(chooser.Fresh(), std::nullopt);
  EXPECT_EQ(chooser.Fresh(), std::nullopt);
}

// Each of 8 clients has two of the 16 ranks, whatever number it tries.
TEST(KeyChooser, ALimitedClientEndsWhereItsNumbersMissThePart) {
  const KeySpace space(KeyForm::kLinear, 16, 1);
  const KeyPart part(&space, 0, 2);
  int without = 0;
  for (uint64_t client = 0; client < 8; ++client) {
    KeyChooser chooser(&space, Distribution::kUniform, 0, client, 8);
    chooser.Limit(part);
    const bool any = part.Has(space.RankOfInsert(client)) || part.Has(space.RankOfInsert(client + 8));
    EXPECT_EQ(chooser.Fresh().has_value(), any) << client;
    without += any ? 0 : 1;
  }
  EXPECT_GT(without, 0);
}

TEST(KeyChooser, ClientsInsertDifferentKeysAndLaterRunsGoOn) {
  const KeySpace space(KeyForm::kNoised, kChosenFrom, 1);
  std::set<uint64_t> keys;
  uint64_t end = 0;
  for (int run = 0; run < 2; ++run) {
    uint64_t next_end = 0;
    for (uint64_t client = 0; client < 3; ++client) {
      KeyChooser chooser(&space, Distribution::kUniform, end, client, 3);
      for (uint64_t i = 0; i < 100 + client; ++i) EXPECT_TRUE(keys.insert(chooser.Fresh().value()).second);
      next_end = std::max(next_end, chooser.inserts_end());
    }
    end = next_end;
  }
}

TEST(KeyChooser, AClientBesideOtherProcessesInsertsTheNumbersItIsGiven) {
  const KeySpace space(KeyForm::kLinear, kChosenFrom, 1);
  KeyChooser chooser(&space, Distribution::kUniform);
  for (const uint64_t first : {7, 100}) {
    ASSERT_TRUE(chooser.needs_block());
    chooser.Give(first, 3);
    for (uint64_t number = first; number < first + 3; ++number) {
      EXPECT_FALSE(chooser.needs_block());
      EXPECT_EQ(chooser.Fresh(), space.InsertedKey(number));
    }
  }
  EXPECT_TRUE(chooser.needs_block());
  EXPECT_FALSE(KeyChooser(&space, Distribution::kUniform, 0, 0, 1).needs_block());
}

TEST(KeyChooser, AKeyIsNotDrawnBeforeItIsInserted) {
  const KeySpace space(KeyForm::kLinear, 10, 1);
  KeyChooser chooser(&space, Distribution::kUniform, 0, 0, 1);
  const uint64_t fresh = chooser.Fresh().value();
  EXPECT_EQ(Share(Draw(chooser), fresh), 0);
  chooser.Inserted(fresh);
  EXPECT_NEAR(Share(Draw(chooser), fresh), 1.0 / 11, 0.01);
}

}  // namespace key_chooser_test
}  // namespace gannet::ycsb
