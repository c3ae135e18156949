// The learned part of a ROLEX index: linear pieces of bounded error, and models with their leaf tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/rolex/model.h"
#include "index/rolex/plr.h"
#include "index/rolex/quiet_lines.h"
#include "index/rolex/rolex.h"
#include "index/rolex/upper_model.h"

namespace gannet::index::rolex {
namespace rolex_model_test {

struct Point {
  uint64_t x;
  int64_t y;
};

std::vector<PlrPiece> Train(const std::vector<Point>& points, uint32_t epsilon) {
  std::vector<PlrPiece> pieces;
  PlrBuilder builder(epsilon);
  for (const Point& point : points) {
    if (builder.Add(point.x, point.y)) continue;
    pieces.push_back(builder.Finish());
    EXPECT_TRUE(builder.Add(point.x, point.y));
  }
  if (!builder.empty()) pieces.push_back(builder.Finish());
  return pieces;
}

double WorstError(const std::vector<Point>& points, const std::vector<PlrPiece>& pieces) {
  double worst = 0;
  size_t piece = 0;
  for (const Point& point : points) {
    while (piece + 1 < pieces.size() && pieces[piece + 1].first <= point.x) ++piece;
    worst = std::max(worst, std::abs(pieces[piece].At(point.x) - static_cast<double>(point.y)));
  }
  return worst;
}

// Whether a line meets all segments: by Helly's theorem it does if one meets each three of them. That is so if the
// middle segment reaches the line through the upper ends of the outer two, from below, and that through the lower ends.
bool LineFits(const std::vector<Point>& points, size_t from, size_t to, int64_t epsilon) {
  using Wide = __int128;
  for (size_t i = from; i < to; ++i) {
    for (size_t j = i + 1; j < to; ++j) {
      for (size_t k = j + 1; k < to; ++k) {
        const Wide left = Wide{points[j].x} - Wide{points[i].x};
        const Wide right = Wide{points[k].x} - Wide{points[j].x};
        const Wide upper = (points[i].y + epsilon) * right + (points[k].y + epsilon) * left;
        const Wide lower = (points[i].y - epsilon) * right + (points[k].y - epsilon) * left;
        if ((points[j].y - epsilon) * (left + right) > upper || (points[j].y + epsilon) * (left + right) < lower) {
          return false;
        }
      }
    }
  }
  return true;
}

TEST(PlrTest, PiecesAreAsLongAsPossible) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::vector<Point> points;
    // Small and huge distances, in turn, and positions that stay, step or jump.
    const uint64_t most = uint64_t{1} << (1 + random.Below(54));
    uint64_t x = random.Below(most);
    int64_t y = 0;
    for (int i = 0; i < 40; ++i) {
      points.push_back({x, y});
      x += 1 + random.Below(most);
      y += static_cast<int64_t>(random.OneIn(5) ? random.Below(20) : random.Below(3));
    }
    const auto epsilon = static_cast<uint32_t>(random.Below(6));
    const std::vector<PlrPiece> pieces = Train(points, epsilon);
    EXPECT_LE(WorstError(points, pieces), epsilon + 1e-6) << "seed " << seed;
    size_t from = 0;
    for (const PlrPiece& piece : pieces) {
      ASSERT_EQ(piece.first, points[from].x) << "seed " << seed;
      size_t to = from + 1;
      while (to < points.size() && LineFits(points, from, to + 1, epsilon)) ++to;
      from = to;
    }
    EXPECT_EQ(from, points.size()) << "seed " << seed;
  }
}

TEST(PlrTest, KeysAtBothEndsOfTheRange) {
  const std::vector<Point> points = {{0, 0}, {1, 1}, {UINT64_MAX - 1, 2}, {UINT64_MAX, 3}};
  EXPECT_EQ(Train(points, 1).size(), 1u);
  EXPECT_EQ(Train(points, 0).size(), 2u);
  EXPECT_LE(WorstError(points, Train(points, 0)), 1e-3);
  const std::vector<PlrPiece> one = Train({{UINT64_MAX, 7}}, 0);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].At(UINT64_MAX), 7);
}

