// A table of rectangles: transactions on single rows, also of another node, bulk loads and recovery.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/catfish/catfish.h"
#include "index/rectangle.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace catfish_table_test {

TableOptions Places(const std::string& index_options = "") {
  return {.name = "places",
          .key_kind = index::KeyKind::kBytes,
          .max_key_bytes = index::RectangleKey::kBytes,
          .index = IndexKind::kCatfish,
          .index_options = index_options,
          .payload_bytes = sizeof(uint64_t)};
}

// A unit square; all overlap some others.
index::RectangleKeyBytes PlaceOf(uint64_t n) {
  const auto x = static_cast<double>(n * 7 % 50) / 2;
  const auto y = static_cast<double>(n * 13 % 40) / 2;
  return index::RectangleKeyBytes({{x, y, x + 1, y + 1}, n});
}

// Each variant, with nodes of few entries, so that the trees are high.
class CatfishTableTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Variants, CatfishTableTest,
                         ::testing::Values("variant=guttman,node_entries=6", "variant=rstar,node_entries=4",
                                           "variant=hilbert,node_entries=6,world=0:0:26:21", ""));

TEST_P(CatfishTableTest, ScansAndCursorsSayThatItHasNoOrder) {
  Cluster cluster({.nodes = 1}, {Places(GetParam())});
  const Table& table = cluster.table(0, "places");
  const auto body = [&](BlockingTransaction& t) {
    ScanRows rows;
    for (const Status& status : {t.OpenCursor(table).First(), t.OpenCursor(table).Last(),
                                 t.OpenCursor(table).SeekForward(PlaceOf(1).view()), t.Scan(table, {}, &rows)}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("no ordered index (catfish)"));
    }
    return absl::OkStatus();
  };
  const Status status = RunBlockingBody(cluster.NewSession(0), body);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(CatfishTableTest, RunsTransactionsAtTheOwnerAndElsewhere) {
  Cluster cluster({.nodes = 2}, {Places(GetParam())});
  for (const int node : {0, 1}) {
    Session& session = cluster.NewSession(node);
    const Table& table = cluster.table(node, "places");
    const uint64_t first = static_cast<uint64_t>(node) * 1000;
    const auto run = [&](auto body) {
      const Status status = RunBlockingBody(session, body);
      ASSERT_TRUE(status.ok()) << status;
    };
    run([&](BlockingTransaction& t) {
      for (uint64_t n = first; n < first + 200; ++n) {
        GANNET_RETURN_IF_ERROR(t.Insert(table, PlaceOf(n).view(), 10 * n));
      }
      return absl::OkStatus();
    });
    run([&](BlockingTransaction& t) {
      GANNET_RETURN_IF_ERROR(t.Update(table, PlaceOf(first + 7).view(), uint64_t{77}));
      return t.Remove(table, PlaceOf(first + 8).view());
    });
    run([&](BlockingTransaction& t) {
      uint64_t value = 0;
      EXPECT_TRUE(absl::IsNotFound(t.Get(table, PlaceOf(first + 8).view(), &value)));
      GANNET_RETURN_IF_ERROR(t.Get(table, PlaceOf(first + 9).view(), &value));
      EXPECT_EQ(value, 10 * (first + 9));
      GANNET_RETURN_IF_ERROR(t.Get(table, PlaceOf(first + 7).view(), &value));
      EXPECT_EQ(value, 77u);
      return absl::OkStatus();
    });
    const Status twice = RunBlockingBody(
        session, [&](BlockingTransaction& t) { return t.Insert(table, PlaceOf(first + 1).view(), uint64_t{0}); });
    EXPECT_TRUE(absl::IsAlreadyExists(twice)) << twice;
  }
  index::LocalIndex& index = cluster.table(0, "places").local_index();
  EXPECT_EQ(index.statistics().keys, 2 * 199u);
  const Status structure = index.CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

// The witness of a miss.
TEST_P(CatfishTableTest, AForeignInsertOfAMissedKeyIsAConflict) {
  Cluster cluster({.nodes = 2}, {Places(GetParam()), {.name = "other", .payload_bytes = sizeof(uint64_t)}});
  Session& writer = cluster.NewSession(0);
  for (const int node : {0, 1}) {
    const auto key = PlaceOf(static_cast<uint64_t>(node));
    Step step(cluster.NewSession(node));
    uint64_t value = 0;
    EXPECT_TRUE(absl::IsNotFound(step->Get(cluster.table(node, "places"), key.view(), &value)));
    ASSERT_TRUE(step->Insert(cluster.table(node, "other"), static_cast<uint64_t>(node), uint64_t{1}).ok());
    const Status inserted = RunBlockingBody(
        writer, [&](BlockingTransaction& t) { return t.Insert(cluster.table(0, "places"), key.view(), uint64_t{5}); });
    ASSERT_TRUE(inserted.ok()) << inserted;
    EXPECT_TRUE(absl::IsAborted(step.Commit()));
  }
}

// The inserts of one transaction change many words that the transaction itself has read. An insert that reinserts
// entries at each level changes the most.
TEST_P(CatfishTableTest, ATransactionDoesNotConflictWithItsOwnChanges) {
  constexpr uint64_t kAtOnce = 16;
  Cluster cluster({.nodes = 2}, {Places(GetParam())});
  for (const int node : {1, 0}) {
    Session& session = cluster.NewSession(node);
    const Table& table = cluster.table(node, "places");
    for (uint64_t first = static_cast<uint64_t>(node) * 2000; first < static_cast<uint64_t>(node) * 2000 + 1600;
         first += kAtOnce) {
      Step step(session);
      ScanRows found;
      ASSERT_TRUE(step->Search(table, {0, 0, 3, 3}, &found, {.keys_only = true}).ok());
      uint64_t value = 0;
      for (uint64_t n = first; n < first + kAtOnce; ++n) {
        ASSERT_TRUE(absl::IsNotFound(step->Get(table, PlaceOf(n).view(), &value)));
      }
      for (uint64_t n = first; n < first + kAtOnce; ++n) {
        ASSERT_TRUE(step->Insert(table, PlaceOf(n).view(), n).ok());
      }
      const Status committed = step.Commit();
      ASSERT_TRUE(committed.ok()) << committed << " of rows from " << first;
    }
  }
  const Status structure = cluster.table(0, "places").local_index().CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

TEST_P(CatfishTableTest, IsLoadedAndRecovered) {
  auto disk = std::make_shared<log::FaultyFileSystem>(1);
  {
    auto cluster = DurableCluster::Open(disk, {Places(GetParam())});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const Table& table = (*cluster)->table("places");
    auto session = (*cluster)->database().OpenSession();
    ASSERT_TRUE(session.ok()) << session.status();
    {
      BulkLoader loader(session->get(), &table);
      for (uint64_t n = 0; n < 300; ++n) {
        const Status added = loader.Add(PlaceOf(n).view(), std::as_bytes(std::span(&n, 1)));
        ASSERT_TRUE(added.ok()) << added;
      }
      const Status loaded = loader.Finish();
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    const Status changed = RunBlockingBody(**session, [&](BlockingTransaction& t) {
      GANNET_RETURN_IF_ERROR(t.Remove(table, PlaceOf(3).view()));
      GANNET_RETURN_IF_ERROR(t.Insert(table, PlaceOf(500).view(), uint64_t{500}));
      return t.Update(table, PlaceOf(4).view(), uint64_t{44});
    });
    ASSERT_TRUE(changed.ok()) << changed;
    session->reset();
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = DurableCluster::Open(disk, {Places(GetParam())});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Table& table = (*cluster)->table("places");
  EXPECT_EQ(table.local_index().statistics().keys, 300u);
  EXPECT_TRUE(table.local_index().CheckStructure().ok());
  EXPECT_EQ(table.local_index().statistics().height > 3,
            !std::string(GetParam()).empty());  // as many entries as before
  auto session = (*cluster)->database().OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  const Status read = RunBlockingBody(**session, [&](BlockingTransaction& t) {
    uint64_t value = 0;
    EXPECT_TRUE(absl::IsNotFound(t.Get(table, PlaceOf(3).view(), &value)));
    for (const auto& [n, expected] : {std::pair{4, 44}, {5, 5}, {299, 299}, {500, 500}}) {
      GANNET_RETURN_IF_ERROR(t.Get(table, PlaceOf(static_cast<uint64_t>(n)).view(), &value));
      EXPECT_EQ(value, static_cast<uint64_t>(expected));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
}

TEST(CatfishKeyTest, ErrorsNameTheRectangle) {
  Cluster cluster({.nodes = 2}, {Places()});
  const index::RectangleKeyBytes key({{1, 3, 2, 4}, 7});
  const std::string name = "table 'places', key [1, 2] x [3, 4] id 7";
  for (const int node : {0, 1}) {
    Session& session = cluster.NewSession(node);
    const Table& table = cluster.table(node, "places");
    uint64_t value = 0;
    Step t(session);
    EXPECT_EQ(t->Get(table, key.view(), &value).message(), name);
    EXPECT_TRUE(t->Insert(table, key.view(), uint64_t{1}).ok());
    EXPECT_EQ(t->Insert(table, key.view(), uint64_t{1}).message(), name);
  }
  BulkLoader loader(&cluster.NewSession(0), &cluster.table(0, "places"));
  const uint64_t value = 1;
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_TRUE(loader.Add(key.view(), std::as_bytes(std::span(&value, 1))).ok());
  }
  EXPECT_EQ(loader.Finish().message(), "loading " + name + ": it was added twice");
}

TEST(CatfishKeyTest, OtherKeysAreRefused) {
  Cluster cluster({.nodes = 2}, {Places()});
  const std::string other(40, '\xff');
  const auto refused = [](const Status& status, const char* why) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("table 'places'"));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(why));
  };
  for (const int node : {0, 1}) {
    Session& session = cluster.NewSession(node);
    const Table& table = cluster.table(node, "places");
    for (const std::string_view bytes :
         {std::string_view(other), std::string_view(other).substr(0, 39), std::string_view()}) {
      const index::Key key(bytes);
      const char* const why = bytes.size() == 40 ? "is not a number"
                              : bytes.empty()    ? "a key of 0 bytes"
                                                 : "of 39 bytes";
      uint64_t value = 0;
      Step t(session);
      refused(t->Get(table, key, &value), why);
      refused(t->GetForUpdate(table, key, &value).status(), why);
      const index::RectangleKeyBytes right = PlaceOf(1);
      std::vector<GetRequest> requests = {GetRequest::Of(table, right.view(), &value),
                                          GetRequest::Of(table, key, &value)};
      refused(t->GetMany(requests), why);
      refused(t->Insert(table, key, uint64_t{1}), why);
      refused(t->Update(table, key, uint64_t{1}), why);
      refused(t->Remove(table, key), why);
      // None of these is a failure of the transaction.
      EXPECT_TRUE(absl::IsNotFound(t->Get(table, PlaceOf(1).view(), &value)));
    }
  }
  EXPECT_EQ(cluster.table(0, "places").local_index().statistics().keys, 0u);
}

TEST(CatfishOptionsTest, TextGivesTheOptionsBack) {
  const index::CatfishOptions options{.variant = index::CatfishVariant::kHilbert,
                                      .node_entries = 17,
                                      .offloading = 5,
                                      .world = index::Rectangle{-0.1, 1e-300, 1.0 / 3, 1e149}};
  const StatusOr<index::CatfishOptions> read = index::CatfishOptionsOf(ToText(options));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->variant, options.variant);
  EXPECT_EQ(read->node_entries, options.node_entries);
  EXPECT_EQ(read->offloading, options.offloading);
  EXPECT_EQ(read->world, options.world);
}

TEST(CatfishOptionsTest, WrongOptionsAreNamed) {
  const auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 24});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const auto database = Database::Open(fabric->get(), 0, {});
  ASSERT_TRUE(database.ok()) << database.status();
  const auto message = [&](TableOptions options) {
    options.name = "wrong";
    const Status status = (*database)->CreateTable(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(message(Places("variant=btree")), HasSubstr("choose guttman, rstar or hilbert"));
  EXPECT_THAT(message(Places("node_entries=3")), HasSubstr("from 4 to 130"));
  EXPECT_THAT(message(Places("node_entries=131")), HasSubstr("'131'"));
  EXPECT_THAT(message(Places("node_entries=-5")), HasSubstr("'-5'"));
  EXPECT_THAT(message(Places("offloading=some")), HasSubstr("'some'"));
  EXPECT_THAT(message(Places("world=1:2:3")), HasSubstr("min_x:min_y:max_x:max_y"));
  EXPECT_THAT(message(Places("world=5:0:4:1")), HasSubstr("5"));
  EXPECT_THAT(message(Places("colour=red")), HasSubstr("there are variant, node_entries, offloading and world"));
  EXPECT_THAT(message({.name = "wrong", .index_options = "variant=rstar"}), HasSubstr("hash has no options"));
}

// Nothing is converted when a database is opened.
TEST(CatfishOptionsTest, ADirectoryIsOpenedWithItsOptions) {
  auto disk = std::make_shared<log::FaultyFileSystem>(1);
  {
    auto cluster = DurableCluster::Open(disk, {Places("variant=hilbert")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const auto other = DurableCluster::Open(disk, {Places("variant=guttman")});
  EXPECT_TRUE(absl::IsInvalidArgument(other.status())) << other.status();
  EXPECT_THAT(other.status().message(), testing::HasSubstr("variant=hilbert,node_entries=30"));
  const auto same = DurableCluster::Open(disk, {Places("node_entries=30,variant=hilbert")});
  EXPECT_TRUE(same.ok()) << same.status();
}

}  // namespace catfish_table_test
}  // namespace gannet::txn
