// The paths of accesses to other nodes: GetMany by one call per owner, what is counted, and what owners refuse.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/rpc.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "txn/peer/wire.h"

namespace gannet::txn {
namespace access_paths_test {

constexpr uint64_t kRows = 200;
constexpr int kOwners = 2;  // nodes 0 and 1; the test works at node 2
constexpr size_t kBlobBytes = 50'000;

rdma::NodeId OwnerByParity(const index::Key& key, int) {
  return static_cast<rdma::NodeId>(key.kind() == index::KeyKind::kInteger ? key.integer() % kOwners : 0);
}
int OwnerOfRange(const index::Key& from, const index::Key& to, int) {
  return from == to ? OwnerByParity(from, kOwners) : Placement::kSeveralNodes;
}

std::vector<TableOptions> Tables() {
  const Placement by_parity{.owner = OwnerByParity, .range_owner = OwnerOfRange};
  return {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = kRows, .placement = by_parity},
          {.name = "ordered",
           .index = IndexKind::kXStore,
           .payload_bytes = sizeof(uint64_t),
           .expected_rows = kRows,
           .placement = by_parity},
          {.name = "blobs", .payload_bytes = kBlobBytes, .variable_length = true, .placement = by_parity}};
}

class AccessPathsTest : public testing::TestWithParam<ReadPathPolicy> {
 protected:
  AccessPathsTest() : cluster({.nodes = 3, .read_path = GetParam()}, Tables()), session(cluster.NewSession(2)) {
    const Status filled = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < kRows; ++i) {
        if (Status s = t.Insert(points(), i, Account{.balance = static_cast<int64_t>(i)}); !s.ok()) return s;
        if (Status s = t.Insert(ordered(), i, 10 * i); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(filled.ok()) << filled;
  }

  const Table& points() { return cluster.table(2, "points"); }
  const Table& ordered() { return cluster.table(2, "ordered"); }
  const Table& blobs() { return cluster.table(2, "blobs"); }

  PathStatistics Counted(const std::string& table, AccessKind kind) {
    for (const TablePaths& each : session.path_statistics()) {
      if (each.table == table && each.kind == kind) return each.paths;
    }
    return {};
  }

  // Rows of both tables and of keys that are not there.
  void GetSome(BlockingTransaction& t, uint64_t first) {
    std::array<Account, 10> accounts;
    std::array<uint64_t, 10> numbers;
    std::vector<GetRequest> requests;
    for (uint64_t i = 0; i < 10; ++i) {
      requests.push_back(GetRequest::Of(points(), first + i, &accounts[i], /*for_update=*/i == 3));
      requests.push_back(GetRequest::Of(ordered(), first + i, &numbers[i]));
    }
    Account none;
    requests.push_back(GetRequest::Of(points(), kRows + first, &none));
    const Status got = t.GetMany(requests);
    ASSERT_TRUE(got.ok()) << got;
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_TRUE(requests[2 * i].status.ok()) << requests[2 * i].status;
      ASSERT_TRUE(requests[2 * i + 1].status.ok());
      EXPECT_EQ(accounts[i].balance, static_cast<int64_t>(first + i));
      EXPECT_EQ(numbers[i], 10 * (first + i));
    }
    EXPECT_TRUE(absl::IsNotFound(requests.back().status));
  }

