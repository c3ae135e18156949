// CachedModel: what a client keeps of the translation tables when they do not all fit.
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/client/cached_model.h"

namespace gannet::index::xstore {
namespace {

constexpr uint32_t kSubModels = 2000;

// Tables of different sizes, which change: what a client would READ.
class CachedModelTest : public testing::Test {
 protected:
  CachedModelTest() : tables_(kSubModels) {
    for (uint32_t i = 0; i < kSubModels; ++i) Retrain(i);
  }

  // A cache with room for about this share of the tables.
  CachedModel Make(double share) {
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < 1000; ++i) samples.push_back(i * 1000);
    const auto begin = [&](CachedModel& cache) {
      cache.Reset(1, TopModel::Train(Projection(), samples, kSubModels, 64), {1, 2, 3});
    };
    CachedModel empty({});
    begin(empty);
    uint64_t words = 0;
    for (const auto& table : tables_) words += table.size() + 1;
    most_bytes_ = empty.bytes() + static_cast<uint64_t>(share * static_cast<double>(words * sizeof(uint64_t)));
    CachedModel cache({.max_bytes = most_bytes_});
    begin(cache);
    return cache;
  }

  void Retrain(uint32_t i) {
    tables_[i].resize(10 + random_.Below(15));
    for (uint64_t& entry : tables_[i]) entry = random_();
  }
  SubModel ModelOf(uint32_t i) const { return {.size = static_cast<uint32_t>(tables_[i].size())}; }

  // True: it was there. Otherwise it is now, if there is room.
  bool Use(CachedModel& cache, uint32_t i) {
    SubModel model;
    std::span<const uint64_t> table;
    EXPECT_LE(cache.bytes(), most_bytes_);
    if (cache.FindTable(i, &model, &table)) {
      EXPECT_TRUE(std::ranges::equal(table, tables_[i])) << i;
      return true;
    }
    cache.PutTable(i, ModelOf(i), tables_[i]);
    EXPECT_TRUE(cache.FindTable(i, &model, &table)) << i;
    return false;
  }

  // Lowest and average share of hits in windows of 1000 uses, once the cache is full.
  struct Rates {
    double lowest = 1;
    double average = 0;
  };
  template <class Draw>
  Rates Measure(CachedModel& cache, Draw draw) {
    constexpr int kWindow = 1000;
    constexpr int kWindows = 60;
    constexpr int kWarm = 10;
    Rates rates;
    for (int window = 0; window < kWindows; ++window) {
      int hits = 0;
      for (int i = 0; i < kWindow; ++i) hits += Use(cache, draw()) ? 1 : 0;
      if (window < kWarm) continue;
      const double rate = static_cast<double>(hits) / kWindow;
      rates.lowest = std::min(rates.lowest, rate);
      rates.average += rate / (kWindows - kWarm);
    }
    return rates;
  }

  Random random_{1};
  std::vector<std::vector<uint64_t>> tables_;
  uint64_t most_bytes_ = 0;
};

// Half of the tables fit, so half of the uses should hit, at any time.
TEST_F(CachedModelTest, AFullCacheDropsLittle) {
  CachedModel cache = Make(0.5);
  const Rates rates = Measure(cache, [this] { return static_cast<uint32_t>(random_.Below(kSubModels)); });
  EXPECT_GT(rates.average, 0.42);
  EXPECT_GT(rates.lowest, 0.36);
}

// Nine of ten uses are of a tenth of the tables, which fits.
TEST_F(CachedModelTest, TablesThatAreUsedOftenStay) {
  CachedModel cache = Make(0.3);
  const Rates rates = Measure(cache, [this] {
    return static_cast<uint32_t>(random_.OneIn(10) ? random_.Below(kSubModels) : random_.Below(kSubModels / 10));
  });
  EXPECT_GT(rates.average, 0.85);
  EXPECT_GT(rates.lowest, 0.8);
}

// A table that has another size after its retraining leaves its place. Such places are used again.
TEST_F(CachedModelTest, PlacesOfOldTablesAreUsedAgain) {
  CachedModel cache = Make(0.6);
  const Rates rates = Measure(cache, [this] {
    const auto i = static_cast<uint32_t>(random_.Below(kSubModels));
    return i;
  });
  double retrained = 0;
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 200; ++n) {
      const auto i = static_cast<uint32_t>(random_.Below(kSubModels));
      Retrain(i);
      cache.PutTable(i, ModelOf(i), tables_[i]);
      ASSERT_LE(cache.bytes(), most_bytes_);
    }
    int hits = 0;
    for (int n = 0; n < 1000; ++n) hits += Use(cache, static_cast<uint32_t>(random_.Below(kSubModels))) ? 1 : 0;
    retrained += hits / 20'000.0;
  }
  EXPECT_GT(retrained, rates.average * 0.85);
}

TEST_F(CachedModelTest, ATableThatIsTooLargeIsNotKept) {
  CachedModel cache = Make(0.01);
  std::vector<uint64_t> large(100'000, 7);
  cache.PutTable(5, {.size = 100'000}, large);
  SubModel model;
  std::span<const uint64_t> table;
  EXPECT_FALSE(cache.FindTable(5, &model, &table));
  EXPECT_FALSE(Use(cache, 6));
  EXPECT_TRUE(Use(cache, 6));
  cache.PutTable(6, {.size = 100'000}, large);  // takes the place of its smaller one
  EXPECT_FALSE(cache.FindTable(6, &model, &table));
  for (uint32_t i = 0; i < kSubModels; ++i) Use(cache, i);
}

TEST_F(CachedModelTest, ANewGenerationBeginsEmpty) {
  CachedModel cache = Make(0.5);
  for (uint32_t i = 0; i < kSubModels; ++i) Use(cache, i);
  cache.Reset(2, TopModel(), {1});
  SubModel model;
  std::span<const uint64_t> table;
  EXPECT_FALSE(cache.FindTable(0, &model, &table));
  EXPECT_FALSE(Use(cache, 0));
  EXPECT_TRUE(Use(cache, 0));
}

}  // namespace
}  // namespace gannet::index::xstore