// A line of any length is one piece. Random keys take about one piece for 3.8 epsilon squared.
TEST(PlrTest, FewPieces) {
  std::vector<Point> line;
  for (uint64_t i = 0; i < 100'000; ++i) line.push_back({1000 + 37 * i, static_cast<int64_t>(i)});
  EXPECT_EQ(Train(line, 1).size(), 1u);

  Random random(7);
  std::set<uint64_t> keys;
  while (keys.size() < 200'000) keys.insert(random());
  std::vector<Point> points;
  for (const uint64_t key : keys) points.push_back({key, static_cast<int64_t>(points.size())});
  const size_t pieces = Train(points, 16).size();
  EXPECT_GE(pieces, points.size() / 1200);
  EXPECT_LE(pieces, points.size() / 800);
}

// Leaves of a chain over the keys, as a bulk load makes them, or with keys in any slots.
std::vector<TrainedLeaf> MakeLeaves(const std::vector<uint64_t>& keys, uint64_t low, uint64_t high, Random* shuffle) {
  std::vector<TrainedLeaf> leaves;
  for (size_t from = 0; from < keys.size(); from += kPositions) {
    const size_t to = std::min(from + kPositions, keys.size());
    TrainedLeaf leaf{
        .low = from == 0 ? low : keys[from], .offset = (leaves.size() + 1) * shared_leaf::kLeafBytes, .image = {}};
    leaf.image.head.state = 1;
    leaf.image.head.low = leaf.low;
    leaf.image.head.high = to == keys.size() ? high : keys[to] - 1;
    std::vector<uint64_t> in_leaf(keys.begin() + static_cast<ptrdiff_t>(from),
                                  keys.begin() + static_cast<ptrdiff_t>(to));
    if (shuffle != nullptr) {
      for (size_t i = in_leaf.size(); i > 1; --i) std::swap(in_leaf[i - 1], in_leaf[shuffle->Below(i)]);
    }
    for (size_t i = 0; i < in_leaf.size(); ++i) leaf.image.set_entry(static_cast<int>(i), IntegerEntry{in_leaf[i], 64});
    leaf.image.head.slots = (uint64_t{1} << in_leaf.size()) - 1;
    leaves.push_back(leaf);
  }
  return leaves;
}

// The first key of the model after one whose last key this is.
std::optional<uint64_t> Behind(uint64_t last) {
  return last == UINT64_MAX ? std::nullopt : std::optional(last + 1);
}

std::vector<uint64_t> RandomKeys(Random* random, size_t n, uint64_t low, uint64_t high) {
  std::set<uint64_t> keys;
  while (keys.size() < n) keys.insert(low + (high - low == UINT64_MAX ? (*random)() : random->Below(high - low + 1)));
  return {keys.begin(), keys.end()};
}

TEST(QuietLinesTest, AMaskHidesBusyWordsAndTakesNothing) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> words(8 * (1 + random.Below(40)));
    for (uint64_t& word : words) word = random.OneIn(2) ? UINT64_MAX - random.Below(200'000) : random();
    words[0] = 0;
    std::vector<uint64_t> masked = words;
    const auto bytes = std::as_writable_bytes(std::span(masked)).first(masked.size() * 8 - random.Below(8));
    const uint64_t mask = QuietMask(bytes);
    EXPECT_EQ(mask & ~kMaskBits, 0u);
    ApplyMask(bytes, mask);
    for (size_t i = 8; i < masked.size(); i += 8) EXPECT_FALSE(rdma::IsLineBusy(masked[i])) << i;
    ApplyMask(bytes, mask);
    EXPECT_EQ(masked, words);
  }
}

TEST(RolexModelTest, LeadsToTheLeafAndTheLine) {
  struct Range {
    uint64_t low;
    uint64_t high;
  };
  for (const Range range :
       {Range{0, UINT64_MAX}, Range{1000, 1000 + 40'000}, Range{UINT64_MAX - 3'000'000, UINT64_MAX}}) {
    for (const uint32_t epsilon : {0u, 4u, 16u}) {
      Random random(epsilon + 1);
      const std::vector<uint64_t> keys = RandomKeys(&random, 188 * kPositions, range.low, range.high);
      const std::vector<TrainedLeaf> leaves = MakeLeaves(keys, range.low, range.high, nullptr);
      const Model model = Model::Train(leaves, range.low, Behind(range.high), epsilon);
      ASSERT_EQ(model.leaves(), leaves.size());
      size_t wrong_lines = 0;
      for (size_t i = 0; i < keys.size(); ++i) {
        // The error bound of the paper.
        ASSERT_LE(std::abs(model.Predict(keys[i]) - static_cast<double>(i)), epsilon + 1e-6);
        const Model::Prediction prediction = model.For(keys[i]);
        // Two leaves that begin within one unit are very rare: 2^32 units.
        ASSERT_EQ(prediction.leaf, i / kPositions) << keys[i];
        ASSERT_EQ(model.OffsetOf(prediction.leaf), leaves[prediction.leaf].offset);
        wrong_lines += prediction.line == static_cast<int>(i % kPositions) / IntegerEntry::kPerLine ? 0 : 1;
      }
      // Not all keys of a sixty-fourth of a leaf are in one line.
      EXPECT_LE(wrong_lines, keys.size() / 20);
    }
  }
}

// Keys that were not trained, in a table with keys in any slots, lead to the leaf that covers them.
TEST(RolexModelTest, LeadsAbsentKeysToTheirLeaf) {
  Random random(3);
  const std::vector<uint64_t> keys = RandomKeys(&random, 2000, 50, 1'000'000);
  const std::vector<TrainedLeaf> leaves = MakeLeaves(keys, 0, 2'000'000, &random);
  const Model model = Model::Train(leaves, 0, 2'000'001, 8);
  for (uint64_t key = 0; key <= 2'000'000; key += 7) {
    const Model::Prediction prediction = model.For(key);
    ASSERT_TRUE(leaves[prediction.leaf].image.Covers(key)) << key;
    ASSERT_EQ(prediction.line, LineHint::kUnknown);
  }
}

// The last model of an index covers all keys up to the greatest there are, and its leaves lie close together: no key of
// a leaf leads to another one.
TEST(RolexModelTest, TheLastModelIsAsExactAsTheOthers) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 96 * kPositions; ++i) keys.push_back(50'000 + 3 * i);
  const std::vector<TrainedLeaf> leaves = MakeLeaves(keys, 40'000, UINT64_MAX, nullptr);
  const Model model = Model::Train(leaves, 40'000, std::nullopt, 16);
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(model.For(keys[i]).leaf, i / kPositions) << keys[i];
  for (const uint64_t key : {keys.back() + 1, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(model.For(key).leaf, leaves.size() - 1) << key;
  }
  std::vector<std::byte> block(model.bytes());
  model.Encode(block);
  EXPECT_TRUE(Model::Decode(block).ok());
}

// A few keys that were inserted later do not make the hint useless for the others.
TEST(RolexModelTest, LinesOfKeysInsertedLater) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < kPositions; ++i) keys.push_back(100 + 100 * i);
  TrainedLeaf leaf = MakeLeaves(keys, 100, 1699, nullptr)[0];
  leaf.image.set_entry(16, IntegerEntry{150, 64});
  leaf.image.set_entry(17, IntegerEntry{1650, 64});
  leaf.image.head.slots |= uint64_t{3} << 16;
  const Model model = Model::Train({&leaf, 1}, 100, 1700, 16);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(model.For(keys[i]).line, static_cast<int>(i) / IntegerEntry::kPerLine);
  }
}

TEST(RolexModelTest, BlocksAreCheckedBeforeTheyAreBelieved) {
  Random random(5);
  const std::vector<uint64_t> keys = RandomKeys(&random, 1000, 0, 1'000'000);
  Model model = Model::Train(MakeLeaves(keys, 0, UINT64_MAX, nullptr), 0, std::nullopt, 4);
  model.set_generation(17);
  model.set_synonyms(4096);
  std::vector<std::byte> block(model.bytes());
  model.Encode(block);
  const StatusOr<Model> read = Model::Decode(block);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->generation(), 17u);
  EXPECT_EQ(read->synonyms(), 4096u);
  EXPECT_TRUE(std::ranges::equal(read->pieces(), model.pieces()));
  for (const uint64_t key : keys) ASSERT_EQ(read->For(key).leaf, model.For(key).leaf);
  EXPECT_EQ(*Model::BytesOf(std::span(block).first(Model::kHeaderBytes)), block.size());

  EXPECT_FALSE(Model::Decode(std::span(block).first(block.size() - 1)).ok());
  EXPECT_FALSE(Model::Decode(std::span(block).first(10)).ok());
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> damaged = block;
    damaged[random.Below(damaged.size())] ^= static_cast<std::byte>(1 + random.Below(255));
    EXPECT_FALSE(Model::Decode(damaged).ok());
  }
}