  Cluster cluster;
  Session& session;
};

TEST_P(AccessPathsTest, GetManyFindsRowsOfSeveralOwnersAndTables) {
  for (uint64_t first = 0; first + 10 <= kRows; ++first) {
    Step t(session);
    GetSome(*t.operator->(), first);
    EXPECT_TRUE(t.Commit().ok());
  }
}

TEST_P(AccessPathsTest, AFixedPolicyHoldsForGetMany) {
  if (GetParam() == ReadPathPolicy::kAdaptive) GTEST_SKIP();
  for (int i = 0; i < 100; ++i) {  // until the client has the model
    Step t(session);
    GetSome(*t.operator->(), 0);
    ASSERT_TRUE(t.Commit().ok());
    SleepForNanos(1'000'000);
  }
  Step t(session);
  const rdma::VerbCounters before = session.channel().counters();
  GetSome(*t.operator->(), 0);
  const rdma::VerbCounters used = session.channel().counters() - before;
  if (GetParam() == ReadPathPolicy::kCall) {
    EXPECT_EQ(used.calls, 2u);  // one per owner, of both tables
    EXPECT_EQ(used.reads, 0u);
  } else {
    EXPECT_EQ(used.calls, 0u);
    EXPECT_GE(used.reads, 20u);
  }
  ASSERT_TRUE(t.Commit().ok());
}

// Without that, a client that makes calls because its cache is empty would go on so.
TEST_P(AccessPathsTest, AnAdaptiveClientLearnsFromCallsWhereRecordsAre) {
  if (GetParam() != ReadPathPolicy::kAdaptive) GTEST_SKIP();
  Session& other = cluster.NewSession(2);
  // The first accesses to an owner take both paths in turn.
  const auto get = [&](uint64_t key) {
    const rdma::VerbCounters before = other.channel().counters();
    Account account;
    const Status got = RunBlockingBody(other, [&](BlockingTransaction& t) { return t.Get(points(), key, &account); });
    EXPECT_TRUE(got.ok()) << got;
    EXPECT_EQ(account.balance, static_cast<int64_t>(key));
    return other.channel().counters() - before;
  };
  get(2);
  EXPECT_EQ(get(4).calls, 1u);
  const rdma::VerbCounters unknown = get(6);
  EXPECT_EQ(unknown.calls, 0u);
  EXPECT_EQ(get(8).calls, 1u);
  const rdma::VerbCounters known = get(4);
  EXPECT_EQ(known.calls, 0u);
  EXPECT_EQ(known.reads, unknown.reads - 1);  // not of the index
}

// An answer has room for two blobs.
TEST_P(AccessPathsTest, AnAnswerMayTakeSeveralCalls) {
  constexpr uint64_t kBlobs = 7;
  const auto blob = [](uint64_t i) { return std::string(kBlobBytes - i, static_cast<char>('a' + i)); };
  for (uint64_t i = 0; i < kBlobs; ++i) {
    const std::string bytes = blob(i);
    const Status inserted = RunBlockingBody(
        session, [&](BlockingTransaction& t) { return t.Insert(blobs(), 2 * i, std::as_bytes(std::span(bytes))); });
    ASSERT_TRUE(inserted.ok()) << inserted;
  }
  std::vector<std::string> read(kBlobs);
  std::vector<GetRequest> requests;
  for (uint64_t i = 0; i < kBlobs; ++i) {
    read[i].resize(blob(i).size());
    requests.push_back({.table = &blobs(), .key = 2 * i, .out = std::as_writable_bytes(std::span(read[i]))});
  }
  Step t(session);
  const rdma::VerbCounters before = session.channel().counters();
  ASSERT_TRUE(t->GetMany(requests).ok());
  const rdma::VerbCounters used = session.channel().counters() - before;
  for (uint64_t i = 0; i < kBlobs; ++i) EXPECT_EQ(read[i], blob(i));
  if (GetParam() == ReadPathPolicy::kCall) {
    EXPECT_EQ(used.calls, (kBlobs + 1) / 2);
    EXPECT_EQ(used.reads, 0u);
  }
  EXPECT_TRUE(t.Commit().ok());
}

TEST_P(AccessPathsTest, GetManyServesOwnWritesAndForUpdateRows) {
  const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    Account account{.balance = -1};
    std::array<Account, 3> rows;
    if (Status s = t.Insert(points(), kRows + 5, Account{.balance = 77}); !s.ok()) return s;
    auto handle = t.GetForUpdate(points(), 4, &account);
    if (!handle.ok()) return handle.status();
    account.balance = 44;
    if (Status s = t.Update(*handle, account); !s.ok()) return s;
    std::array<GetRequest, 3> requests = {GetRequest::Of(points(), kRows + 5, &rows[0]),
                                          GetRequest::Of(points(), 4, &rows[1]),
                                          GetRequest::Of(points(), 6, &rows[2], /*for_update=*/true)};
    if (Status s = t.GetMany(requests); !s.ok()) return s;
    EXPECT_EQ(rows[0].balance, 77);
    EXPECT_EQ(rows[1].balance, 44);
    EXPECT_EQ(rows[2].balance, 6);
    rows[2].balance = 66;
    return t.Update(requests[2].handle, rows[2]);
  });
  ASSERT_TRUE(done.ok()) << done;
  Step t(session);
  std::array<Account, 3> rows;
  std::array<GetRequest, 3> requests = {GetRequest::Of(points(), kRows + 5, &rows[0]),
                                        GetRequest::Of(points(), 4, &rows[1]), GetRequest::Of(points(), 6, &rows[2])};
  ASSERT_TRUE(t->GetMany(requests).ok());
  EXPECT_EQ(rows[0].balance, 77);
  EXPECT_EQ(rows[1].balance, 44);
  EXPECT_EQ(rows[2].balance, 66);
  EXPECT_TRUE(t.Commit().ok());
}

