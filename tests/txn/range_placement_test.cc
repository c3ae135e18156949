// Tables whose rows are placed by ranges of the key: owners, wrong options, scans over a boundary, phantoms, recovery.
#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "index/rectangle.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace range_placement_test {

constexpr int kNodes = 4;  // the last one owns no range
constexpr uint64_t kFirstBound = 1000;
constexpr uint64_t kSecondBound = 2000;
constexpr uint64_t kRows = 300;  // keys 0, 10, 20, ...

std::string NameOf(uint64_t key) {
  std::string digits = std::to_string(key);
  return std::string(6 - digits.size(), '0') + digits;
}

TableOptions Numbers(const Placement& placement) {
  TableOptions options = OrderedTable("numbers", placement);
  return options;
}
TableOptions Names(const Placement& placement) {
  TableOptions options = OrderedTable("names", placement);
  options.key_kind = index::KeyKind::kBytes;
  options.max_key_bytes = 8;
  return options;
}

std::vector<TableOptions> Tables() {
  return {Numbers(Placement::ByRange({kFirstBound, kSecondBound})),
          Names(Placement::ByRange({std::string_view("001000"), std::string_view("002000")}))};
}

TEST(KeyRangesTest, AStartBelongsToTheNodeThatBeginsThere) {
  const Placement numbers = Placement::ByRange({kFirstBound, kSecondBound});
  EXPECT_EQ(numbers.OwnerOf(uint64_t{0}, kNodes), 0);
  EXPECT_EQ(numbers.OwnerOf(kFirstBound - 1, kNodes), 0);
  EXPECT_EQ(numbers.OwnerOf(kFirstBound, kNodes), 1);
  EXPECT_EQ(numbers.OwnerOf(kSecondBound - 1, kNodes), 1);
  EXPECT_EQ(numbers.OwnerOf(kSecondBound, kNodes), 2);
  EXPECT_EQ(numbers.OwnerOf(UINT64_MAX, kNodes), 2);
  const Owners two = numbers.OwnersOf(kFirstBound - 1, kFirstBound, kNodes);
  EXPECT_TRUE(two.first == 0 && two.last == 1 && two.in_order);
  EXPECT_FALSE(numbers.OwnersOf(kFirstBound, kSecondBound - 1, kNodes).several());

  const std::string first("a\0", 2);  // a prefix of it is smaller
  const Placement bytes = Placement::ByRange({std::string_view(first), std::string_view("b")});
  EXPECT_EQ(bytes.OwnerOf(std::string_view(""), kNodes), 0);
  EXPECT_EQ(bytes.OwnerOf(std::string_view("a"), kNodes), 0);
  EXPECT_EQ(bytes.OwnerOf(std::string_view(first), kNodes), 1);
  EXPECT_EQ(bytes.OwnerOf(std::string_view("azz"), kNodes), 1);
  EXPECT_EQ(bytes.OwnerOf(std::string_view("b"), kNodes), 2);
}

TEST(KeyRangesTest, TextsGiveTheSamePlacement) {
  const std::string first("a\0\xff", 3);
  const std::string longest(index::kMaxKeyBytes, 'z');
  for (const Placement& placement :
       {Placement::ByRange({0, 7, UINT64_MAX}), Placement::ByRange({std::string_view(""), std::string_view(first)}),
        Placement::ByRange({std::string_view(longest)})}) {
    const StatusOr<Placement> again = Placement::ByRangeTexts(placement.ranges->texts());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->ranges->texts(), placement.ranges->texts());
  }
  const std::string bytes("\0\xff\0", 3);
  EXPECT_EQ(Placement::ByRangeTexts(std::vector<std::string>{"0x00ff"})->OwnerOf(std::string_view(bytes), 2), 1);
  for (const char* wrong : {"", "x", "-1", "0x0", "0xgg", "18446744073709551616"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Placement::ByRangeTexts(std::vector<std::string>{wrong}).status())) << wrong;
  }
}

