// What do the models of ROLEX cost a real core? Finding the model of a key, finding its leaf by a model, and training.
//
//   FindModel     the argument: number of models. Over their first keys: a B-tree in memory, a binary search, and
//                 the paper's upper models with an error bound of 4 and 16. first_keys_bytes: memory of the search.
//   FindInCache   the argument: number of models of 8 leaves. Model and leaf, as a client's lookup finds them.
//   FindLeaf      the argument: epsilon. The leaf of a random trained key in one of 100 models of 96 leaves.
//   TrainModel    the argument: number of leaves. Copying them, training, encoding the model: the paper's 300 us for
//                 128 leaves (FAST'23, 4.5). seconds_per_million_keys: the
//                 paper's 0.28 (4.6).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/random.h"
#include "index/rolex/model.h"
#include "index/rolex/shared_models.h"
#include "index/rolex/upper_model.h"
#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::rolex {
namespace {

constexpr size_t kKeysPerLeaf = 14;

std::vector<uint64_t> RandomKeys(size_t n) {
  Random random(n);
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) key = random();
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  keys.front() = 0;
  return keys;
}

enum class Keys : uint8_t { kRandom, kUneven };

// The first keys of models. Of random keys the models have about equal intervals; those of uneven keys differ a
// thousandfold, and neighbours are alike.
std::vector<uint64_t> FirstKeys(size_t models, Keys keys) {
  Random random(models);
  std::vector<double> gaps(models);
  double sum = 0;
  double scale = 0;
  for (double& gap : gaps) {
    scale = 0.95 * scale + (random.Unit() - 0.5);
    gap = (keys == Keys::kUneven ? std::exp(3 * scale) : 1) * (0.95 + 0.1 * random.Unit());
    sum += gap;
  }
  std::vector<uint64_t> firsts = {0};
  double at = 0;
  for (size_t i = 0; i + 1 < models; ++i) {
    at += gaps[i] / sum * 0x1p63 * 1.99;
    if (static_cast<uint64_t>(at) > firsts.back()) firsts.push_back(static_cast<uint64_t>(at));
  }
  return firsts;
}

// Random keys, equally many of each model.
std::vector<uint64_t> Asked(std::span<const uint64_t> firsts) {
  Random random(3);
  std::vector<uint64_t> asked(1 << 14);
  for (uint64_t& key : asked) {
    const size_t at = random.Below(firsts.size() - 1);
    key = firsts[at] + random.Below(firsts[at + 1] - firsts[at]);
  }
  return asked;
}

template <class Find>
void Measure(benchmark::State& state, std::span<const uint64_t> firsts, size_t bytes, const Find& find) {
  const std::vector<uint64_t> asked = Asked(firsts);
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(find(asked[i++ % asked.size()]));
  state.counters["first_keys_bytes"] = static_cast<double>(bytes);
}

void FindModelInBTree(benchmark::State& state, Keys keys) {
  const std::vector<uint64_t> firsts = FirstKeys(static_cast<size_t>(state.range(0)), keys);
  absl::btree_map<uint64_t, uint64_t> models;
  for (const uint64_t first : firsts) models[first] = models.size();
  Measure(state, firsts, models.size() * 16,
          [&models](uint64_t key) { return std::prev(models.upper_bound(key))->second; });
}

void FindModelByBinarySearch(benchmark::State& state, Keys keys) {
  const std::vector<uint64_t> firsts = FirstKeys(static_cast<size_t>(state.range(0)), keys);
  Measure(state, firsts, firsts.size() * 8,
          [&firsts](uint64_t key) { return std::upper_bound(firsts.begin(), firsts.end(), key) - firsts.begin() - 1; });
}

void FindModelByUpperModels(benchmark::State& state, Keys keys) {
  const std::vector<uint64_t> firsts = FirstKeys(static_cast<size_t>(state.range(0)), keys);
  const UpperModel model(firsts, static_cast<uint32_t>(state.range(1)));
  Measure(state, firsts, model.bytes(), [&model](uint64_t key) { return model.Find(key); });
}