// What a GetMany read is validated: rows, and keys that were not there.
TEST_P(AccessPathsTest, ChangesAfterAGetManyAreConflicts) {
  Session& other = cluster.NewSession(2);
  for (const bool insert : {false, true}) {
    Step t(session);
    GetSome(*t.operator->(), 20);
    const Status changed = RunBlockingBody(other, [&](BlockingTransaction& u) -> Status {
      if (insert) return u.Insert(points(), kRows + 20, Account{});
      Account account;
      auto handle = u.GetForUpdate(points(), 25, &account);
      if (!handle.ok()) return handle.status();
      return u.Update(*handle, account);
    });
    ASSERT_TRUE(changed.ok()) << changed;
    EXPECT_TRUE(absl::IsAborted(t.Commit()));
  }
}

// A transaction that only reads, and reads all at one moment, commits without a verb.
TEST_P(AccessPathsTest, ASnapshotNeedsNoValidation) {
  Session& other = cluster.NewSession(2);
  // What the commit takes after `read`, if a row of what was read is changed in between.
  const auto commit = [&](const auto& read, Status* committed) {
    Step t(session);
    read(*t.operator->());
    const Status changed = RunBlockingBody(other, [&](BlockingTransaction& u) -> Status {
      Account account;
      auto handle = u.GetForUpdate(points(), 4, &account);
      if (!handle.ok()) return handle.status();
      if (Status s = u.Update(*handle, account); !s.ok()) return s;
      uint64_t number;
      auto ordered_handle = u.GetForUpdate(ordered(), 4, &number);
      if (!ordered_handle.ok()) return ordered_handle.status();
      return u.Update(*ordered_handle, number);
    });
    EXPECT_TRUE(changed.ok()) << changed;
    const rdma::VerbCounters before = session.channel().counters();
    *committed = t.Commit();
    return session.channel().counters() - before;
  };
  const auto get = [&](uint64_t key) {
    return [this, key](BlockingTransaction& t) {
      Account account;
      EXPECT_TRUE(t.Get(points(), key, &account).ok());
    };
  };
  const auto get_many = [this](BlockingTransaction& t) {
    std::array<Account, 3> rows;
    std::array<GetRequest, 3> requests = {GetRequest::Of(points(), 2, &rows[0]), GetRequest::Of(points(), 4, &rows[1]),
                                          GetRequest::Of(points(), kRows + 2, &rows[2])};
    EXPECT_TRUE(t.GetMany(requests).ok());
  };
  const auto scan = [this](BlockingTransaction& t) {
    ScanRows rows;
    EXPECT_TRUE(t.Scan(ordered(), {.from = 4, .to = 4}, &rows).ok());
  };
  Status committed;
  EXPECT_EQ(commit(get(4), &committed).round_trips, 0u);
  EXPECT_TRUE(committed.ok()) << committed;
  // Two rows of one owner, one after the other.
  const auto two = [&](BlockingTransaction& t) { get(2)(t), get(4)(t); };
  EXPECT_EQ(commit(two, &committed).round_trips, 1u);
  EXPECT_TRUE(absl::IsAborted(committed));
  if (GetParam() == ReadPathPolicy::kAdaptive) return;
  const bool calls = GetParam() == ReadPathPolicy::kCall;
  EXPECT_EQ(commit(get_many, &committed).round_trips, calls ? 0u : 1u);
  EXPECT_EQ(absl::IsAborted(committed), !calls);
  EXPECT_EQ(commit(scan, &committed).round_trips, calls ? 0u : 1u);
  EXPECT_EQ(absl::IsAborted(committed), !calls);
  // A snapshot and another read are none.
  const auto more = [&](BlockingTransaction& t) { get_many(t), get(6)(t); };
  EXPECT_EQ(commit(more, &committed).round_trips, 1u);
  EXPECT_TRUE(absl::IsAborted(committed));
  // A transaction that writes may not be of an earlier moment, either.
  const auto write = [&](BlockingTransaction& t) {
    get_many(t);
    EXPECT_TRUE(t.Insert(points(), kRows + 8, Account{}).ok());
  };
  commit(write, &committed);
  EXPECT_TRUE(absl::IsAborted(committed));
}