TEST(RangePlacementTest, WrongStartsAreRefusedWhenTheTableIsCreated) {
  const auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 3, .bytes_per_node = uint64_t{64} << 20});
  ASSERT_TRUE(fabric.ok());
  const auto database = Database::Open(fabric->get(), 0, {});
  ASSERT_TRUE(database.ok());
  const std::string much(index::kMaxKeyBytes + 1, 'x');
  struct Case {
    TableOptions options;
    const char* says;
  };
  const std::vector<Case> cases = {
      {Numbers(Placement::ByRange({})), "at least one start"},
      {Numbers(Placement::ByRange({2, 1})), "start 1 of the placement by range is 1, not greater than the one before"},
      {Numbers(Placement::ByRange({7, 7})), "ascending order"},
      {Numbers(Placement::ByRange({1, 2, 3})), "4 ranges, and the database has 3 nodes that own rows: give at most 2"},
      {Numbers(Placement::ByRange({std::string_view("a")})), "start 0 of the placement by range is a byte string"},
      {Names(Placement::ByRange({5})), "start 0 of the placement by range is an integer"},
      {Names(Placement::ByRange({std::string_view("a"), 5})), "start 1 of the placement by range is an integer"},
      {Names(Placement::ByRange({std::string_view("123456789")})), "has 9 bytes; the keys of the table have at most 8"},
      {Names(Placement::ByRange({std::string_view(much)})), "has 1025 bytes"}};
  for (const Case& each : cases) {
    const Status status = (*database)->CreateTable(each.options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(each.says), std::string::npos) << status << "\nshould say: " << each.says;
    EXPECT_NE(status.message().find(each.options.name), std::string::npos) << status;
  }
  EXPECT_TRUE((*database)->CreateTable(Numbers(Placement::ByRange({1, 2}))).ok());
}

// Works at each node, by READs and by calls.
class RangePlacementTest : public testing::TestWithParam<std::tuple<int, ReadPathPolicy>> {
 protected:
  RangePlacementTest()
      : node(std::get<0>(GetParam())),
        cluster({.nodes = kNodes, .read_path = std::get<1>(GetParam())}, Tables()),
        session(cluster.NewSession(node)),
        numbers(cluster.table(node, "numbers")),
        names(cluster.table(node, "names")) {
    const Status filled = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < kRows; ++i) {
        GANNET_RETURN_IF_ERROR(t.Insert(numbers, 10 * i, i));
        GANNET_RETURN_IF_ERROR(t.Insert(names, Key(NameOf(10 * i)), i));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(filled.ok()) << filled;
  }

  // The keys that both tables have in [from, to].
  std::vector<uint64_t> Keys(BlockingTransaction& t, uint64_t from, uint64_t to, bool reverse = false,
                             size_t limit = SIZE_MAX) {
    ScanRows of_numbers;
    const Status scanned = t.Scan(numbers, {.from = from, .to = to, .reverse = reverse, .limit = limit}, &of_numbers);
    EXPECT_TRUE(scanned.ok()) << scanned;
    ScanRows of_names;
    const std::string first = NameOf(from);
    const std::string last = NameOf(to);
    const Status also =
        t.Scan(names, {.from = Key(first), .to = Key(last), .reverse = reverse, .limit = limit}, &of_names);
    EXPECT_TRUE(also.ok()) << also;
    EXPECT_EQ(of_numbers.size(), of_names.size());
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < std::min(of_numbers.size(), of_names.size()); ++i) {
      const uint64_t key = of_numbers.key(i).integer();
      keys.push_back(key);
      EXPECT_EQ(of_names.key(i).bytes(), NameOf(key));
      EXPECT_EQ(of_numbers.As<uint64_t>(i), key / 10);
      EXPECT_EQ(of_names.As<uint64_t>(i), key / 10);
    }
    return keys;
  }

  static std::vector<uint64_t> Expected(uint64_t from, uint64_t to, bool reverse, size_t limit) {
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < kRows; ++i) {
      if (from <= 10 * i && 10 * i <= to) keys.push_back(10 * i);
    }
    if (reverse) std::ranges::reverse(keys);
    if (keys.size() > limit) keys.resize(limit);
    return keys;
  }

  const int node;
  Cluster cluster;
  Session& session;
  const Table& numbers;
  const Table& names;
};

TEST_P(RangePlacementTest, RowsLieWhereTheirRangesAre) {
  for (int owner = 0; owner < kNodes; ++owner) {
    const uint64_t keys = cluster.table(owner, "numbers").local_index().statistics().keys;
    EXPECT_EQ(keys, owner < 3 ? kRows / 3 : 0) << owner;
    EXPECT_EQ(cluster.table(owner, "names").local_index().statistics().keys, keys) << owner;
  }
}

TEST_P(RangePlacementTest, ScansGoOverBoundaries) {
  Random random(17);
  Step t(session);
  for (int i = 0; i < 200; ++i) {
    const uint64_t from = random.Below(3100);
    const uint64_t to = from + random.Below(3100 - from);
    const bool reverse = random.OneIn(2);
    const size_t limit = random.OneIn(2) ? SIZE_MAX : 1 + random.Below(250);
    EXPECT_EQ(Keys(*t.operator->(), from, to, reverse, limit), Expected(from, to, reverse, limit))
        << from << " to " << to << (reverse ? " down" : " up") << ", at most " << limit;
  }
  EXPECT_TRUE(t.Commit().ok());
}

