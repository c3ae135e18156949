// The cache of an owner's model: what it keeps of the translation tables when they do not all fit, and what its clients
// see of its generations.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/client/cached_model.h"

namespace gannet::index::xstore {
namespace xstore_cache_test {

constexpr uint32_t kSubModels = 2000;

TopModel MakeTop() {
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 1000; ++i) samples.push_back(i * 1000);
  return TopModel::Train(Projection(), samples, kSubModels, 64);
}

// Tables of different sizes, which change: what a client would READ.
class CachedModelTest : public testing::Test {
 protected:
  CachedModelTest() : tables_(kSubModels) {
    for (uint32_t i = 0; i < kSubModels; ++i) Retrain(i);
  }

  static std::unique_ptr<CachedGeneration> Begin(size_t max_bytes) {
    return std::make_unique<CachedGeneration>(XCacheMode::kWhole, max_bytes, 1, MakeTop(),
                                              std::vector<uint32_t>{1, 2, 3});
  }
  // A cache with room for about this share of the tables.
  std::unique_ptr<CachedGeneration> Make(double share) {
    uint64_t words = 0;
    for (const auto& table : tables_) words += table.size() + 1;
    most_bytes_ =
        Begin(SIZE_MAX)->bytes() + static_cast<uint64_t>(share * static_cast<double>(words * sizeof(uint64_t)));
    return Begin(most_bytes_);
  }

  void Retrain(uint32_t i) {
    tables_[i].resize(10 + random_.Below(15));
    for (uint64_t& entry : tables_[i]) entry = random_();
  }
  SubModel ModelOf(uint32_t i) const { return {.size = static_cast<uint32_t>(tables_[i].size())}; }

  // True: it was there.
  bool Find(const CachedGeneration& cache, uint32_t i) {
    std::vector<uint64_t> words;
    const auto copy = [&words](const CachedTable& table) {
      words.clear();
      for (uint32_t n = 0; n < table.model().size; ++n) words.push_back(table.word(n));
    };
    if (!cache.FindTable(i, copy)) return false;
    EXPECT_EQ(words, tables_[i]) << i;
    return true;
  }
  // Does what Find does. If the table is not there, it is there now, if there is room.
  bool Use(CachedGeneration& cache, uint32_t i) {
    EXPECT_LE(cache.bytes(), most_bytes_);
    if (Find(cache, i)) return true;
    cache.PutTable(i, ModelOf(i), tables_[i]);
    EXPECT_TRUE(Find(cache, i)) << i;
    return false;
  }

  // Lowest and average share of hits in windows of 1000 uses, once the cache is full.
  struct Rates {
    double lowest = 1;
    double average = 0;
  };
  template <class Draw>
  Rates Measure(CachedGeneration& cache, Draw draw) {
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
  const auto cache = Make(0.5);
  const Rates rates = Measure(*cache, [this] { return static_cast<uint32_t>(random_.Below(kSubModels)); });
  EXPECT_GT(rates.average, 0.42);
  EXPECT_GT(rates.lowest, 0.36);
}

// Nine of ten uses are of a tenth of the tables, which fits.
TEST_F(CachedModelTest, TablesThatAreUsedOftenStay) {
  const auto cache = Make(0.3);
  const Rates rates = Measure(*cache, [this] {
    return static_cast<uint32_t>(random_.OneIn(10) ? random_.Below(kSubModels) : random_.Below(kSubModels / 10));
  });
  EXPECT_GT(rates.average, 0.85);
  EXPECT_GT(rates.lowest, 0.8);
}

// A table that has another size after its retraining leaves its place. Such places are used again.
TEST_F(CachedModelTest, PlacesOfOldTablesAreUsedAgain) {
  const auto cache = Make(0.6);
  const Rates rates = Measure(*cache, [this] {
    const auto i = static_cast<uint32_t>(random_.Below(kSubModels));
    return i;
  });
  double retrained = 0;
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 200; ++n) {
      const auto i = static_cast<uint32_t>(random_.Below(kSubModels));
      Retrain(i);
      cache->PutTable(i, ModelOf(i), tables_[i]);
      ASSERT_LE(cache->bytes(), most_bytes_);
    }
    int hits = 0;
    for (int n = 0; n < 1000; ++n) hits += Use(*cache, static_cast<uint32_t>(random_.Below(kSubModels))) ? 1 : 0;
    retrained += hits / 20'000.0;
  }
  EXPECT_GT(retrained, rates.average * 0.85);
}

TEST_F(CachedModelTest, ATableThatIsTooLargeIsNotKept) {
  const auto cache = Make(0.01);
  std::vector<uint64_t> large(kMaxTableEntries, 7);
  cache->PutTable(5, {.size = kMaxTableEntries}, large);
  EXPECT_FALSE(Find(*cache, 5));
  EXPECT_FALSE(Use(*cache, 6));
  EXPECT_TRUE(Use(*cache, 6));
  cache->PutTable(6, {.size = kMaxTableEntries}, large);  // the smaller one goes
  EXPECT_FALSE(Find(*cache, 6));
  for (uint32_t i = 0; i < kSubModels; ++i) Use(*cache, i);
}

TEST_F(CachedModelTest, TheLargestTableFits) {
  const auto cache = Begin(SIZE_MAX);
  most_bytes_ = SIZE_MAX;
  tables_[3].assign(kMaxTableEntries, 7);
  EXPECT_FALSE(Use(*cache, 2));
  EXPECT_FALSE(Use(*cache, 3));
  EXPECT_TRUE(Use(*cache, 2));
  EXPECT_TRUE(Use(*cache, 3));
}

