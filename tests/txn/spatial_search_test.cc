// Transaction::Search and Nearest: against a model, with own writes, and serializable while others write. At the owner,
// at a node that owns half of the rows, and at one that owns none; by READs and by calls.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "index/rectangle.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace spatial_search_test {

using index::NearestQuery;
using index::Rectangle;
using index::RectangleKey;
using index::RectangleKeyBytes;

constexpr int kOwners = 2;  // nodes 0 and 1; node 2 owns nothing
constexpr double kSide = 20;

rdma::NodeId OwnerById(const index::Key& key, int) {
  return static_cast<uint8_t>(key.bytes().back()) % kOwners;
}
int OwnerOfRange(const index::Key&, const index::Key&, int) {
  return Placement::kSeveralNodes;
}

// Nodes of few entries make high trees of few rows.
TableOptions Boxes(const std::string& name, const std::string& variant, const Placement& placement) {
  return {.name = name,
          .key_kind = index::KeyKind::kBytes,
          .max_key_bytes = RectangleKey::kBytes,
          .index = IndexKind::kCatfish,
          .index_options = "variant=" + variant + ",node_entries=6",
          .payload_bytes = sizeof(uint64_t),
          .placement = placement};
}

Rectangle DrawBox(Random& random, double most) {
  const auto draw = [&random](double below) { return static_cast<double>(random.Below(1000)) / 1000 * below; };
  const double x = draw(kSide);
  const double y = draw(kSide);
  return {x, y, x + draw(most), y + draw(most)};
}

using Parameters = std::tuple<int, const char*, ReadPathPolicy>;  // node, table, policy

class SpatialSearchTest : public testing::TestWithParam<Parameters> {
 protected:
  using Model = std::map<std::string, uint64_t>;  // payload by key

  SpatialSearchTest()
      : cluster({.nodes = 3, .read_path = std::get<2>(GetParam())},
                {Boxes("here", "rstar", Placement::OnFirstNode()),
                 Boxes("guttman", "guttman", Placement::OnFirstNode()),
                 Boxes("split", "hilbert", {.owner = OwnerById, .range_owner = OwnerOfRange}),
                 {.name = "points", .payload_bytes = sizeof(uint64_t)}}),
        session(cluster.NewSession(std::get<0>(GetParam()))),
        table(cluster.table(std::get<0>(GetParam()), std::get<1>(GetParam()))),
        other(cluster.NewSession(0)),
        others_table(cluster.table(0, std::get<1>(GetParam()))) {}

  Status Fill(uint64_t count) {
    return RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      Model model;
      for (uint64_t i = 0; i < count; ++i) {
        const RectangleKeyBytes key({DrawBox(random, 1), next_id++});
        GANNET_RETURN_IF_ERROR(t.Insert(table, key.view(), i));
        model[std::string(key.view().bytes())] = i;
      }
      committed = std::move(model);
      return absl::OkStatus();
    });
  }

  static Model Met(const Model& model, const Rectangle& window) {
    Model met;
    for (const auto& [key, value] : model) {
      if (index::DecodeRectangleKey(index::Key(key))->box.Meets(window)) met[key] = value;
    }
    return met;
  }
  static void ExpectRows(const ScanRows& rows, const Model& expected) {
    ASSERT_EQ(rows.size(), expected.size());
    size_t i = 0;
    for (const auto& [key, value] : expected) {
      EXPECT_EQ(rows.key(i).bytes(), key);
      EXPECT_EQ(rows.As<uint64_t>(i), value);
      ++i;
    }
  }
  static double DistanceOf(std::string_view key, const NearestQuery& query) {
    return index::DecodeRectangleKey(index::Key(key))->box.SquaredDistance(query.x, query.y);
  }
  // Equally distant rectangles may differ, so the distances are compared.
  static void ExpectNearest(const ScanRows& rows, const Model& model, const NearestQuery& query) {
    std::vector<double> expected;
    for (const auto& [key, value] : model) expected.push_back(DistanceOf(key, query));
    std::ranges::sort(expected);
    expected.resize(std::min(expected.size(), query.count));
    std::vector<double> found;
    for (size_t i = 0; i < rows.size(); ++i) {
      found.push_back(DistanceOf(rows.key(i).bytes(), query));
      const auto row = model.find(std::string(rows.key(i).bytes()));
      ASSERT_NE(row, model.end());
      EXPECT_EQ(rows.As<uint64_t>(i), row->second);
    }
    EXPECT_EQ(found, expected);
  }

  Random random{7};
  Cluster cluster;
  Session& session;
  const Table& table;
  Session& other;
  const Table& others_table;
  Model committed;
  uint64_t next_id = 0;
  ScanRows rows;
};

