// Tables of kinds that clients can change, but whose indexes only their owner may change (IndexRights::kOwnerOnly):
// transactions of other nodes insert and remove by calls, and see what they see with any other index.
#include <array>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/registry.h"
#include "index/types.h"
#include "rdma/rpc.h"
#include "tests/txn/cluster.h"
#include "txn/peer/wire.h"

namespace gannet::txn {
namespace table_rights_test {

struct Setup {
  IndexKind kind;
  ReadPathPolicy policy;
  bool adversarial = false;
};

TableOptions RowsOf(IndexKind kind) {
  return {.name = "rows",
          .index = kind,
          .index_rights = IndexRights::kOwnerOnly,
          .payload_bytes = sizeof(Account),
          .expected_rows = 1000,
          .placement = Placement::OnFirstNode()};
}

class TableRightsTest : public testing::TestWithParam<Setup> {
 protected:
  TableRightsTest()
      : cluster_({.nodes = 3, .adversarial = GetParam().adversarial, .read_path = GetParam().policy},
                 {RowsOf(GetParam().kind)}) {}

  const Table& rows(int node) { return cluster_.table(node, "rows"); }

  // Changes keys k with k % 3 == number, by a session of `node`, and notes them in *own.
  void Change(int node, uint64_t number, int times, std::map<uint64_t, int64_t>* own) {
    Session& session = *sessions_[static_cast<size_t>(number)];
    Random random(number);
    for (int i = 0; i < times; ++i) {
      const uint64_t key = random.Below(100) * 3 + number;
      const bool there = own->contains(key);
      const bool removes = random.OneIn(2);
      const auto value = static_cast<int64_t>(random.Below(1000));
      const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        if (!there) return t.Insert(rows(node), key, Account{.balance = value});
        return removes ? t.Remove(rows(node), key) : t.Update(rows(node), key, Account{.balance = value});
      });
      ASSERT_TRUE(status.ok()) << status;
      if (there && removes) {
        own->erase(key);
      } else {
        (*own)[key] = value;
      }
    }
  }
  // Checks by scans from every node, in both directions.
  void ExpectRows(const std::map<uint64_t, int64_t>& expected) {
    for (int node = 0; node < 3; ++node) {
      Session& session = cluster_.NewSession(node);
      for (const bool reverse : {false, true}) {
        std::map<uint64_t, int64_t> found;
        const Status scanned = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
          ScanRows read;
          found.clear();
          Status status = t.Scan(rows(node), {.from = uint64_t{0}, .to = uint64_t{1000}, .reverse = reverse}, &read);
          for (size_t i = 0; status.ok() && i < read.size(); ++i) {
            found[read.key(i).integer()] = read.template As<Account>(i).balance;
          }
          return status;
        });
        ASSERT_TRUE(scanned.ok()) << scanned;
        EXPECT_EQ(found, expected) << "node " << node;
      }
    }
    const Status structure = rows(0).local_index().CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }

  Cluster cluster_;
  std::array<Session*, 3> sessions_{&cluster_.NewSession(0), &cluster_.NewSession(1), &cluster_.NewSession(2)};
};
std::string NameOf(const testing::TestParamInfo<Setup>& instance) {
  static constexpr const char* kPolicies[] = {"_adaptive", "_one_sided", "_call", "_ordered_by_call"};
  const Setup& setup = instance.param;
  return index::EntryOf(setup.kind).name + kPolicies[static_cast<size_t>(setup.policy)] +
         (setup.adversarial ? "_adversarial" : "");
}
INSTANTIATE_TEST_SUITE_P(Kinds, TableRightsTest,
                         testing::Values(Setup{IndexKind::kBlink, ReadPathPolicy::kOneSided},
                                         Setup{IndexKind::kRolex, ReadPathPolicy::kOneSided},
                                         Setup{IndexKind::kDex, ReadPathPolicy::kOneSided},
                                         Setup{IndexKind::kBlink, ReadPathPolicy::kAdaptive},
                                         Setup{IndexKind::kRolex, ReadPathPolicy::kCall},
                                         Setup{IndexKind::kBlink, ReadPathPolicy::kOneSided, true},
                                         Setup{IndexKind::kRolex, ReadPathPolicy::kOneSided, true},
                                         Setup{IndexKind::kDex, ReadPathPolicy::kOneSided, true},
                                         Setup{IndexKind::kDolphin, ReadPathPolicy::kOneSided},
                                         Setup{IndexKind::kDolphin, ReadPathPolicy::kOneSided, true}),
                         NameOf);