// More than enough tables for many chunks of the store.
TEST_F(CachedModelTest, AllTablesStayWhereThereIsNoLimit) {
  const auto cache = Begin(SIZE_MAX);
  most_bytes_ = SIZE_MAX;
  const uint64_t empty = cache->bytes();
  uint64_t words = 0;
  for (uint32_t i = 0; i < kSubModels; ++i) {
    Use(*cache, i);
    words += tables_[i].size() + 1;
  }
  for (uint32_t i = 0; i < kSubModels; ++i) EXPECT_TRUE(Use(*cache, i));
  EXPECT_LE(cache->bytes() - empty, words * sizeof(uint64_t) * 5 / 4);
}

// The reader notices them also when the lower bits of the version are the same again.
TEST_F(CachedModelTest, AReaderNoticesAnyNumberOfWrites) {
  const auto cache = Begin(SIZE_MAX);
  uint64_t last = 0;
  const auto write = [&cache, &last] {
    ++last;
    cache->PutTable(0, {.size = 1}, std::span<const uint64_t>(&last, 1));
  };
  write();
  for (const int writes : {0, 1, 2, 1 << 15, 1 << 16, 1 << 17}) {
    int looks = 0;
    uint64_t word = 0;
    const auto look = [&](const CachedTable& table) {
      word = table.word(0);
      for (int i = 0; looks == 0 && i < writes; ++i) write();
      ++looks;
    };
    EXPECT_TRUE(cache->FindTable(0, look));
    EXPECT_EQ(word, last) << writes;
    EXPECT_EQ(looks, writes == 0 ? 1 : 2) << writes;
  }
}

// The owner's answers often bring what is cached.
TEST_F(CachedModelTest, AReaderIsNotDisturbedByWhatIsThere) {
  const auto cache = Begin(SIZE_MAX);
  const auto write = [&] { cache->PutTable(0, ModelOf(0), tables_[0]); };
  write();
  int looks = 0;
  const auto look = [&](const CachedTable&) {
    write();
    ++looks;
  };
  EXPECT_TRUE(cache->FindTable(0, look));
  EXPECT_EQ(looks, 1);
}

TEST_F(CachedModelTest, ANewGenerationBeginsEmpty) {
  most_bytes_ = SIZE_MAX;
  CacheView view(std::make_shared<CachedModel>(XCacheOptions{}));
  EXPECT_EQ(view.number(), 0u);
  for (const uint64_t number : {1, 2}) {
    view.cache().Begin(number, view.change(), MakeTop(), {1, 2, 3});
    EXPECT_EQ(view.number(), number - 1) << "until it follows";
    EXPECT_TRUE(view.Follow());
    EXPECT_FALSE(view.Follow());
    EXPECT_EQ(view.number(), number);
    EXPECT_FALSE(Use(*view, 0));
    EXPECT_TRUE(Use(*view, 0));
  }
}

TEST_F(CachedModelTest, AnOldGenerationIsFreedWhenItsLastClientLeavesIt) {
  const auto cache = std::make_shared<CachedModel>(XCacheOptions{});
  CacheView first(cache);
  CacheView second(cache);
  most_bytes_ = SIZE_MAX;
  cache->Begin(1, 0, MakeTop(), {1, 2, 3});
  for (CacheView* const view : {&first, &second}) EXPECT_TRUE(view->Follow());
  const uint64_t empty = cache->bytes();
  for (uint32_t i = 0; i < kSubModels; ++i) Use(*first, i);
  const uint64_t full = cache->bytes();
  cache->Begin(2, first.change(), MakeTop(), {1, 2, 3});
  first.Follow();
  EXPECT_EQ(cache->bytes(), full + empty);
  EXPECT_TRUE(Find(*second, 7)) << "of the old generation";
  second.Follow();
  EXPECT_EQ(cache->bytes(), empty);
}

TEST_F(CachedModelTest, AnOldDescriptionDoesNotReplaceANewerGeneration) {
  CachedModel cache({});
  const uint64_t asked = cache.changes();
  cache.Begin(3, asked, MakeTop(), {1, 2, 3});
  cache.Begin(2, asked, MakeTop(), {1, 2, 3});  // an answer that came late
  uint64_t change = 0;
  EXPECT_EQ(cache.Current(&change)->number(), 3u);
  cache.Begin(1, change, MakeTop(), {1, 2, 3});  // the owner counts from the beginning again
  EXPECT_EQ(cache.Current(&change)->number(), 1u);
}

TEST_F(CachedModelTest, ACopyHasTheSame) {
  const auto from = std::make_shared<CachedModel>(XCacheOptions{});
  from->Begin(1, 0, MakeTop(), {1, 2, 3});
  CacheView filled(from);
  most_bytes_ = SIZE_MAX;
  for (uint32_t i = 0; i < kSubModels; i += 2) Use(*filled, i);
  const auto to = std::make_shared<CachedModel>(XCacheOptions{});
  CacheView view(to);
  to->Begin(1, 0, MakeTop(), {1, 2, 3});
  view.Follow();
  to->CopyFrom(*from);
  EXPECT_TRUE(view.Follow()) << "although the generation has the same number";
  for (uint32_t i = 0; i < kSubModels; ++i) EXPECT_EQ(Find(*view, i), i % 2 == 0) << i;
  EXPECT_LE(to->bytes(), from->bytes() * 101 / 100);
}

}  // namespace xstore_cache_test
}  // namespace gannet::index::xstore