// Random transactions, which see their own writes at once.
TEST_P(SpatialSearchTest, FindsWhatTheModelFinds) {
  ASSERT_TRUE(Fill(400).ok());
  for (int round = 0; round < 60; ++round) {
    Step t(session);
    Model model = committed;
    for (int step = 0; step < 12; ++step) {
      const uint64_t what = random.Below(6);
      if (what == 0 || model.empty()) {
        const RectangleKeyBytes key({DrawBox(random, 1), next_id++});
        ASSERT_TRUE(t->Insert(table, key.view(), next_id).ok());
        model[std::string(key.view().bytes())] = next_id;
      } else if (what <= 2) {
        auto row = model.begin();
        std::advance(row, random.Below(model.size()));
        if (what == 1) {
          ASSERT_TRUE(t->Remove(table, index::Key(row->first)).ok());
          model.erase(row);
        } else {
          row->second = random();
          ASSERT_TRUE(t->Update(table, index::Key(row->first), row->second).ok());
        }
      } else if (what == 3) {
        const NearestQuery query{.x = static_cast<double>(random.Below(25)),
                                 .y = static_cast<double>(random.Below(25)),
                                 .count = 1 + random.Below(12)};
        const Status status = t->Nearest(table, query, &rows);
        ASSERT_TRUE(status.ok()) << status;
        ExpectNearest(rows, model, query);
      } else {
        const Rectangle window = DrawBox(random, random.OneIn(8) ? 2 * kSide : 4);
        const Status status = t->Search(table, window, &rows);
        ASSERT_TRUE(status.ok()) << status;
        ExpectRows(rows, Met(model, window));
      }
    }
    const Status status = t.Commit();
    ASSERT_TRUE(status.ok()) << status;  // nobody else wrote: its own witnesses went with its changes
    committed = std::move(model);
  }
  for (int node = 0; node < kOwners; ++node) {
    const Status sound = cluster.table(node, std::get<1>(GetParam())).local_index().CheckStructure();
    EXPECT_TRUE(sound.ok()) << sound;
  }
}