// The paper's cache: 0.97 bytes per key. It grows with smaller errors, because there are more pieces.
TEST(RolexModelTest, CacheTakesLessThanAByteForAKey) {
  Random random(9);
  const std::vector<uint64_t> keys = RandomKeys(&random, 60'000, 0, UINT64_MAX);
  const Model model = Model::Train(MakeLeaves(keys, 0, UINT64_MAX, nullptr), 0, std::nullopt, 16);
  EXPECT_LE(static_cast<double>(model.bytes()) / static_cast<double>(keys.size()), 0.8);
}

// Leaves over byte keys in ascending order, as a bulk load makes them. The leaf of keys[i] is i / kLoadedEntries.
std::vector<TrainedLeafOf<ByteKeys>> MakeByteLeaves(const std::vector<std::string>& keys) {
  constexpr size_t kEach = kLoadedEntries<ByteKeys>;
  std::vector<TrainedLeafOf<ByteKeys>> leaves;
  for (size_t from = 0; from < keys.size(); from += kEach) {
    const size_t to = std::min(from + kEach, keys.size());
    TrainedLeafOf<ByteKeys> leaf{.offset = (leaves.size() + 1) * 704, .image = {}};
    if (from > 0) leaf.low = ByteKeys::Border(ByteKey(keys[from - 1]), ByteKey(keys[from]), 0, false);
    leaf.image.head.state = 1;
    leaf.image.head.slots = (uint64_t{1} << (to - from)) - 1;
    leaf.image.head.set_fence_lines(4);
    for (size_t i = from; i < to; ++i) {
      leaf.keys.known |= uint64_t{1} << (i - from);
      leaf.keys.of[i - from] = ByteKey(keys[i]);
    }
    leaves.push_back(leaf);
  }
  return leaves;
}

struct Names {
  const char* name;
  std::vector<std::string> keys;  // ascending
};

// Keys that a projection to their first 8 bytes, or to any 8 bytes, cannot tell apart.
std::vector<Names> ManyNames() {
  Random random(11);
  const auto text = [&random](size_t size, int letters) {
    std::string bytes(size, ' ');
    for (char& byte : bytes) byte = static_cast<char>('a' + random.Below(static_cast<uint64_t>(letters)));
    return bytes;
  };
  const auto sorted = [](std::set<std::string> keys) { return std::vector<std::string>(keys.begin(), keys.end()); };
  constexpr size_t kKeys = 4000;
  std::set<std::string> prefixed;  // by one of three prefixes of 40 bytes
  const std::array<std::string, 3> prefixes = {text(40, 26), text(40, 26), text(40, 26)};
  while (prefixed.size() < kKeys) prefixed.insert(prefixes[random.Below(3)] + text(1 + random.Below(24), 4));
  std::set<std::string> groups;  // many groups of few keys with a prefix of 40 bytes
  while (groups.size() < kKeys) {
    const std::string prefix = text(40, 3);
    for (int i = 0; i < 50; ++i) groups.insert(prefix + text(10, 26));
  }
  std::set<std::string> zipf;  // names of syllables, some of which are very frequent
  while (zipf.size() < kKeys) {
    std::string name;
    for (int i = 0; i < 6; ++i) {
      const uint64_t rank = random.Below(1 + random.Below(1 + random.Below(20)));
      name += std::string(1 + rank % 3, static_cast<char>('a' + rank)) + "ar";
    }
    zipf.insert(name.substr(0, 64));
  }
  std::set<std::string> long_keys;  // of 64 bytes, which differ in the last ones only
  while (long_keys.size() < kKeys) long_keys.insert(std::string(60, 'x') + text(4, 10));
  std::set<std::string> nested = {""};  // the empty key, and keys that are prefixes of each other
  while (nested.size() < kKeys) {
    const std::string whole = text(64, 2);
    for (size_t size = 0; size <= 64; ++size) nested.insert(whole.substr(0, size));
  }
  std::set<std::string> binary;
  while (binary.size() < kKeys) {
    std::string key(random.Below(10), ' ');
    for (char& byte : key) byte = static_cast<char>(random.OneIn(2) ? random.Below(2) * 255 : random());
    binary.insert(key);
  }
  return {{"three prefixes", sorted(prefixed)}, {"groups", sorted(groups)}, {"zipf", sorted(zipf)},
          {"long", sorted(long_keys)},          {"nested", sorted(nested)}, {"binary", sorted(binary)}};
}

TEST(RolexByteModelTest, LeadsAllKeysToTheirLeaf) {
  for (const Names& names : ManyNames()) {
    const std::vector<TrainedLeafOf<ByteKeys>> leaves = MakeByteLeaves(names.keys);
    const auto model = BasicModel<ByteKeys>::Train(leaves, ByteKey(), std::nullopt, 16);
    std::vector<std::byte> block(model.bytes());
    model.Encode(block);
    const auto read = BasicModel<ByteKeys>::Decode(block);
    ASSERT_TRUE(read.ok()) << names.name;
    for (size_t i = 0; i < names.keys.size(); ++i) {
      const ByteKey key(names.keys[i]);
      const size_t leaf = i / kLoadedEntries<ByteKeys>;
      const auto prediction = read->For(ByteKeys::At(key));
      ASSERT_EQ(prediction.leaf, leaf) << names.name << " " << names.keys[i];
      ASSERT_EQ(read->OffsetOf(leaf), leaves[leaf].offset);
      // Numbers do not decrease.
      if (i > 0) {
        ASSERT_LE(model.NumberOf(ByteKey(names.keys[i - 1])), model.NumberOf(key)) << names.name;
      }
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_EQ(read->LowOf(i), leaves[i].low) << names.name;
      // The low fence is of the leaf; the keys right below it are of the leaf before.
      ASSERT_EQ(read->For(ByteKeys::At(leaves[i].low)).leaf, i) << names.name;
      if (i > 0) {
        ASSERT_EQ(read->For(ByteKeys::Point{leaves[i].low, true}).leaf, i - 1) << names.name;
      }
    }
    // The limit holds even where all fences of a model are long.
    EXPECT_LE(static_cast<double>(model.bytes()) / static_cast<double>(names.keys.size()), 2.5) << names.name;
  }
}

// A model of a part of the keys: it has a first key, and a next model. Keys that were not trained lead there, too.
TEST(RolexByteModelTest, APartOfTheKeys) {
  for (const Names& names : ManyNames()) {
    const std::vector<TrainedLeafOf<ByteKeys>> all = MakeByteLeaves(names.keys);
    const std::span<const TrainedLeafOf<ByteKeys>> some = std::span(all).subspan(30, 40);
    const auto model = BasicModel<ByteKeys>::Train(some, some[0].low, all[70].low, 16);
    EXPECT_FALSE(model.CoversKey(ByteKey(names.keys[0])));
    EXPECT_FALSE(model.CoversKey(all[70].low));
    EXPECT_FALSE(model.Covers(ByteKeys::Point{some[0].low, true}));
    EXPECT_TRUE(model.Covers(ByteKeys::Point{all[70].low, true}));
    for (std::string key : names.keys) {
      if (!key.empty()) key.back() = static_cast<char>(key.back() + 1);
      const ByteKey absent(key);
      if (!model.CoversKey(absent)) continue;
      const size_t leaf = model.For(ByteKeys::At(absent)).leaf;
      ASSERT_LE(some[leaf].low, absent) << names.name;
      if (leaf + 1 < some.size()) {
        ASSERT_LT(absent, some[leaf + 1].low) << names.name;
      }
    }
  }
}

TEST(RolexByteModelTest, BlocksAreCheckedBeforeTheyAreBelieved) {
  Random random(5);
  for (const Names& names : ManyNames()) {
    const auto leaves = MakeByteLeaves(names.keys);
    auto model = BasicModel<ByteKeys>::Train(std::span(leaves).first(60), ByteKey(), leaves[60].low, 4);
    model.set_generation(17);
    model.set_synonyms(4096);
    std::vector<std::byte> block(model.bytes());
    model.Encode(block);
    const auto read = BasicModel<ByteKeys>::Decode(block);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->generation(), 17u);
    EXPECT_EQ(read->synonyms(), 4096u);
    EXPECT_EQ(read->next(), leaves[60].low);
    EXPECT_EQ(read->bytes(), block.size());
    EXPECT_FALSE(BasicModel<ByteKeys>::Decode(std::span(block).first(block.size() - 1)).ok());
    for (int i = 0; i < 500; ++i) {
      std::vector<std::byte> damaged = block;
      damaged[random.Below(damaged.size())] ^= static_cast<std::byte>(1 + random.Below(255));
      EXPECT_FALSE(BasicModel<ByteKeys>::Decode(damaged).ok());
    }
  }
}

