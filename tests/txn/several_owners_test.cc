// Scans and searches of several owners: the owners are asked at the same time, and no more of them than necessary. In
// simulations, whose times depend on nothing but the seed.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/rectangle.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace several_owners_test {

using index::Rectangle;

constexpr int kOwners = 4;
constexpr int kClient = kOwners;  // the node that scans; it owns nothing
constexpr uint64_t kRowsPerOwner = 100;
constexpr uint64_t kWidth = 1000;  // of an owner's range

int AnyOwner(const Key&, const Key&, int) {
  return Placement::kSeveralNodes;
}
rdma::NodeId OwnerOfBox(const Key& key, int nodes) {
  return static_cast<rdma::NodeId>(static_cast<uint8_t>(key.bytes().back()) % nodes);
}

std::vector<TableOptions> Tables() {
  const auto ordered = [](const char* name, const Placement& placement) {
    return TableOptions{.name = name,
                        .index = IndexKind::kXStore,
                        .payload_bytes = sizeof(uint64_t),
                        .expected_rows = 1000,
                        .placement = placement};
  };
  return {ordered("ranged", Placement::ByRange({kWidth, 2 * kWidth, 3 * kWidth})),
          ordered("hashed", Placement::ByHash()),
          {.name = "boxes",
           .key_kind = index::KeyKind::kBytes,
           .max_key_bytes = index::RectangleKey::kBytes,
           .index = IndexKind::kCatfish,
           .payload_bytes = sizeof(uint64_t),
           .placement = {.owner = OwnerOfBox, .range_owner = AnyOwner}},
          {.name = "boxes of one",
           .key_kind = index::KeyKind::kBytes,
           .max_key_bytes = index::RectangleKey::kBytes,
           .index = IndexKind::kCatfish,
           .payload_bytes = sizeof(uint64_t)}};
}