// A commit that splits many of the nodes that it searched before.
TEST_P(SpatialSearchTest, OwnInsertsAreNoPhantoms) {
  ASSERT_TRUE(Fill(100).ok());
  Step t(session);
  ASSERT_TRUE(t->Search(table, {5, 5, 9, 9}, &rows).ok());
  for (int i = 0; i < 300; ++i) {
    const Rectangle at = DrawBox(random, 0.5);
    const RectangleKeyBytes key(
        {{at.min_x / 4 + 5, at.min_y / 4 + 5, at.min_x / 4 + 5.2, at.min_y / 4 + 5.2}, next_id++});
    ASSERT_TRUE(t->Insert(table, key.view(), uint64_t{1}).ok());
  }
  const Status status = t.Commit();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(SpatialSearchTest, ForeignInsertsAndRemovalsInTheWindowAreConflicts) {
  ASSERT_TRUE(Fill(300).ok());
  const Rectangle window{8, 8, 9, 9};
  const NearestQuery query{.x = 8.5, .y = 8.5, .count = 3};
  const auto conflicts = [&](bool nearest, auto change) {
    Step t(session);
    const Status searched = nearest ? t->Nearest(table, query, &rows) : t->Search(table, window, &rows);
    ASSERT_TRUE(searched.ok()) << searched;
    ASSERT_TRUE(t->Insert(cluster.table(std::get<0>(GetParam()), "points"), next_id++, uint64_t{1}).ok());
    const Status changed = RunBlockingBody(other, change);
    ASSERT_TRUE(changed.ok()) << changed;
    EXPECT_TRUE(absl::IsAborted(t.Commit()));
  };
  for (const bool nearest : {false, true}) {
    for (int i = 0; i < 8; ++i) {
      const RectangleKeyBytes key({Rectangle::Point(8.5, 8.5), next_id++});
      conflicts(nearest, [&](BlockingTransaction& t) { return t.Insert(others_table, key.view(), uint64_t{1}); });
      conflicts(nearest, [&](BlockingTransaction& t) { return t.Remove(others_table, key.view()); });
    }
  }
}

// Pieces move, each by one transaction. A transaction that searches the whole area finds each piece once.
TEST_P(SpatialSearchTest, EachOfTheMovingPiecesIsSeenOnce) {
  constexpr uint64_t kPieces = 60;
  std::vector<Rectangle> places;
  ASSERT_TRUE(RunBlockingBody(other, [&](BlockingTransaction& t) -> Status {
                places.clear();
                for (uint64_t id = 0; id < kPieces; ++id) {
                  places.push_back(DrawBox(random, 1));
                  const RectangleKeyBytes key({places.back(), id});
                  GANNET_RETURN_IF_ERROR(t.Insert(others_table, key.view(), uint64_t{0}));
                }
                return absl::OkStatus();
              }).ok());
  constexpr int kMoves = 300;
  std::atomic<bool> moved{false};
  Thread mover("mover", [&] {
    Random moves(3);
    for (int i = 0; i < kMoves; ++i) {
      const uint64_t id = moves.Below(kPieces);
      const RectangleKeyBytes from({places[id], id});
      const Rectangle place = DrawBox(moves, 1);
      const RectangleKeyBytes to({place, id});
      const Status status = RunBlockingBody(other, [&](BlockingTransaction& t) -> Status {
        GANNET_RETURN_IF_ERROR(t.Remove(others_table, from.view()));
        return t.Insert(others_table, to.view(), uint64_t{1});
      });
      ASSERT_TRUE(status.ok()) << status;
      places[id] = place;
    }
    moved.store(true);
  });
  int seen = 0;
  while (!moved.load() || seen == 0) {
    std::multiset<uint64_t> ids;
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      // The space is searched in two halves, which overlap: what one sees must fit the other.
      std::set<std::string> keys;
      for (const Rectangle& half :
           {Rectangle{0, 0, kSide / 2, 2 * kSide}, Rectangle{kSide / 2, 0, 2 * kSide, 2 * kSide}}) {
        GANNET_RETURN_IF_ERROR(t.Search(table, half, &rows, {.keys_only = true}));
        for (size_t i = 0; i < rows.size(); ++i) keys.emplace(rows.key(i).bytes());
      }
      ids.clear();
      for (const std::string& key : keys) ids.insert(index::DecodeRectangleKey(index::Key(key))->id);
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(ids.size(), kPieces);
    ASSERT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), kPieces);
    ++seen;
  }
  mover.join();
}

// More rows than an owner sends in one message, of one owner or of each of two.
TEST_P(SpatialSearchTest, NearestFindsAnyNumberOfRows) {
  constexpr uint64_t kMany = 4000;
  ASSERT_TRUE(Fill(kMany).ok());
  for (const size_t count : {size_t{1600}, size_t{3500}, size_t{kMany}, SIZE_MAX}) {
    const NearestQuery query{.x = 11, .y = 7.25, .count = count};
    Step t(session);
    Model model = committed;
    const RectangleKeyBytes own({Rectangle::Point(11, 7.5), next_id++});
    ASSERT_TRUE(t->Insert(table, own.view(), uint64_t{5}).ok());
    model[std::string(own.view().bytes())] = 5;
    ASSERT_TRUE(t->Remove(table, index::Key(model.begin()->first)).ok());
    model.erase(model.begin());
    const Status status = t->Nearest(table, query, &rows);
    ASSERT_TRUE(status.ok()) << count << ": " << status;
    ExpectNearest(rows, model, query);
    const Status committing = t.Commit();
    ASSERT_TRUE(committing.ok()) << committing;
    committed = std::move(model);
  }
  // Changes near the farthest row are conflicts, too.
  const NearestQuery query{.x = 11, .y = 7.25, .count = 3500};
  for (uint64_t i = 0; i < 4; ++i) {
    Step t(session);
    ASSERT_TRUE(t->Nearest(table, query, &rows).ok());
    ASSERT_TRUE(t->Insert(cluster.table(std::get<0>(GetParam()), "points"), next_id++, uint64_t{1}).ok());
    const index::OwnedKey key(rows.key(rows.size() - 2 - i));
    ASSERT_TRUE(
        RunBlockingBody(other, [&](BlockingTransaction& by) { return by.Remove(others_table, key.view()); }).ok());
    EXPECT_TRUE(absl::IsAborted(t.Commit()));
  }
}