// Any key leads to the last that is at most as great, whatever the keys and the bound are.
TEST(UpperModelTest, FindsTheLastKeyAtMost) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const size_t n = 1 + random.Below(seed % 3 == 0 ? 3 : 5000);
    std::vector<uint64_t> keys;
    uint64_t at = random.OneIn(3) ? 0 : random.Below(1000);
    for (size_t i = 0; i < n; ++i) {
      keys.push_back(at);
      const uint64_t more = random.OneIn(9) ? random.Below(uint64_t{1} << 48) : random.Below(3);
      at = more > UINT64_MAX - at ? UINT64_MAX : at + more;
    }
    const UpperModel model(keys, static_cast<uint32_t>(random.Below(20)));
    const auto expected = [&keys](uint64_t key) {
      const auto after = std::upper_bound(keys.begin(), keys.end(), key);
      return after == keys.begin() ? size_t{0} : static_cast<size_t>(after - keys.begin() - 1);
    };
    for (size_t i = 0; i < keys.size(); ++i) {
      for (const uint64_t key : {keys[i], keys[i] - 1, keys[i] + 1}) {
        ASSERT_EQ(model.Find(key), expected(key)) << "seed " << seed << ", key " << key;
      }
    }
    for (const uint64_t key : {uint64_t{0}, UINT64_MAX, random()}) ASSERT_EQ(model.Find(key), expected(key));
  }
}

