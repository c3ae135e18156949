// The client's side of a spatial index: compared with the model, on a friendly and on an adversarial fabric, and racing
// with writers at the owner.
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/conformance/spatial_suite.h"

namespace gannet::index {
namespace spatial_client_test {

Status SearchBy(ClientThread* client, RemoteIndex* remote, const Rectangle& window, bool at_one_moment,
                ScanResult* result) {
  return client->Await(remote->Search({.window = window, .at_one_moment = at_one_moment}, result));
}

TEST_P(SpatialSuite, RemoteSearchesAgreeWithTheModel) {
  for (const bool adversarial : {false, true}) {
    TearDown();
    model_.clear();
    Start(kRectangles, {.adversarial = adversarial});
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(71);
    for (int round = 0; round < 200; ++round) {
      ChangeSome(15, &random);
      cluster_->PassGracePeriod();
      main_->epoch()->Collect();
      EpochGuard guard(&client);
      const Rectangle window = RandomWindow(&random);
      ScanResult result;
      const Status status = SearchBy(&client, remote.get(), window, random.OneIn(2), &result);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(IdsOf(result.entries), IdsIn(model_, window)) << window.ToString();
      for (const Entry& entry : result.entries) ASSERT_EQ(entry.record, model_.at(entry.key));
      ASSERT_FALSE(result.witnesses.empty());
      for (const Witness& witness : result.witnesses) ASSERT_TRUE(client.Valid(witness));
    }
    EXPECT_EQ(remote->statistics().lookups, 200u);
  }
}

TEST_P(SpatialSuite, RemoteNearestAgreesWithTheModel) {
  Start(kRectangles);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  Random random(72);
  for (int round = 0; round < 100; ++round) {
    ChangeSome(20, &random);
    EpochGuard guard(&client);
    const Rectangle at = RandomWindow(&random);
    const size_t count = random.Below(20);
    ScanResult result;
    const Status status = client.Await(remote->Nearest({.x = at.max_x, .y = at.max_y, .count = count}, &result));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(DistancesOf(result.entries, at.max_x, at.max_y), LeastDistances(model_, at.max_x, at.max_y, count));
    for (const Witness& witness : result.witnesses) ASSERT_TRUE(client.Valid(witness));
  }
}

// More rectangles than fit in a message, and more than one posting reads.
TEST_P(SpatialSuite, RemoteSearchesMayHaveManyResults) {
  LoadMany(kMany);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  for (const bool at_one_moment : {false, true}) {
    EpochGuard guard(&client);
    ScanResult result;
    result.entries.emplace_back();  // results are appended
    const Status status = SearchBy(&client, remote.get(), Rectangle::Everything(), at_one_moment, &result);
    ASSERT_TRUE(status.ok()) << status;
    result.entries.erase(result.entries.begin());
    ASSERT_EQ(IdsOf(result.entries), IdsIn(model_, Rectangle::Everything()));
    for (const Witness& witness : result.witnesses) ASSERT_TRUE(client.Valid(witness));
  }
}

TEST_P(SpatialSuite, RemoteNearestMayHaveManyResults) {
  LoadMany(kMany);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  for (const size_t count : {1500ul, 1501ul, 4000ul, kMany - 1, kMany, SIZE_MAX}) {
    EpochGuard guard(&client);
    ScanResult result;
    result.entries.emplace_back();  // results are appended
    const Status status = client.Await(remote->Nearest({.x = 3, .y = 4.5, .count = count}, &result));
    ASSERT_TRUE(status.ok()) << count << ": " << status;
    result.entries.erase(result.entries.begin());
    ASSERT_EQ(DistancesOf(result.entries, 3, 4.5), LeastDistances(model_, 3, 4.5, count)) << count;
    for (const Entry& entry : result.entries) ASSERT_EQ(entry.record, model_.at(entry.key));
    ASSERT_FALSE(result.witnesses.empty());
    for (const Witness& witness : result.witnesses) ASSERT_TRUE(client.Valid(witness));
  }
}

// The words of a result of several messages cover all that is as near as its last rectangle.
TEST_P(SpatialSuite, ForeignChangesInvalidateARemoteNearestOfManyResults) {
  LoadMany(kMany);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  Random random(74);
  int near = 0;
  for (int round = 0; round < 100; ++round) {
    EpochGuard guard(&client);
    const Rectangle at = RandomWindow(&random);
    ScanResult result;
    const Status status = client.Await(remote->Nearest({.x = at.max_x, .y = at.max_y, .count = 2500}, &result));
    ASSERT_TRUE(status.ok()) << status;
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    ASSERT_TRUE(held.Valid());
    const double farthest = DistancesOf(result.entries, at.max_x, at.max_y).back();
    const OwnedKey key = KeyOf(random.Below(kMany));
    const bool is_near = RectangleOf(key).box.SquaredDistance(at.max_x, at.max_y) < farthest;
    Toggle(key);
    near += is_near;
    ASSERT_FALSE(is_near && held.Valid()) << RectangleOf(key).box.ToString();
  }
  EXPECT_GT(near, 20);
}

TEST_P(SpatialSuite, ForeignChangesInvalidateARemoteSearch) {
  Start(kRectangles);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  Random random(73);
  for (uint64_t n = 1; n < kRectangles; n += 3) InsertBoth(KeyOf(n));
  int inside = 0;
  for (int round = 0; round < 2000; ++round) {
    EpochGuard guard(&client);
    const OwnedKey key = KeyOf(random.Below(kRectangles));
    const Rectangle window = random.OneIn(2) ? RandomWindow(&random) : RectangleOf(key).box;
    ScanResult result;
    const Status status = SearchBy(&client, remote.get(), window, false, &result);
    ASSERT_TRUE(status.ok()) << status;
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    ASSERT_TRUE(held.Valid());
    const bool meets = RectangleOf(key).box.Meets(window);
    Toggle(key);
    inside += meets;
    ASSERT_FALSE(meets && held.Valid()) << RectangleOf(key).box.ToString() << " in " << window.ToString();
  }
  EXPECT_GT(inside, 500);
}

TEST_P(SpatialSuite, RemoteSearchesRefuseWrongWindows) {
  Start(100);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  ScanResult result;
  EXPECT_TRUE(absl::IsInvalidArgument(SearchBy(&client, remote.get(), {1, 0, 0, 1}, false, &result)));
  EXPECT_TRUE(absl::IsInvalidArgument(client.Await(remote->Nearest({.x = 1e200, .y = 0}, &result))));
}

// SearchesSeeOneMoment for a client.
TEST_P(SpatialSuite, RemoteSearchesSeeOneMoment) {
  constexpr int kWriters = 2;
  constexpr uint64_t kChurned = 400;
  for (const bool adversarial : {false, true}) {
    const int operations = adversarial ? 4000 : 12000;
    TearDown();
    model_.clear();
    Start(kChurned, {.adversarial = adversarial});
    cluster_->StartEpochs();
    SpatialHistory history(TestRectangles(kChurned));
    struct Seen {
      Rectangle window;
      std::set<uint64_t> ids;
      uint64_t begin;
      uint64_t end;
      bool at_one_moment;
    };
    std::vector<Seen> all;
    std::atomic<int> writing = kWriters;
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&, i] {
        ChurnRectangles(index_.get(), cluster_.get(), kChurned, i, kWriters, operations, &history);
        --writing;
      });
    }
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(74);
    int refused = 0;
    for (int round = 0; (writing > 0 || round < 100) && !HasFailure(); ++round) {
      EpochGuard guard(&client);
      const Rectangle window = RandomWindow(&random);
      const bool at_one_moment = random.OneIn(2);
      ScanResult result;
      const uint64_t begin = history.Tick();
      const Status status = SearchBy(&client, remote.get(), window, at_one_moment, &result);
      const uint64_t end = history.Tick();
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      refused += !status.ok();
      if (!status.ok()) continue;
      bool valid = true;
      for (const Witness& witness : result.witnesses) valid = valid && client.Valid(witness);
      if (valid || at_one_moment) all.push_back({window, IdsOf(result.entries), begin, end, !valid});
    }
    for (std::thread& thread : writers) thread.join();
    size_t found = 0;
    for (const Seen& seen : all) {
      const bool existed = seen.at_one_moment ? history.WasBetween(seen.window, seen.ids, seen.begin, seen.end)
                                              : history.WasAt(seen.window, seen.ids, seen.end);
      ASSERT_TRUE(existed) << seen.window.ToString() << " in " << seen.begin << " to " << seen.end;
      found += seen.ids.size();
    }
    EXPECT_GT(found, 0u);
    EXPECT_LT(refused, 5);
  }
}

}  // namespace spatial_client_test
}  // namespace gannet::index