BENCHMARK_CAPTURE(FindModelInBTree, random, Keys::kRandom)->Arg(1'000)->Arg(10'000)->Arg(100'000);
BENCHMARK_CAPTURE(FindModelInBTree, uneven, Keys::kUneven)->Arg(1'000)->Arg(10'000)->Arg(100'000);
BENCHMARK_CAPTURE(FindModelByBinarySearch, random, Keys::kRandom)->Arg(1'000)->Arg(10'000)->Arg(100'000);
BENCHMARK_CAPTURE(FindModelByBinarySearch, uneven, Keys::kUneven)->Arg(1'000)->Arg(10'000)->Arg(100'000);
BENCHMARK_CAPTURE(FindModelByUpperModels, random, Keys::kRandom)->ArgsProduct({{1'000, 10'000, 100'000}, {4, 16}});
BENCHMARK_CAPTURE(FindModelByUpperModels, uneven, Keys::kUneven)->ArgsProduct({{1'000, 10'000, 100'000}, {4, 16}});
// Leaves full of trained keys, as far as a load fills them.
std::vector<TrainedLeaf> LeavesOf(std::span<const uint64_t> keys) {
  std::vector<TrainedLeaf> leaves;
  for (size_t from = 0; from + kKeysPerLeaf <= keys.size(); from += kKeysPerLeaf) {
    TrainedLeaf leaf{
        .low = leaves.empty() ? 0 : keys[from], .offset = (leaves.size() + 1) * shared_leaf::kLeafBytes, .image = {}};
    leaf.image.head.low = leaf.low;
    leaf.image.head.high = from + 2 * kKeysPerLeaf > keys.size() ? UINT64_MAX : keys[from + kKeysPerLeaf] - 1;
    for (size_t i = 0; i < kKeysPerLeaf; ++i) {
      leaf.image.set_entry(static_cast<int>(i), IntegerEntry{keys[from + i], 64});
    }
    leaf.image.head.slots = (uint64_t{1} << kKeysPerLeaf) - 1;
    leaves.push_back(leaf);
  }
  return leaves;
}

// The whole search in a client's cache: the model, then the leaf.
void FindInCache(benchmark::State& state) {
  constexpr size_t kLeaves = 8;
  constexpr size_t kKeysPerModel = kLeaves * kKeysPerLeaf;
  const auto models = static_cast<size_t>(state.range(0));
  const std::vector<uint64_t> keys = RandomKeys(models * kKeysPerModel);
  KnownModels<IntegerKeys> cache(SIZE_MAX);
  std::vector<uint64_t> firsts;
  for (size_t from = 0; from + kKeysPerModel <= keys.size(); from += kKeysPerModel) {
    const std::vector<TrainedLeaf> leaves = LeavesOf(std::span(keys).subspan(from, kKeysPerModel));
    cache.Install(Model::Train(leaves, keys[from], keys[from + kKeysPerModel - 1] + 1, 16));
    firsts.push_back(keys[from]);
  }
  const std::vector<uint64_t> asked = Asked(firsts);
  size_t i = 0;
  for (auto _ : state) {
    KnownModels<IntegerKeys>::Prediction prediction;
    benchmark::DoNotOptimize(cache.Find(asked[i++ % asked.size()], &prediction));
    benchmark::DoNotOptimize(prediction);
  }
}

void FindLeaf(benchmark::State& state) {
  constexpr size_t kModels = 100;
  constexpr size_t kKeysPerModel = 96 * kKeysPerLeaf;
  const std::vector<uint64_t> keys = RandomKeys(kModels * kKeysPerModel);
  const auto epsilon = static_cast<uint32_t>(state.range(0));
  std::vector<Model> models;
  size_t bytes = 0;
  for (size_t from = 0; from + kKeysPerModel <= keys.size(); from += kKeysPerModel) {
    const std::vector<TrainedLeaf> leaves = LeavesOf(std::span(keys).subspan(from, kKeysPerModel));
    models.push_back(Model::Train(leaves, keys[from], keys[from + kKeysPerModel - 1] + 1, epsilon));
    bytes += models.back().bytes();
  }
  Random random(5);
  std::vector<size_t> asked(1 << 14);
  for (size_t& at : asked) at = random.Below(models.size() * kKeysPerModel);
  size_t i = 0;
  for (auto _ : state) {
    const size_t at = asked[i++ % asked.size()];
    benchmark::DoNotOptimize(models[at / kKeysPerModel].For(keys[at]));
  }
  state.counters["bytes_per_key"] = static_cast<double>(bytes) / static_cast<double>(models.size() * kKeysPerModel);
}

BENCHMARK(FindInCache)->Arg(100)->Arg(1'000)->Arg(10'000);
BENCHMARK(FindLeaf)->RangeMultiplier(2)->Range(4, 256);

void TrainModel(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  const std::vector<uint64_t> keys = RandomKeys(n * kKeysPerLeaf);
  const std::vector<TrainedLeaf> leaves = LeavesOf(keys);
  const auto epsilon = static_cast<uint32_t>(state.range(1));
  std::vector<TrainedLeaf> read(leaves.size());
  std::vector<std::byte> block;
  for (auto _ : state) {
    std::memcpy(read.data(), leaves.data(), leaves.size() * sizeof(TrainedLeaf));
    const Model model = Model::Train(read, 0, std::nullopt, epsilon);
    block.resize(model.bytes());
    model.Encode(block);
    benchmark::DoNotOptimize(block.data());
  }
  state.counters["seconds_per_million_keys"] =
      benchmark::Counter(static_cast<double>(leaves.size() * kKeysPerLeaf) * 1e-6,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(TrainModel)
    ->ArgsProduct({{32, 128, 512}, {16}})
    ->Args({128, 4})
    ->Args({128, 256})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gannet::index::rolex

BENCHMARK_MAIN();