TEST_P(AccessPathsTest, EachAccessIsCountedByTableKindAndPath) {
  const PathStatistics inserts = Counted("points", AccessKind::kInsert);
  EXPECT_EQ(inserts.one_sided, 0u);
  EXPECT_GE(inserts.calls, kRows);
  const PathStatistics gets_before = Counted("points", AccessKind::kGet);
  for (uint64_t i = 0; i < 100; ++i) {
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      Account account;
      if (Status s = t.Get(points(), i, &account); !s.ok()) return s;
      GetSome(t, i);
      ScanRows rows;
      return t.Scan(ordered(), {.from = i, .to = i}, &rows);
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto check = [](const PathStatistics& counted, uint64_t n) {
    EXPECT_EQ(counted.accesses(), n);
    EXPECT_TRUE(GetParam() != ReadPathPolicy::kOneSided || counted.calls == 0);
    EXPECT_TRUE(GetParam() != ReadPathPolicy::kCall || counted.one_sided == 0);
    EXPECT_TRUE(GetParam() == ReadPathPolicy::kAdaptive || counted.estimated == 0);
    if (GetParam() == ReadPathPolicy::kAdaptive) {
      // The first accesses to each of the owners try both paths.
      EXPECT_GE(counted.one_sided, 4u);
      EXPECT_GE(counted.calls, 4u);
      EXPECT_GT(counted.estimated, 0u);
      EXPECT_GT(counted.one_sided_estimate(), 0);
      EXPECT_GT(counted.call_estimate(), 0);
    }
  };
  check(Counted("points", AccessKind::kGet).Since(gets_before), 100);
  check(Counted("points", AccessKind::kGetMany), 200);  // two owners
  check(Counted("ordered", AccessKind::kScan), 100);
  EXPECT_EQ(Counted("ordered", AccessKind::kGetMany).accesses(), 200u);
  EXPECT_EQ(Counted("blobs", AccessKind::kGet).accesses(), 0u);

  const Status removed = RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Remove(points(), 7); });
  ASSERT_TRUE(removed.ok()) << removed;
  EXPECT_EQ(Counted("points", AccessKind::kRemove).calls, 1u);

  // The database has the sums, of closed sessions, too.
  const auto of_database = [&] {
    for (const TablePaths& each : cluster.databases[2]->path_statistics()) {
      if (each.table == "points" && each.kind == AccessKind::kGet) return each.paths.accesses();
    }
    return uint64_t{0};
  };
  const uint64_t gets = Counted("points", AccessKind::kGet).accesses();
  EXPECT_EQ(of_database(), gets);
  cluster.sessions.clear();
  EXPECT_EQ(of_database(), gets);
}