TEST_P(TableRightsTest, AllNodesChangeRowsAndSeeThem) {
  std::array<std::map<uint64_t, int64_t>, 3> own;
  std::vector<std::thread> threads;
  for (uint64_t node = 0; node < 3; ++node) {
    threads.emplace_back([this, node, &own] { Change(static_cast<int>(node), node, 400, &own[node]); });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<uint64_t, int64_t> all;
  for (const auto& part : own) all.insert(part.begin(), part.end());
  ExpectRows(all);
  for (const Session* const session : sessions_) {
    for (const TablePaths& paths : session->path_statistics()) {
      if (paths.kind == AccessKind::kInsert || paths.kind == AccessKind::kRemove) {
        EXPECT_EQ(paths.paths.one_sided, 0u);
      }
    }
  }
}

// Phantoms: a transaction that saw a gap and inserts into it commits; if another one fills the gap meanwhile, not.
TEST_P(TableRightsTest, GapsAreValidated) {
  for (const bool disturbed : {false, true}) {
    Step step(*sessions_[1]);
    Account account;
    EXPECT_TRUE(absl::IsNotFound(step->Get(rows(1), uint64_t{20}, &account)));
    ASSERT_TRUE(step->Insert(rows(1), disturbed ? uint64_t{31} : uint64_t{30}, Account{}).ok());
    if (disturbed) {
      const Status filled = RunBlockingBody(
          *sessions_[2], [&](BlockingTransaction& t) { return t.Insert(rows(2), uint64_t{20}, Account{}); });
      ASSERT_TRUE(filled.ok()) << filled;
    }
    const Status committed = step.Commit();
    EXPECT_EQ(committed.ok(), !disturbed) << committed;
  }
}

// A client that asks all the same gets no memory of the owner.
TEST_P(TableRightsTest, TheOwnerLendsNoRecords) {
  const auto lend = [&](Session& session) {
    return session.worker().BlockOn([](rdma::Channel* channel) -> coro::Task<StatusOr<size_t>> {
      std::array<std::byte, kLendRequestBytes> request;
      std::array<std::byte, kLendResponseBytes> response;
      rdma::WireWriter writer(request);
      Put(writer, LendRequest{.bytes = 128, .wanted = 4, .used = {}});
      co_return co_await channel->Call(0, kTxnLend, writer.written(), response);
    }(&session.channel()));
  };
  const StatusOr<size_t> lent = lend(*sessions_[1]);
  EXPECT_TRUE(absl::IsPermissionDenied(lent.status())) << lent.status();
}

TEST(TableRights, AreThoseOfTheKindOrLess) {
  Cluster cluster({}, {{.name = "named", .index = IndexKind::kBlink, .index_rights = IndexRights::kOwnerOnly},
                       {.name = "blink", .index = IndexKind::kBlink},
                       {.name = "hash", .index_rights = IndexRights::kOwnerOnly}});
  EXPECT_EQ(cluster.table(0, "named").options().index_rights, IndexRights::kOwnerOnly);
  EXPECT_FALSE(cluster.table(0, "named").index_traits().client_writes);
  EXPECT_EQ(cluster.table(0, "blink").options().index_rights, IndexRights::kClients);
  EXPECT_TRUE(cluster.table(0, "blink").index_traits().client_writes);
  EXPECT_EQ(cluster.table(0, "hash").options().index_rights, IndexRights::kOwnerOnly);

  auto fabric = rdma::MakeTestFabric({.num_nodes = 1, .bytes_per_node = uint64_t{64} << 20});
  auto database = Database::Open(fabric.fabric.get(), 0, {});
  ASSERT_TRUE(database.ok()) << database.status();
  for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore, IndexKind::kCatfish}) {
    TableOptions options{.name = "lines", .index = kind, .index_rights = IndexRights::kClients};
    if (kind == IndexKind::kCatfish) {
      options.key_kind = index::KeyKind::kBytes;
      options.max_key_bytes = 40;
    }
    const Status refused = (*database)->CreateTable(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_NE(refused.message().find("lines"), std::string::npos) << refused;
    EXPECT_NE(refused.message().find(index::EntryOf(kind).name), std::string::npos) << refused;
    options.index_rights = static_cast<IndexRights>(99);  // of a newer version
    EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(options).status()));
  }
}

}  // namespace table_rights_test
}  // namespace gannet::txn