TEST_P(RangePlacementTest, OwnersThatARangeDoesNotMeetAreNotAsked) {
  if (std::get<1>(GetParam()) != ReadPathPolicy::kCall) GTEST_SKIP() << "counts calls";
  const auto calls = [&](uint64_t from, uint64_t to) {
    Step t(session);
    const uint64_t before = session.channel().counters().calls;
    ScanRows rows;
    EXPECT_TRUE(t->Scan(numbers, {.from = from, .to = to}, &rows).ok());
    EXPECT_TRUE(t.Commit().ok());
    return session.channel().counters().calls - before;
  };
  const auto others = [&](int first, int last) {
    return static_cast<uint64_t>(last - first + 1 - (first <= node && node <= last ? 1 : 0));
  };
  EXPECT_EQ(calls(0, kFirstBound - 1), others(0, 0));
  EXPECT_EQ(calls(0, kFirstBound), others(0, 1));
  EXPECT_EQ(calls(kFirstBound, kSecondBound - 1), others(1, 1));
  EXPECT_EQ(calls(kFirstBound, kSecondBound), others(1, 2));
  EXPECT_EQ(calls(0, UINT64_MAX), others(0, 2));
}

// A row appears on either side of a boundary that a scan has passed.
TEST_P(RangePlacementTest, AnInsertAtABoundaryIsAConflict) {
  const int writer_node = (node + 1) % kNodes;
  Session& writer = cluster.NewSession(writer_node);
  const Table& there = cluster.table(writer_node, "numbers");
  uint64_t elsewhere = 5000;
  for (const uint64_t phantom : {kFirstBound - 1, kFirstBound + 1, kSecondBound - 1, kSecondBound + 1}) {
    Step t(session);
    ScanRows rows;
    ASSERT_TRUE(t->Scan(numbers, {.from = kFirstBound - 5, .to = kSecondBound + 5}, &rows).ok());
    EXPECT_EQ(rows.size(), Expected(kFirstBound - 5, kSecondBound + 5, false, SIZE_MAX).size());
    ASSERT_TRUE(t->Insert(numbers, ++elsewhere, uint64_t{0}).ok());
    const auto put = [&](BlockingTransaction& u) { return u.Insert(there, phantom, uint64_t{0}); };
    ASSERT_TRUE(RunBlockingBody(writer, put).ok());
    EXPECT_TRUE(absl::IsAborted(t.Commit())) << phantom;
    const auto take = [&](BlockingTransaction& u) { return u.Remove(there, phantom); };
    ASSERT_TRUE(RunBlockingBody(writer, take).ok());
  }
  // The keys are outside of what was scanned.
  Step t(session);
  ScanRows rows;
  ASSERT_TRUE(t->Scan(numbers, {.from = 0, .to = kFirstBound - 1}, &rows).ok());
  ASSERT_TRUE(t->Insert(numbers, ++elsewhere, uint64_t{0}).ok());
  ASSERT_TRUE(RunBlockingBody(writer, [&](BlockingTransaction& u) {
                return u.Insert(there, kFirstBound + 1, uint64_t{0});
              }).ok());
  EXPECT_TRUE(t.Commit().ok());
}

TEST_P(RangePlacementTest, OwnChangesOnBothSidesOfABoundaryAreSeen) {
  Step t(session);
  ASSERT_TRUE(t->Insert(numbers, kFirstBound - 1, (kFirstBound - 1) / 10).ok());
  ASSERT_TRUE(t->Insert(numbers, kFirstBound + 1, (kFirstBound + 1) / 10).ok());
  ASSERT_TRUE(t->Remove(numbers, kFirstBound - 10).ok());
  ASSERT_TRUE(t->Remove(numbers, kFirstBound).ok());
  ScanRows rows;
  ASSERT_TRUE(t->Scan(numbers, {.from = kFirstBound - 20, .to = UINT64_MAX, .limit = 4}, &rows).ok());
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < rows.size(); ++i) keys.push_back(rows.key(i).integer());
  EXPECT_EQ(keys, (std::vector<uint64_t>{kFirstBound - 20, kFirstBound - 1, kFirstBound + 1, kFirstBound + 10}));
  EXPECT_TRUE(t.Commit().ok());
}

INSTANTIATE_TEST_SUITE_P(Nodes, RangePlacementTest,
                         testing::Combine(testing::Values(0, 1, 3),
                                          testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall,
                                                          ReadPathPolicy::kAdaptive)),
                         [](const auto& each) {
                           const ReadPathPolicy policy = std::get<1>(each.param);
                           return "Node" + std::to_string(std::get<0>(each.param)) +
                                  (policy == ReadPathPolicy::kCall       ? "ByCall"
                                   : policy == ReadPathPolicy::kOneSided ? "ByReads"
                                                                         : "Adaptive");
                         });