INSTANTIATE_TEST_SUITE_P(Policies, AccessPathsTest,
                         testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall, ReadPathPolicy::kAdaptive),
                         [](const auto& policy) {
                           return policy.param == ReadPathPolicy::kOneSided ? "OneSided"
                                  : policy.param == ReadPathPolicy::kCall   ? "Call"
                                                                            : "Adaptive";
                         });

// A record of this node's own is read without a choice.
TEST(AccessPathsOfOneNodeTest, LocalAccessesAreNotCounted) {
  Cluster cluster({.nodes = 1, .read_path = ReadPathPolicy::kAdaptive}, {Tables()[0]});
  Session& session = cluster.NewSession(0);
  const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    Account account;
    if (Status s = t.Insert(cluster.table(0, "points"), 1, account); !s.ok()) return s;
    return t.Get(cluster.table(0, "points"), 1, &account);
  });
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_TRUE(session.path_statistics().empty());
}

class ReadManyRequestTest : public testing::Test {
 protected:
  ReadManyRequestTest() : cluster_({.nodes = 2}, {Tables()[0]}), session_(cluster_.NewSession(1)) {}

  StatusOr<size_t> Ask(const rdma::WireWriter& writer, size_t room = 4096) {
    return session_.worker().BlockOn(Call(writer.written(), room));
  }
  coro::Task<StatusOr<size_t>> Call(std::span<const std::byte> request, size_t room) {
    answer_.resize(room);
    co_return co_await session_.channel().Call(0, kTxnReadMany, request, answer_);
  }

  Cluster cluster_;
  Session& session_;
  std::array<std::byte, 4096> message_;
  std::vector<std::byte> answer_;
};

TEST_F(ReadManyRequestTest, OwnersRefuseMalformedOnes) {
  {
    rdma::WireWriter empty(message_);
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(empty).status()));
    empty.PutU16(0);  // no keys
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(empty).status()));
  }
  {
    rdma::WireWriter many(message_);
    many.PutU16(UINT16_MAX);
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(many).status()));
  }
  {
    rdma::WireWriter missing(message_);  // two keys, of which one follows
    missing.PutU16(2);
    missing.PutU16(0);
    index::PutKey(missing, 2);
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(missing).status()));
  }
  {
    rdma::WireWriter no_table(message_);
    no_table.PutU16(1);
    no_table.PutU16(77);
    index::PutKey(no_table, 2);
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(no_table).status()));
  }
  {
    rdma::WireWriter wrong_key(message_);
    wrong_key.PutU16(1);
    wrong_key.PutU16(0);
    index::PutKey(wrong_key, index::Key("bytes"));
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(wrong_key).status()));
  }
  {
    rdma::WireWriter more(message_);
    more.PutU16(1);
    more.PutU16(0);
    index::PutKey(more, 2);
    more.PutU16(0);
    EXPECT_TRUE(absl::IsInvalidArgument(Ask(more).status()));
  }
}

TEST_F(ReadManyRequestTest, AnswersThatAKeyIsAbsent) {
  rdma::WireWriter writer(message_);
  writer.PutU16(1);
  writer.PutU16(0);
  index::PutKey(writer, 2);
  const StatusOr<size_t> size = Ask(writer);
  ASSERT_TRUE(size.ok()) << size.status();
  rdma::WireReader reader(std::span<const std::byte>(answer_).first(*size));
  EXPECT_EQ(reader.GetU8(), 1u);  // confirmed
  EXPECT_EQ(reader.GetU16(), 1u);
  EXPECT_EQ(reader.GetU8(), static_cast<uint8_t>(ReadOutcome::kAbsent));
}

}  // namespace access_paths_test
}  // namespace gannet::txn