TEST_P(SpatialSearchTest, SearchesForUpdateGiveHandles) {
  ASSERT_TRUE(Fill(50).ok());
  Step t(session);
  ASSERT_TRUE(t->Search(table, Rectangle::Everything(), &rows, {.for_update = true}).ok());
  ASSERT_EQ(rows.size(), 50u);
  for (size_t i = 0; i < rows.size(); i += 2) {
    ASSERT_TRUE(t->transaction().Update(rows.handle(i), uint64_t{1000}).ok());
  }
  ASSERT_TRUE(t.Commit().ok());
  Step after(session);
  ASSERT_TRUE(after->Search(table, Rectangle::Everything(), &rows).ok());
  for (size_t i = 0; i < rows.size(); i += 2) EXPECT_EQ(rows.As<uint64_t>(i), 1000u);
}

TEST_P(SpatialSearchTest, WrongQuestionsAreRefused) {
  Step t(session);
  const Table& points = cluster.table(std::get<0>(GetParam()), "points");
  EXPECT_TRUE(absl::IsFailedPrecondition(t->Search(points, {0, 0, 1, 1}, &rows)));
  EXPECT_TRUE(absl::IsFailedPrecondition(t->Nearest(points, {.x = 1, .y = 1}, &rows)));
  EXPECT_TRUE(absl::IsInvalidArgument(t->Search(table, {2, 0, 1, 1}, &rows)));
  EXPECT_TRUE(absl::IsInvalidArgument(t->Nearest(table, {.x = 1e200, .y = 0}, &rows)));
  EXPECT_TRUE(absl::IsFailedPrecondition(t->Scan(table, {}, &rows)) ||
              absl::IsInvalidArgument(t->Scan(table, {}, &rows)));
  // None of these is a failure of the transaction.
  EXPECT_TRUE(t->Nearest(table, {.x = 1, .y = 1, .count = 0}, &rows).ok());
  EXPECT_TRUE(rows.empty());
  EXPECT_TRUE(t->Search(table, {0, 0, 1, 1}, &rows).ok());
  EXPECT_TRUE(rows.empty());
  EXPECT_TRUE(t.Commit().ok());
}

std::string NameOf(const testing::TestParamInfo<Parameters>& info) {
  const auto& [node, table, policy] = info.param;
  const char* const paths = policy == ReadPathPolicy::kAdaptive   ? "Adaptive"
                            : policy == ReadPathPolicy::kOneSided ? "OneSided"
                                                                  : "Call";
  return std::string(table) + "FromNode" + std::to_string(node) + paths;
}

INSTANTIATE_TEST_SUITE_P(Owner, SpatialSearchTest,
                         testing::Combine(testing::Values(0), testing::Values("here", "guttman"),
                                          testing::Values(ReadPathPolicy::kOneSided)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Half, SpatialSearchTest,
                         testing::Combine(testing::Values(1), testing::Values("split"),
                                          testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Client, SpatialSearchTest,
                         testing::Combine(testing::Values(2), testing::Values("here", "split"),
                                          testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall,
                                                          ReadPathPolicy::kAdaptive)),
                         NameOf);

}  // namespace spatial_search_test
}  // namespace gannet::txn