// A value that is found is in the map, and most are found.
TEST(UpperPlacesTest, LeadToMostValuesOfAMap) {
  Random random(5);
  std::map<uint64_t, std::unique_ptr<uint64_t>> map;
  UpperPlaces<uint64_t> places;
  size_t found = 0;
  size_t asked = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t key = random.Below(3000);
    auto& value = map[key];
    if (value != nullptr) places.Remove(key, value.get());
    if (random.OneIn(4)) {
      map.erase(key);
    } else {
      value = std::make_unique<uint64_t>(key);
      if (places.Add(key, value.get(), map.size())) places.Build(map);
    }
    const uint64_t wanted = random.Below(3000);
    auto after = map.upper_bound(wanted);
    if (after == map.begin()) continue;
    ++asked;
    const uint64_t* const place = places.Find(wanted);
    if (place == nullptr) continue;
    EXPECT_EQ(map.at(*place).get(), place);
    found += *place == std::prev(after)->first ? 1 : 0;
  }
  EXPECT_GT(found, asked / 2);
}

TEST(RolexOptionsTest, AsText) {
  EXPECT_EQ(ToText(RolexOptions{}), "epsilon=16");
  EXPECT_EQ(RolexOptionsOf("")->epsilon, 16u);
  EXPECT_EQ(RolexOptionsOf("epsilon=64")->epsilon, 64u);
  for (const char* wrong : {"epsilon=0", "epsilon=5000", "epsilon=", "epsilon=x", "delta=16"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RolexOptionsOf(wrong).status())) << wrong;
  }
}

}  // namespace rolex_model_test
}  // namespace gannet::index::rolex