class SeveralOwners {
 public:
  explicit SeveralOwners(ReadPathPolicy policy, uint64_t seed = 1) : simulation_({.seed = seed}) {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = kOwners + 1;
    options.bytes_per_node = uint64_t{64} << 20;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    cluster_ = std::make_unique<Cluster>(
        fabric_.get(), DatabaseOptions{.data_nodes = kOwners, .read_path = policy, .server_threads = 1}, Tables());
    session_ = &cluster_->NewSession(kClient);
    const Status filled = RunBlockingBody(session(), [&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < kOwners * kRowsPerOwner; ++i) {
        const uint64_t key = i * (kWidth / kRowsPerOwner);
        GANNET_RETURN_IF_ERROR(t.Insert(table("ranged"), key, key));
        GANNET_RETURN_IF_ERROR(t.Insert(table("hashed"), key, key));
        model_[key] = key;
        const index::RectangleKeyBytes box({Rectangle::Point(static_cast<double>(i), 0), i});
        GANNET_RETURN_IF_ERROR(t.Insert(table("boxes"), box.view(), i));
        GANNET_RETURN_IF_ERROR(t.Insert(table("boxes of one"), box.view(), i));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(filled.ok()) << filled;
    for (int i = 0; i < 20; ++i) {  // until the client has the models
      EXPECT_EQ(Scan("ranged", {.from = 0, .to = UINT64_MAX}), Expected({.from = 0, .to = UINT64_MAX}));
      EXPECT_EQ(Scan("hashed", {.from = 0, .to = UINT64_MAX}), Expected({.from = 0, .to = UINT64_MAX}));
      SleepForNanos(1'000'000);
    }
  }

  // `owner` dies so many virtual nanoseconds from now.
  void KillAfter(rdma::NodeId owner, uint64_t nanos) {
    simulation_.At(simulation_.now() + nanos, [this, owner] { fabric_->Kill(owner); });
    static_cast<void>(cluster_->databases[owner].release());  // leaked, because the node dies
  }

  Session& session() { return *session_; }
  Cluster& cluster() { return *cluster_; }
  const Table& table(const std::string& name) { return cluster_->table(kClient, name); }

  Status Change(uint64_t key, bool insert) {
    if (insert) {
      model_[key] = key;
    } else {
      model_.erase(key);
    }
    return RunBlockingBody(session(), [&](BlockingTransaction& t) -> Status {
      for (const char* name : {"ranged", "hashed"}) {
        GANNET_RETURN_IF_ERROR(insert ? t.Insert(table(name), key, key) : t.Remove(table(name), key));
      }
      return absl::OkStatus();
    });
  }

  std::vector<uint64_t> Scan(const std::string& name, const index::ScanRange& range) {
    Step t(session());
    ScanRows rows;
    const Status scanned = t->Scan(table(name), range, &rows);
    EXPECT_TRUE(scanned.ok()) << scanned;
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < rows.size(); ++i) {
      keys.push_back(rows.key(i).integer());
      EXPECT_EQ(rows.As<uint64_t>(i), keys.back());
    }
    EXPECT_TRUE(t.Commit().ok());
    return keys;
  }
  std::vector<uint64_t> Expected(const index::ScanRange& range) const {
    std::vector<uint64_t> keys;
    for (const auto& [key, value] : model_) {
      if (range.from.integer() <= key && key <= range.to.integer()) keys.push_back(key);
    }
    if (range.reverse) std::ranges::reverse(keys);
    if (keys.size() > range.limit) keys.resize(range.limit);
    return keys;
  }

  // Virtual time of the operation alone, in a transaction of its own.
  template <class Operation>
  uint64_t TimeOf(const Operation& operation) {
    Step t(session());
    const uint64_t before = simulation_.now();
    const Status status = operation(*t.operator->());
    const uint64_t took = simulation_.now() - before;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(t.Commit().ok());
    return took;
  }
  uint64_t TimeOfScan(const std::string& name, const index::ScanRange& range, size_t expected) {
    return TimeOf([&](BlockingTransaction& t) {
      ScanRows rows;
      Status status = t.Scan(table(name), range, &rows);
      EXPECT_EQ(rows.size(), expected);
      return status;
    });
  }
  // Number of owners that were asked until now, each time counted.
  uint64_t asked(const std::string& name, AccessKind kind = AccessKind::kScan) {
    for (const TablePaths& each : session().path_statistics()) {
      if (each.table == name && each.kind == kind) return each.paths.accesses();
    }
    return 0;
  }

 private:
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<Cluster> cluster_;
  Session* session_ = nullptr;
  std::map<uint64_t, uint64_t> model_;
};

class SeveralOwnersTest : public testing::TestWithParam<ReadPathPolicy> {};

// One owner after the other would take four times as long as one.
TEST_P(SeveralOwnersTest, AreAskedAtTheSameTime) {
  SeveralOwners s(GetParam());
  uint64_t alone = 0;
  for (uint64_t owner = 0; owner < kOwners; ++owner) {
    const index::ScanRange part{.from = owner * kWidth, .to = (owner + 1) * kWidth - 1};
    alone = std::max(alone, s.TimeOfScan("ranged", part, kRowsPerOwner));
  }
  const index::ScanRange all{.from = 0, .to = UINT64_MAX};
  EXPECT_LT(s.TimeOfScan("ranged", all, kOwners * kRowsPerOwner), 2 * alone);
  EXPECT_LT(s.TimeOfScan("hashed", all, kOwners * kRowsPerOwner), 2 * alone);

  ScanRows rows;
  const Rectangle window{0, 0, 399, 1};
  const uint64_t search_of_one =
      s.TimeOf([&](BlockingTransaction& t) { return t.Search(s.table("boxes of one"), window, &rows); });
  EXPECT_LT(s.TimeOf([&](BlockingTransaction& t) { return t.Search(s.table("boxes"), window, &rows); }),
            2 * search_of_one);
  EXPECT_EQ(rows.size(), kOwners * kRowsPerOwner);
  const index::NearestQuery query{.x = 200, .y = 0, .count = 10};
  const uint64_t nearest_of_one =
      s.TimeOf([&](BlockingTransaction& t) { return t.Nearest(s.table("boxes of one"), query, &rows); });
  EXPECT_LT(s.TimeOf([&](BlockingTransaction& t) { return t.Nearest(s.table("boxes"), query, &rows); }),
            2 * nearest_of_one);
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows.As<uint64_t>(0), 200u);
}

// Ranges in order and a limit: the first owner has enough.
TEST_P(SeveralOwnersTest, ThatCannotContributeAreNotAsked) {
  SeveralOwners s(GetParam());
  const auto asked_by = [&](const index::ScanRange& range) {
    const uint64_t before = s.asked("ranged");
    EXPECT_EQ(s.Scan("ranged", range), s.Expected(range));
    return s.asked("ranged") - before;
  };
  EXPECT_EQ(asked_by({.from = 0, .to = UINT64_MAX, .limit = 10}), 1u);
  EXPECT_EQ(asked_by({.from = 0, .to = UINT64_MAX, .reverse = true, .limit = 10}), 1u);
  EXPECT_EQ(asked_by({.from = 2 * kWidth, .to = UINT64_MAX, .limit = 20}), 1u);
  // The scan begins ten rows before the boundary: it asks two owners, and not more.
  EXPECT_EQ(asked_by({.from = kWidth - 100, .to = UINT64_MAX, .limit = 20}), 2u);
  EXPECT_EQ(asked_by({.from = 0, .to = 2 * kWidth + 99, .reverse = true, .limit = 20}), 2u);
  EXPECT_EQ(asked_by({.from = 0, .to = UINT64_MAX}), 4u);
}