// The keys of rectangles begin with the left edge. What lies to the right of a window is not asked for.
TEST(RangePlacementOfRectanglesTest, SearchesAskOwnersUpToTheRightEdge) {
  using index::Rectangle;
  const index::RectangleKeyBytes bound({Rectangle::Point(100, -index::kMaxCoordinate), 0});
  Cluster cluster({.nodes = 3, .read_path = ReadPathPolicy::kCall},
                  {{.name = "boxes",
                    .key_kind = index::KeyKind::kBytes,
                    .max_key_bytes = index::RectangleKey::kBytes,
                    .index = IndexKind::kCatfish,
                    .payload_bytes = sizeof(uint64_t),
                    .placement = Placement::ByRange({bound.view()})}});
  Session& session = cluster.NewSession(2);
  const Table& boxes = cluster.table(2, "boxes");
  ASSERT_TRUE(RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
                for (uint64_t i = 0; i < 20; ++i) {  // from x = 10 i to 10 i + 15
                  const index::RectangleKeyBytes key({{10.0 * i, 0, 10.0 * i + 15, 1}, i});
                  GANNET_RETURN_IF_ERROR(t.Insert(boxes, key.view(), i));
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(cluster.table(0, "boxes").local_index().statistics().keys, 10u);
  EXPECT_EQ(cluster.table(1, "boxes").local_index().statistics().keys, 10u);
  const auto search = [&](const Rectangle& window, std::vector<uint64_t> expected) {
    Step t(session);
    const uint64_t before = session.channel().counters().calls;
    ScanRows rows;
    EXPECT_TRUE(t->Search(boxes, window, &rows).ok());
    std::vector<uint64_t> found;
    for (size_t i = 0; i < rows.size(); ++i) found.push_back(rows.As<uint64_t>(i));
    EXPECT_EQ(found, expected);
    const uint64_t calls = session.channel().counters().calls - before;
    EXPECT_TRUE(t.Commit().ok());
    return calls;
  };
  EXPECT_EQ(search({30, 0, 35, 1}, {2, 3}), 1u);
  EXPECT_EQ(search({99, 0, 99.5, 1}, {9}), 1u);
  EXPECT_EQ(search({99, 0, 100, 1}, {9, 10}), 2u);
  EXPECT_EQ(search({103, 0, 104, 1}, {9, 10}), 2u);
}

class RangePlacementRecoveryTest : public testing::Test {
 protected:
  static StatusOr<std::unique_ptr<DurableCluster>> Open(const std::shared_ptr<log::FileSystem>& disk,
                                                        const Placement& placement) {
    return DurableCluster::Open(disk, {Numbers(placement)}, {.nodes = 3});
  }
  const std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
};

TEST_F(RangePlacementRecoveryTest, RowsAreFoundAgainAndOtherPlacementsAreRefused) {
  const Placement placement = Placement::ByRange({kFirstBound, kSecondBound});
  for (int run = 0; run < 3; ++run) {
    const auto cluster = Open(disk_, placement);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const Table& numbers = (*cluster)->table("numbers");
    const Status done = (*cluster)->database().Run([&](BlockingTransaction& t) -> Status {
      ScanRows rows;
      GANNET_RETURN_IF_ERROR(t.Scan(numbers, {.from = 0, .to = UINT64_MAX}, &rows));
      EXPECT_EQ(rows.size(), static_cast<size_t>(run) * 30);
      for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows.As<uint64_t>(i), rows.key(i).integer());
      for (uint64_t i = 0; i < 30; ++i) {
        const uint64_t key = 100 * i + static_cast<uint64_t>(run);
        GANNET_RETURN_IF_ERROR(t.Insert(numbers, key, key));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(done.ok()) << done;
    if (run == 1) {
      ASSERT_TRUE((*cluster)->database(1).Checkpoint().ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  for (const Placement& other :
       {Placement::ByRange({kFirstBound, kSecondBound + 1}), Placement::ByRange({kFirstBound}), Placement::ByHash()}) {
    const Status refused = Open(disk_, other).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_NE(refused.message().find("placed by range, with starts 1000, 2000"), std::string::npos) << refused;
  }
  EXPECT_TRUE(Open(disk_, placement).ok());
}

TEST_F(RangePlacementRecoveryTest, ATableThatWasPlacedOtherwiseIsNotOpenedByRange) {
  ASSERT_TRUE((*Open(disk_, Placement::ByHash()))->Close().ok());
  const Status refused = Open(disk_, Placement::ByRange({1})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

}  // namespace range_placement_test
}  // namespace gannet::txn
