// Spatial indexes at the owner: searches agree with a brute-force model, their witnesses catch phantoms, and what
// threads find while others write existed at one moment.
#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/spatial_suite.h"

namespace gannet::index {
namespace spatial_owner_test {

TEST_P(SpatialSuite, SearchesAgreeWithTheModel) {
  Start(kRectangles);
  Random random(41);
  for (int round = 0; round < 400; ++round) {
    ChangeSome(10, &random);
    if (round % 50 == 0) ExpectSameAsModel();
    if (HasFatalFailure()) return;
    EpochGuard guard(main_->epoch());
    const Rectangle window = RandomWindow(&random);
    const ScanResult result = MustSearch(window, random.OneIn(2));
    ASSERT_EQ(IdsOf(result.entries), IdsIn(model_, window)) << window.ToString();
    for (const Entry& entry : result.entries) ASSERT_EQ(entry.record, model_.at(entry.key));
    ASSERT_FALSE(result.witnesses.empty());
    ASSERT_TRUE(HeldWitnesses(cluster_.get(), result.witnesses).Valid());
  }
  while (!model_.empty()) RemoveBoth(AnyKey(&random));
  ExpectSameAsModel();
  EpochGuard guard(main_->epoch());
  EXPECT_TRUE(MustSearch(Rectangle::Everything()).entries.empty());
}

TEST_P(SpatialSuite, StepsOfASearchAgreeWithTheModel) {
  Start(kRectangles);
  Random random(42);
  for (int round = 0; round < 150; ++round) {
    ChangeSome(20, &random);
    EpochGuard guard(main_->epoch());
    const Rectangle window = RandomWindow(&random);
    const size_t limit = 1 + random.Below(60);
    // There are enough for a step to get anywhere: the rectangle that covers everything leads to few nodes, but to
    // some.
    const size_t most_witnesses = 150 + random.Below(200);
    std::optional<ScanPosition> position;
    ScanResult all;
    do {
      const std::optional<ScanPosition> before = position;
      ScanResult step;
      const Status status = index_->SearchStep({.window = window}, limit, most_witnesses, &position, &step);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_LE(step.entries.size(), limit);
      ASSERT_LE(step.witnesses.size(), most_witnesses);
      ASSERT_TRUE(!before.has_value() || !position.has_value() || *before < *position);
      all.entries.insert(all.entries.end(), step.entries.begin(), step.entries.end());
    } while (position.has_value());
    ASSERT_EQ(IdsOf(all.entries), IdsIn(model_, window)) << window.ToString();
    for (size_t i = 1; i < all.entries.size(); ++i) {
      ASSERT_TRUE(all.entries[i - 1].key.view() < all.entries[i].key.view());
    }
  }
}

TEST_P(SpatialSuite, NearestAgreesWithTheModel) {
  Start(kRectangles);
  Random random(43);
  for (int round = 0; round < 300; ++round) {
    ChangeSome(10, &random);
    EpochGuard guard(main_->epoch());
    const Rectangle at = RandomWindow(&random);
    const size_t count = random.OneIn(10) ? kRectangles : random.Below(20);
    ScanResult result;
    const Status status = index_->Nearest({.x = at.max_x, .y = at.max_y, .count = count}, &result);
    ASSERT_TRUE(status.ok()) << status;
    IdsOf(result.entries);
    for (const Entry& entry : result.entries) ASSERT_EQ(entry.record, model_.at(entry.key));
    ASSERT_EQ(DistancesOf(result.entries, at.max_x, at.max_y), LeastDistances(model_, at.max_x, at.max_y, count));
  }
}

// A search, a step of one, and the nearest of a point: a change of what they looked at, by someone else, changes one of
// their witnesses.
TEST_P(SpatialSuite, ForeignChangesInvalidateASearch) {
  Start(kRectangles);
  Random random(44);
  for (uint64_t n = 1; n < kRectangles; n += 3) InsertBoth(KeyOf(n));
  int inside = 0;
  for (int round = 0; round < 3000; ++round) {
    EpochGuard guard(main_->epoch());
    const OwnedKey key = KeyOf(random.Below(kRectangles));
    const Rectangle window = random.OneIn(2) ? RandomWindow(&random) : RectangleOf(key).box;
    const HeldWitnesses held(cluster_.get(), MustSearch(window).witnesses);
    ASSERT_TRUE(held.Valid());
    const bool meets = RectangleOf(key).box.Meets(window);
    Toggle(key);
    inside += meets;
    ASSERT_FALSE(meets && held.Valid()) << RectangleOf(key).box.ToString() << " in " << window.ToString();
  }
  EXPECT_GT(inside, 1000);
}

TEST_P(SpatialSuite, ForeignChangesInvalidateAStep) {
  Start(kRectangles);
  Random random(45);
  for (uint64_t n = 1; n < kRectangles; n += 3) InsertBoth(KeyOf(n));
  int inside = 0;
  for (int round = 0; round < 3000; ++round) {
    EpochGuard guard(main_->epoch());
    const OwnedKey key = KeyOf(random.Below(kRectangles));
    const Rectangle window =
        random.OneIn(3) ? RandomWindow(&random) : RectangleOf(key).box.Union(RandomWindow(&random));
    std::optional<ScanPosition> from;
    ScanResult result;
    ASSERT_TRUE(index_->SearchStep({.window = window}, 1 + random.Below(20), SIZE_MAX, &from, &result).ok());
    std::optional<ScanPosition> to = from;
    if (from.has_value()) {
      result.Clear();
      ASSERT_TRUE(index_->SearchStep({.window = window}, 1 + random.Below(20), SIZE_MAX, &to, &result).ok());
    }
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    ASSERT_TRUE(held.Valid());
    ScanPosition at;
    std::ranges::copy(RectangleOf(key).Words(), at.words.begin());
    const bool passed = (!from.has_value() || *from <= at) && (!to.has_value() || at < *to);
    const bool meets = passed && RectangleOf(key).box.Meets(window);
    Toggle(key);
    inside += meets;
    ASSERT_FALSE(meets && held.Valid()) << RectangleOf(key).box.ToString() << " in " << window.ToString();
  }
  EXPECT_GT(inside, 100);
}

TEST_P(SpatialSuite, ForeignChangesInvalidateTheNearest) {
  Start(kRectangles);
  Random random(46);
  for (uint64_t n = 1; n < kRectangles; n += 3) InsertBoth(KeyOf(n));
  int nearer = 0;
  for (int round = 0; round < 3000; ++round) {
    EpochGuard guard(main_->epoch());
    const Rectangle at = RandomWindow(&random);
    ScanResult result;
    ASSERT_TRUE(index_->Nearest({.x = at.min_x, .y = at.min_y, .count = 1 + random.Below(60)}, &result).ok());
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    const double reach = DistancesOf(result.entries, at.min_x, at.min_y).back();
    const OwnedKey key = KeyOf(random.Below(kRectangles));
    const bool matters = RectangleOf(key).box.SquaredDistance(at.min_x, at.min_y) < reach;
    Toggle(key);
    nearer += matters;
    ASSERT_FALSE(matters && held.Valid()) << RectangleOf(key).box.ToString();
  }
  EXPECT_GT(nearer, 50);
}

TEST_P(SpatialSuite, SearchesCarryOverOwnChanges) {
  Start(kRectangles);
  Random random(47);
  for (uint64_t n = 1; n < kRectangles; n += 3) InsertBoth(KeyOf(n));
  int inside = 0;
  for (int round = 0; round < 300; ++round) {
    EpochGuard guard(main_->epoch());
    const OwnedKey inside_key = KeyOf(random.Below(kRectangles));
    const Rectangle window = random.OneIn(2) ? RandomWindow(&random) : RectangleOf(inside_key).box;
    HeldWitnesses held(cluster_.get(), MustSearch(window).witnesses);
    for (int i = 0; i < 30; ++i) {
      const Change change = Toggle(KeyOf(random.Below(kRectangles)));
      ExpectSound(change);
      held.Apply(change);
      ASSERT_TRUE(held.Valid()) << "after " << i << " own changes";
    }
    // The window is still covered, wherever its keys have gone.
    for (int i = 0; i < 10 && held.Valid(); ++i) {
      const OwnedKey foreign = random.OneIn(2) ? inside_key : KeyOf(random.Below(kRectangles));
      const bool meets = RectangleOf(foreign).box.Meets(window);
      Toggle(foreign);
      inside += meets;
      ASSERT_FALSE(meets && held.Valid()) << RectangleOf(foreign).box.ToString() << " in " << window.ToString();
    }
  }
  // A round ends at the first conflict, which may be a false one: words cover keys by hashes with a new random seed.
  // So the number varies, around 120.
  EXPECT_GT(inside, 50);
}

TEST_P(SpatialSuite, WrongWindowsAndKeysAreRefused) {
  Start(100);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EpochGuard guard(main_->epoch());
  ScanResult result;
  for (const Rectangle& wrong : {Rectangle{kNan, 0, 1, 1}, Rectangle{0, 0, kInfinity, 1}, Rectangle{2, 0, 1, 1}}) {
    std::optional<ScanPosition> position;
    EXPECT_TRUE(absl::IsInvalidArgument(index_->Search({.window = wrong}, &result)));
    EXPECT_TRUE(absl::IsInvalidArgument(index_->SearchStep({.window = wrong}, 1, 100, &position, &result)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(index_->Nearest({.x = 0, .y = kNan}, &result)));
  EXPECT_TRUE(index_->Nearest({.x = 0, .y = 0, .count = 3}, &result).ok());
  EXPECT_TRUE(result.entries.empty());
  for (const std::string& bytes : {std::string(), std::string(8, 'x'), std::string(40, '\xff'), std::string(64, 'x')}) {
    const Key key{std::string_view(bytes)};
    const rdma::GlobalAddress record = main_->NewRecord(key);
    EXPECT_TRUE(absl::IsInvalidArgument(index_->Insert(main_->context(), key, record, nullptr).status()));
    EXPECT_TRUE(absl::IsNotFound(index_->Remove(main_->context(), key, record).status()));
    const FindResult found = index_->Find(key);
    EXPECT_TRUE(found.record.is_null());
    EXPECT_TRUE(cluster_->Valid(found.witness));
  }
  ExpectSameAsModel();
}

TEST_P(SpatialSuite, AnEmptiedIndexGivesItsNodesBack) {
  Start(kRectangles);
  uint64_t most = 0;
  for (int round = 0; round < 6; ++round) {
    Random random(48 + static_cast<uint64_t>(round));
    for (uint64_t n = 1; n < kRectangles; ++n) InsertBoth(KeyOf(n));
    const Statistics full = index_->statistics();
    EXPECT_GT(full.nodes, 10u);
    while (!model_.empty()) {
      RemoveBoth(AnyKey(&random));
      if (model_.size() % 64 != 0) continue;
      cluster_->PassGracePeriod();
      main_->epoch()->Collect();
    }
    const Statistics empty = index_->statistics();
    EXPECT_EQ(empty.nodes, 1u);
    EXPECT_EQ(empty.height, 1);
    if (round == 0) most = empty.registered_bytes;
  }
  EXPECT_LE(index_->statistics().registered_bytes, most + most / 4);
}

// Searches in the middle of changes by several threads. One whose witnesses are all unchanged has seen what the window
// had at the moment before it looked at them again; one that asks for one moment has seen what was there at some moment
// of its call.
TEST_P(SpatialSuite, SearchesSeeOneMoment) {
  constexpr int kWriters = 3;
  constexpr int kOperations = 5000;
  constexpr uint64_t kChurned = 500;
  Start(kChurned);
  cluster_->StartEpochs();
  SpatialHistory history(TestRectangles(kChurned));
  struct Seen {
    Rectangle window;
    std::set<uint64_t> ids;
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Seen> validated[2];
  std::vector<Seen> settled[2];
  std::atomic<bool> stop = false;
  const auto search = [&](int self) {
    OwnerThread owner(cluster_.get());
    Random random(60 + static_cast<uint64_t>(self));
    while (!stop.load(std::memory_order_relaxed)) {
      EpochGuard guard(owner.epoch());
      const Rectangle window = RandomWindow(&random);
      const bool at_one_moment = random.OneIn(3);
      const uint64_t begin = history.Tick();
      const ScanResult result = MustSearch(window, at_one_moment);
      const uint64_t end = history.Tick();
      if (at_one_moment) {
        settled[self].push_back({window, IdsOf(result.entries), begin, end});
      } else if (HeldWitnesses(cluster_.get(), result.witnesses).Valid()) {
        validated[self].push_back({window, IdsOf(result.entries), begin, end});
      }
    }
  };
  std::vector<std::thread> searchers;
  for (int i = 0; i < 2; ++i) searchers.emplace_back(search, i);
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back(
        [&, i] { ChurnRectangles(index_.get(), cluster_.get(), kChurned, i, kWriters, kOperations, &history); });
  }
  for (std::thread& thread : writers) thread.join();
  stop.store(true);
  for (std::thread& thread : searchers) thread.join();
  const Status structure = index_->CheckStructure();
  ASSERT_TRUE(structure.ok()) << structure;
  size_t found = 0;
  for (int i = 0; i < 2; ++i) {
    for (const Seen& seen : validated[i]) {
      ASSERT_TRUE(history.WasAt(seen.window, seen.ids, seen.end)) << seen.window.ToString() << " at " << seen.end;
      found += seen.ids.size();
    }
    for (const Seen& seen : settled[i]) {
      ASSERT_TRUE(history.WasBetween(seen.window, seen.ids, seen.begin, seen.end))
          << seen.window.ToString() << " in " << seen.begin << " to " << seen.end;
    }
  }
  EXPECT_GT(found, 0u);
  EXPECT_FALSE(settled[0].empty());
}

}  // namespace spatial_owner_test
}  // namespace gannet::index