// The limit reaches over all owners: those that are needed in any case are asked together.
TEST_P(SeveralOwnersTest, OfALongLimitTakeFewRounds) {
  SeveralOwners s(GetParam());
  constexpr size_t kLimit = kOwners * kRowsPerOwner - 10;
  const uint64_t one = s.TimeOfScan("ranged", {.from = 0, .to = kWidth - 1}, kRowsPerOwner);
  const uint64_t took = s.TimeOfScan("ranged", {.from = 0, .to = UINT64_MAX, .limit = kLimit}, kLimit);
  // With calls nothing is known, so the client asks one owner, another one, then the last two.
  EXPECT_LT(took, GetParam() == ReadPathPolicy::kCall ? 7 * one / 2 : 5 * one / 2);
}

// Estimates become wrong in both directions. The rows stay right.
TEST_P(SeveralOwnersTest, GiveTheRowsOfTheModelWhateverIsEstimated) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SeveralOwners s(GetParam(), seed);
    Random random(seed);
    for (int phase = 0; phase < 3; ++phase) {
      const bool insert = phase != 1;
      for (int i = 0; i < 150; ++i) {
        const uint64_t key = random.Below(kOwners * kWidth);
        const index::ScanRange here{.from = key, .to = key + 30};
        const std::vector<uint64_t> near = s.Expected(here);
        Status changed;
        if (insert && (near.empty() || near[0] != key)) changed = s.Change(key, true);
        if (!insert && !near.empty()) changed = s.Change(near[0], false);
        ASSERT_TRUE(changed.ok()) << changed;
      }
      for (int i = 0; i < 60; ++i) {
        const uint64_t from = random.Below(kOwners * kWidth);
        index::ScanRange range{.from = from, .to = from + random.Below(kOwners * kWidth)};
        range.reverse = random.OneIn(2);
        range.limit = random.OneIn(5) ? SIZE_MAX : 1 + random.Below(200);
        ASSERT_EQ(s.Scan("ranged", range), s.Expected(range)) << "seed " << seed;
        ASSERT_EQ(s.Scan("hashed", range), s.Expected(range)) << "seed " << seed;
      }
    }
  }
}

// An owner dies while all are asked: its error is the scan's, when the others have answered.
TEST_P(SeveralOwnersTest, OneOfWhichDiesMakesTheScanUnavailable) {
  int failed = 0;
  int succeeded = 0;
  for (const uint64_t after : {0, 500, 1'000, 2'000, 4'000, 8'000, 12'000, 16'000, 24'000, 50'000, 1'000'000}) {
    SeveralOwners s(GetParam());
    s.KillAfter(2, after);
    ScanRows rows;
    Status status;
    {
      Step t(s.session());
      status = t->Scan(s.table("hashed"), {.from = 0, .to = UINT64_MAX}, &rows);
      if (status.ok()) {
        ++succeeded;
        EXPECT_EQ(rows.size(), kOwners * kRowsPerOwner);
      } else {
        ++failed;
        EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
        EXPECT_TRUE(rows.empty());
        EXPECT_FALSE(t.Commit().ok());
      }
    }
    SleepForNanos(5'000'000);  // the death is known
    for (int i = 0; i < 3; ++i) {
      Step t(s.session());
      EXPECT_TRUE(absl::IsUnavailable(t->Scan(s.table("hashed"), {.from = 0, .to = UINT64_MAX}, &rows)));
    }
    // The ranges of the others are there.
    EXPECT_EQ(s.Scan("ranged", {.from = 0, .to = 2 * kWidth - 1}), s.Expected({.from = 0, .to = 2 * kWidth - 1}));
    EXPECT_EQ(s.Scan("ranged", {.from = 3 * kWidth, .to = UINT64_MAX}),
              s.Expected({.from = 3 * kWidth, .to = UINT64_MAX}));
  }
  EXPECT_GE(failed, 3);
  EXPECT_GE(succeeded, 1);
}

TEST_P(SeveralOwnersTest, ARowThatComesToAnyOfThemIsAConflict) {
  SeveralOwners s(GetParam());
  Session& writer = s.cluster().NewSession(1);
  const Table& there = s.cluster().table(1, "hashed");
  uint64_t phantom = 1;
  for (int owner = 0; owner < kOwners; ++owner, ++phantom) {
    while (s.table("hashed").OwnerOf(phantom, kClient) != owner || phantom % 10 == 0) ++phantom;
    Step t(s.session());
    ScanRows rows;
    ASSERT_TRUE(t->Scan(s.table("hashed"), {.from = 0, .to = kOwners * kWidth}, &rows).ok());
    ASSERT_TRUE(t->Insert(s.table("ranged"), 10 * kOwners * kWidth + phantom, phantom).ok());
    ASSERT_TRUE(
        RunBlockingBody(writer, [&](BlockingTransaction& u) { return u.Insert(there, phantom, phantom); }).ok());
    EXPECT_TRUE(absl::IsAborted(t.Commit())) << owner;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SeveralOwnersTest, testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall),
                         [](const auto& policy) {
                           return policy.param == ReadPathPolicy::kOneSided ? "ByReads" : "ByCalls";
                         });

}  // namespace several_owners_test
}  // namespace gannet::txn
