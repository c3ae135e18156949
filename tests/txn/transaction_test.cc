// The operations of a single transaction: on the owner's node by the direct path, on another node by verbs and by
// calls.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/txn/cluster.h"
#include "tests/txn/size_changes.h"

namespace gannet::txn {
namespace transaction_test {

struct Case {
  std::string name;
  ClusterOptions cluster;
  int session_node;  // the data is on node 0
  IndexKind ordered = IndexKind::kXStore;
};

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

class TransactionTest : public testing::TestWithParam<Case> {
 protected:
  TransactionTest()
      : cluster(Options(), {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 10000},
                            {.name = "ordered", .index = GetParam().ordered, .payload_bytes = sizeof(Account)},
                            {.name = "text",
                             .key_kind = index::KeyKind::kBytes,
                             .max_key_bytes = 40,
                             .index = GetParam().ordered,
                             .payload_bytes = kMaxPayloadBytes,
                             .variable_length = true},
                            {.name = "blobs",
                             .key_kind = index::KeyKind::kBytes,
                             .max_key_bytes = 64,
                             .payload_bytes = kMaxPayloadBytes,
                             .variable_length = true},
                            {.name = "spread",
                             .key_kind = index::KeyKind::kBytes,
                             .max_key_bytes = 64,
                             .index = GetParam().ordered,
                             .payload_bytes = sizeof(uint64_t),
                             .placement = Placement::ByHash()}}),
        session(cluster.NewSession(GetParam().session_node)),
        points(cluster.table(GetParam().session_node, "points")),
        ordered(cluster.table(GetParam().session_node, "ordered")),
        text(cluster.table(GetParam().session_node, "text")),
        blobs(cluster.table(GetParam().session_node, "blobs")),
        spread(cluster.table(GetParam().session_node, "spread")) {}

  static ClusterOptions Options() {
    ClusterOptions options = GetParam().cluster;
    options.worked_at = {GetParam().session_node};
    return options;
  }

  template <class Body>
  Status Run(Body body) {
    return RunBlockingBody(session, body);
  }

  Cluster cluster;
  Session& session;
  const Table& points;
  const Table& ordered;
  const Table& text;
  const Table& blobs;
  const Table& spread;  // over all nodes
};

TEST_P(TransactionTest, InsertsGetsUpdatesRemoves) {
  for (const Table* table : {&points, &ordered}) {
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(*table, 7, Account{.balance = 100}); }).ok());
    Account account;
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(*table, 7, &account); }).ok());
    EXPECT_EQ(account.balance, 100);
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Update(*table, 7, Account{.balance = 200}); }).ok());
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(*table, 7, &account); }).ok());
    EXPECT_EQ(account.balance, 200);
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Remove(*table, 7); }).ok());
    EXPECT_TRUE(absl::IsNotFound(Run([&](BlockingTransaction& t) { return t.Get(*table, 7, &account); })));
    EXPECT_TRUE(absl::IsNotFound(Run([&](BlockingTransaction& t) { return t.Remove(*table, 7); })));
    // The key can be inserted again.
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(*table, 7, Account{.balance = 1}); }).ok());
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(*table, 7, &account); }).ok());
    EXPECT_EQ(account.balance, 1);
  }
}

TEST_P(TransactionTest, InsertOfAPresentKeyFailsAndLeavesNoTrace) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(points, 1, Account{.balance = 5}); }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Insert(points, 2, Account{.balance = 6}); !s.ok()) return s;
    return t.Insert(points, 1, Account{.balance = 7});
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  Account account;
  EXPECT_TRUE(absl::IsNotFound(Run([&](BlockingTransaction& t) { return t.Get(points, 2, &account); })));
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(points, 1, &account); }).ok());
  EXPECT_EQ(account.balance, 5);
}

TEST_P(TransactionTest, InsertOfAPresentKeyFailsBesideInsertsOfMissedKeys) {
  // Enough keys that some of them share the bucket, and so the witness, of a missed key.
  constexpr uint64_t kPresent = 1000;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(points, kPresent, Account{.balance = 5}); }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < 32; ++key) {
      Account account;
      if (Status s = t.Get(points, key, &account); !absl::IsNotFound(s)) return s;
      if (Status s = t.Insert(points, key, Account{.balance = 6}); !s.ok()) return s;
    }
    return t.Insert(points, kPresent, Account{.balance = 7});
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  for (uint64_t key = 0; key < 32; ++key) {
    Account account;
    EXPECT_TRUE(absl::IsNotFound(Run([&](BlockingTransaction& t) { return t.Get(points, key, &account); }))) << key;
  }
}

TEST_P(TransactionTest, TheSameKeyInsertedTwiceInOneTransactionFails) {
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Insert(ordered, 3, Account{}); !s.ok()) return s;
    return t.Insert(ordered, 3, Account{});
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  Account account;
  EXPECT_TRUE(absl::IsNotFound(Run([&](BlockingTransaction& t) { return t.Get(ordered, 3, &account); })));
}

TEST_P(TransactionTest, ReadsItsOwnWrites) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(ordered, 10, Account{.balance = 1}); }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    Account account;
    EXPECT_TRUE(t.Insert(ordered, 20, Account{.balance = 2}).ok());
    EXPECT_TRUE(t.Get(ordered, 20, &account).ok());
    EXPECT_EQ(account.balance, 2);
    EXPECT_TRUE(t.Update(ordered, 10, Account{.balance = 11}).ok());
    EXPECT_TRUE(t.Get(ordered, 10, &account).ok());
    EXPECT_EQ(account.balance, 11);
    EXPECT_TRUE(t.Update(ordered, 20, Account{.balance = 22}).ok());
    EXPECT_TRUE(t.Get(ordered, 20, &account).ok());
    EXPECT_EQ(account.balance, 22);
    ScanRows rows;
    EXPECT_TRUE(t.Scan(ordered, {.from = 0, .to = 100}, &rows).ok());
    EXPECT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows.As<Account>(0).balance, 11);
    EXPECT_EQ(rows.As<Account>(1).balance, 22);
    EXPECT_TRUE(t.Remove(ordered, 10).ok());
    EXPECT_TRUE(absl::IsNotFound(t.Get(ordered, 10, &account)));
    EXPECT_TRUE(t.Scan(ordered, {.from = 0, .to = 100}, &rows).ok());
    EXPECT_EQ(rows.size(), 1u);
    EXPECT_TRUE(t.Insert(ordered, 10, Account{.balance = 111}).ok());  // removed and inserted again
    EXPECT_TRUE(t.Get(ordered, 10, &account).ok());
    EXPECT_EQ(account.balance, 111);
    EXPECT_TRUE(t.Insert(ordered, 30, Account{.balance = 3}).ok());
    EXPECT_TRUE(t.Remove(ordered, 30).ok());  // inserted and removed again
    EXPECT_TRUE(absl::IsNotFound(t.Get(ordered, 30, &account)));
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  ScanRows rows;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = 100}, &rows); }).ok());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.key(0).integer(), 10u);
  EXPECT_EQ(rows.As<Account>(0).balance, 111);
  EXPECT_EQ(rows.key(1).integer(), 20u);
  EXPECT_EQ(rows.As<Account>(1).balance, 22);
}

TEST_P(TransactionTest, InsertThenRemoveOfAPresentKeyStillFails) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(points, 1, Account{}); }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Insert(points, 1, Account{}); !s.ok()) return s;
    StatusOr<RecordHandle> handle = RecordHandle{0};
    return t.transaction().Remove(*handle);
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

TEST_P(TransactionTest, RollbackLeavesNoTrace) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(ordered, 1, Account{.balance = 1}); }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    EXPECT_TRUE(t.Insert(ordered, 2, Account{}).ok());
    EXPECT_TRUE(t.Update(ordered, 1, Account{.balance = 9}).ok());
    return absl::CancelledError("changed my mind");
  });
  EXPECT_TRUE(absl::IsCancelled(status));
  {
    Step step(session);
    EXPECT_TRUE(step->Remove(ordered, 1).ok());
    step.Rollback();
    EXPECT_TRUE(step.Commit().ok());  // commits nothing
  }
  ScanRows rows;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = 100}, &rows); }).ok());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.As<Account>(0).balance, 1);
}

TEST_P(TransactionTest, GetManyRefusesARequestWithoutATable) {
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    Account account;
    std::vector<GetRequest> requests = {GetRequest::Of(points, 1, &account), {}};
    const Status got = t.GetMany(requests);
    EXPECT_TRUE(absl::IsInvalidArgument(got)) << got;
    EXPECT_EQ(requests[0].status, got);
    EXPECT_EQ(requests[1].status, got);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(TransactionTest, GetManyGivesEachKeyItsOwnStatus) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t key = 0; key < 100; key += 2) {
                  if (Status s = t.Insert(points, key, Account{.balance = static_cast<int64_t>(key)}); !s.ok())
                    return s;
                  if (Status s = t.Insert(ordered, key, Account{.balance = static_cast<int64_t>(key)}); !s.ok())
                    return s;
                }
                return absl::OkStatus();
              }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    std::vector<Account> accounts(40);
    std::vector<GetRequest> requests;
    for (uint64_t i = 0; i < 40; ++i) {
      requests.push_back(GetRequest::Of(i < 20 ? points : ordered, i, &accounts[i], /*for_update=*/i % 4 == 0));
    }
    if (Status s = t.GetMany(requests); !s.ok()) return s;
    for (uint64_t i = 0; i < 40; ++i) {
      if (i % 2 == 1) {
        EXPECT_TRUE(absl::IsNotFound(requests[i].status)) << requests[i].status;
        continue;
      }
      EXPECT_TRUE(requests[i].status.ok()) << i << " " << requests[i].status;
      EXPECT_EQ(accounts[i].balance, static_cast<int64_t>(i));
      if (i % 4 == 0) {
        EXPECT_TRUE(t.transaction().Update(requests[i].handle, Account{.balance = -1}).ok());
      }
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  Account account;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(points, 4, &account); }).ok());
  EXPECT_EQ(account.balance, -1);
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Get(ordered, 22, &account); }).ok());
  EXPECT_EQ(account.balance, 22);
}

// A program uses its requests again: nothing of an earlier answer may remain.
TEST_P(TransactionTest, GetManySetsEveryResultOfARequestThatIsUsedAgain) {
  const auto value = [](const Table& table) { return table.options().variable_length ? "five!" : "eight by"; };
  for (const Table* table : {&text, &blobs, &spread}) {
    const std::string payload = value(*table);
    const auto bytes = std::as_bytes(std::span(payload));
    std::array<char, 8> out{};
    std::vector<std::string> keys;
    std::vector<GetRequest> requests;
    for (int i = 0; i < 8; ++i) keys.push_back("key " + std::to_string(i));
    for (const std::string& key : keys) {
      requests.push_back({.table = table,
                          .key = Key(key),
                          .out = std::as_writable_bytes(std::span(out)).first(payload.size()),
                          .for_update = true});
    }
    const auto spoil = [&](absl::StatusCode code) {
      for (GetRequest& request : requests) {
        request.status = Status(code, "left by an earlier call");
        request.payload_bytes = 77;
        request.handle = {7};
      }
    };
    const auto expect = [&](BlockingTransaction& t, int present, bool for_update) {
      for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kNotFound,
                                          absl::StatusCode::kAborted, absl::StatusCode::kOutOfRange}) {
        spoil(code);
        for (GetRequest& request : requests) request.for_update = for_update;
        const Status status = t.GetMany(requests);
        ASSERT_TRUE(status.ok()) << status;
        for (int i = 0; i < 8; ++i) {
          EXPECT_EQ(requests[i].status.code(), i < present ? absl::StatusCode::kOk : absl::StatusCode::kNotFound)
              << table->name() << " " << i << ": " << requests[i].status;
          EXPECT_EQ(requests[i].payload_bytes, i < present ? payload.size() : 0u) << i;
          EXPECT_EQ(requests[i].handle.index != UINT32_MAX, i < present && for_update) << i;
          EXPECT_NE(requests[i].handle.index, 7u) << i;
        }
      }
    };
    const Status status = Run([&](BlockingTransaction& t) -> Status {
      for (int i = 0; i < 4; ++i) {
        if (Status s = t.Insert(*table, Key(keys[i]), bytes); !s.ok()) return s;
      }
      expect(t, 4, false);  // own inserts
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    const Status again = Run([&](BlockingTransaction& t) -> Status {
      expect(t, 4, false);
      expect(t, 4, true);
      expect(t, 4, false);  // records that were read for update
      if (Status s = t.Remove(*table, Key(keys[3])); !s.ok()) return s;
      if (Status s = t.Insert(*table, Key(keys[4]), bytes); !s.ok()) return s;
      if (Status s = t.Insert(*table, Key(keys[3]), bytes); !s.ok()) return s;
      expect(t, 5, false);
      if (Status s = t.Remove(*table, Key(keys[4])); !s.ok()) return s;
      expect(t, 4, false);
      for (GetRequest& request : requests) request.offset = 1;
      spoil(absl::StatusCode::kOk);
      if (Status s = t.GetMany(requests); !s.ok()) return s;
      EXPECT_TRUE(absl::IsOutOfRange(requests[0].status)) << requests[0].status;
      EXPECT_EQ(requests[0].payload_bytes, payload.size());
      EXPECT_TRUE(absl::IsNotFound(requests[7].status)) << requests[7].status;
      return absl::OkStatus();
    });
    ASSERT_TRUE(again.ok()) << again;
  }
}

// Any other memory of this process may lie between the outputs, such as the copies of the keys.
TEST_P(TransactionTest, TheOutputsOfGetManyMayBeFarApart) {
  static uint64_t low = 0;
  uint64_t high = 0;
  const std::string eight = "01234567";
  const std::vector<std::string> keys = {"far", "apart"};
  for (const std::string& key : keys) {
    ASSERT_TRUE(
        Run([&](BlockingTransaction& t) { return t.Insert(text, Key(key), std::as_bytes(std::span(eight))); }).ok());
  }
  const Status status = Run([&](BlockingTransaction& t) {
    std::vector<GetRequest> requests = {GetRequest::Of(text, Key(keys[0]), &low),
                                        GetRequest::Of(text, Key(keys[1]), &high)};
    Status got = t.GetMany(requests);
    EXPECT_TRUE(requests[0].status.ok() && requests[1].status.ok());
    return got;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(low, high);
  EXPECT_NE(high, 0u);
}

// Page after page into the same rows. Each scan begins at the last key of the page before, which lies in the rows that
// the scan overwrites.
TEST_P(TransactionTest, ThePagesOfAScanBeginAtAKeyOfTheRowsTheyReplace) {
  constexpr uint64_t kKeys = 60;
  const auto key = [](uint64_t i) { return std::string(1 + i % 40, static_cast<char>('a' + i / 40)) + "!"; };
  const std::string eight = "01234567";
  for (const Table* table : {&text, &spread}) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(key(i).substr(0, 40) + std::to_string(100 + i).substr(1));
    for (std::string& name : keys) name = name.substr(name.size() > 40 ? name.size() - 40 : 0);
    std::ranges::sort(keys);
    ASSERT_EQ(std::ranges::adjacent_find(keys), keys.end());
    for (const bool reverse : {false, true}) {
      Step step(session);
      // All but every fourth are own inserts. (The second time they exist already.)
      for (uint64_t i = reverse ? kKeys : 0; i < kKeys; i += 4) {
        ASSERT_TRUE(Run([&](BlockingTransaction& t) {
                      return t.Insert(*table, Key(keys[i]), std::as_bytes(std::span(eight)));
                    }).ok());
      }
      for (uint64_t i = 0; i < kKeys; ++i) {
        if (i % 4 == 0) continue;
        ASSERT_TRUE(step->Insert(*table, Key(keys[i]), std::as_bytes(std::span(eight))).ok());
      }
      std::vector<std::string> seen;
      ScanRows rows;
      index::ScanRange range{.from = Key(""), .to = Key("~"), .reverse = reverse, .limit = 7};
      do {
        const Status scanned = step->Scan(*table, range, &rows);
        ASSERT_TRUE(scanned.ok()) << scanned;
        for (size_t i = seen.empty() ? 0 : 1; i < rows.size(); ++i) seen.emplace_back(rows.key(i).bytes());
        (reverse ? range.to : range.from) = rows.key(rows.size() - 1);
      } while (rows.size() == range.limit);
      if (reverse) std::ranges::reverse(seen);
      EXPECT_EQ(seen, keys) << table->name();
    }
  }
}

TEST_P(TransactionTest, AKeyMayLieInTheOutputOfItsOwnGet) {
  const std::array<std::string, 2> names = {"a key that", "is replaced"};  // by the payload
  for (const Table* table : {&text, &blobs}) {
    ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                  for (const std::string& name : names) {
                    const std::string payload(name.size(), name[0]);
                    if (Status s = t.Insert(*table, Key(name), std::as_bytes(std::span(payload))); !s.ok()) return s;
                  }
                  return absl::OkStatus();
                }).ok());
    const Status status = Run([&](BlockingTransaction& t) -> Status {
      std::array<std::string, 2> buffers = names;
      const auto key = [&](size_t i) { return Key(std::string_view(buffers[i])); };
      const auto out = [&](size_t i) { return std::as_writable_bytes(std::span(buffers[i])); };
      if (Status s = t.Get(*table, key(0), out(0)); !s.ok()) return s;
      EXPECT_EQ(buffers[0], std::string(names[0].size(), names[0][0]));
      buffers = names;
      std::vector<GetRequest> requests;
      for (const size_t i : {0, 1}) {  // each into the other's key
        requests.push_back(
            {.table = table, .key = key(i), .out = out(1 - i).first(8), .offset = 0, .for_update = true});
      }
      if (Status s = t.GetMany(requests); !s.ok()) return s;
      for (const size_t i : {0, 1}) {
        if (!requests[i].status.ok()) return requests[i].status;
        EXPECT_EQ(buffers[1 - i].substr(0, 8), std::string(8, names[i][0]));
        // The longer payload needs another block, so that the index is asked for the key.
        const std::string longer(3000, static_cast<char>('x' + i));
        if (Status s = t.transaction().Update(requests[i].handle, longer); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    for (const size_t i : {0, 1}) {
      std::string got(3000, ' ');
      ASSERT_TRUE(Run([&](BlockingTransaction& t) {
                    return t.Get(*table, Key(names[i]), std::as_writable_bytes(std::span(got)));
                  }).ok());
      EXPECT_EQ(got, std::string(3000, static_cast<char>('x' + i)));
    }
  }
}

TEST_P(TransactionTest, ErrorsAboutAKeyNameItAndItsTable) {
  Account account;
  std::array<char, 8> eight = {'0', '1', '2', '3', '4', '5', '6', '7'};
  const std::string odd("Z\xc3\xbcrich \"\n\xff\0", 12);
  const auto message = [](const Status& status) { return std::string(status.message()); };
  Status status = Run([&](BlockingTransaction& t) { return t.Get(points, 7, &account); });
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(message(status), R"(table 'points', key 7)");
  const std::string name = R"(table 'text', key "Zürich \"\n\xff\x00")";
  for (const bool many : {false, true}) {
    status = Run([&](BlockingTransaction& t) -> Status {
      if (!many) return t.Remove(text, Key(odd));
      GetRequest request{.table = &text, .key = Key(odd), .out = std::as_writable_bytes(std::span(eight))};
      if (Status s = t.GetMany({&request, 1}); !s.ok()) return s;
      return request.status;
    });
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(message(status), name);
  }
  ASSERT_TRUE(
      Run([&](BlockingTransaction& t) { return t.Insert(text, Key(odd), std::as_bytes(std::span(eight))); }).ok());
  // An error of the commit, next to operations that succeed.
  status = Run([&](BlockingTransaction& t) -> Status {
    for (const std::string& key : {std::string("a"), odd, std::string("z")}) {
      if (Status s = t.Insert(text, Key(key), std::as_bytes(std::span(eight))); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_EQ(message(status), name);
  status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Insert(points, 99, account); !s.ok()) return s;
    return t.Insert(points, 99, account);
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_EQ(message(status), R"(table 'points', key 99)");
  status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Remove(text, Key(odd)); !s.ok()) return s;
    return t.Get(text, Key(odd), std::as_writable_bytes(std::span(eight)));
  });
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(message(status), name) << "of a key that the transaction itself removed";
  status =
      Run([&](BlockingTransaction& t) { return t.Get(text, Key(odd), std::as_writable_bytes(std::span(eight)), 4); });
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(message(status), name + ": bytes [4, 12) are not all in its payload of 8");
}

TEST_P(TransactionTest, TwoRequestsForOneRecordShareAHandle) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(points, 5, Account{.balance = 5}); }).ok());
  Step step(session);
  Account a, b;
  std::vector<GetRequest> requests = {GetRequest::Of(points, 5, &a, true), GetRequest::Of(points, 5, &b, true)};
  ASSERT_TRUE(step->GetMany(requests).ok());
  EXPECT_EQ(requests[0].handle.index, requests[1].handle.index);
  ASSERT_TRUE(step->Update(requests[0].handle, Account{.balance = 6}).ok());
  ASSERT_TRUE(step->Get(points, 5, &b).ok());
  EXPECT_EQ(b.balance, 6);
  EXPECT_TRUE(step.Commit().ok());
}

TEST_P(TransactionTest, ReadsAndWritesPartsOfAPayload) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Insert(points, 5, Account{.balance = 5}); }).ok());
  const int64_t nine = 9;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                Account account;
                StatusOr<RecordHandle> handle = t.GetForUpdate(points, 5, &account);
                if (!handle.ok()) return handle.status();
                if (Status s = t.transaction().Update(*handle, std::as_bytes(std::span(&nine, 1)), 80); !s.ok())
                  return s;
                // An update that overlaps the last one wins.
                const int32_t four = 4;
                return t.transaction().Update(*handle, std::as_bytes(std::span(&four, 1)), 84);
              }).ok());
  int64_t part = 0;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) {
                return t.Get(points, 5, std::as_writable_bytes(std::span(&part, 1)), 80);
              }).ok());
  EXPECT_EQ(part, (int64_t{4} << 32) | 9);
  EXPECT_TRUE(absl::IsOutOfRange(Run([&](BlockingTransaction& t) {
    return t.Get(points, 5, std::as_writable_bytes(std::span(&part, 1)), sizeof(Account) - 4);
  })));
}

TEST_P(TransactionTest, BadArgumentsAreRefused) {
  Step step(session);
  EXPECT_TRUE(absl::IsInvalidArgument(step->Insert(points, 1, std::vector<std::byte>(3))));
  EXPECT_TRUE(absl::IsInvalidArgument(step->Insert(points, Key(std::string_view("text")), Account{})));
  const std::string too_long(41, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(step->Insert(text, Key(std::string_view(too_long)), Account{})));
  EXPECT_TRUE(absl::IsInvalidArgument(step->Insert(text, Key(std::string_view("x")), std::vector<std::byte>(65537))));
  Account account;
  EXPECT_TRUE(absl::IsInvalidArgument(step->Get(points, Key(std::string_view("text")), &account)));
  EXPECT_TRUE(absl::IsInvalidArgument(step->Update(RecordHandle{12}, account)));
  ScanRows rows;
  EXPECT_TRUE(absl::IsFailedPrecondition(step->Scan(points, {.from = 0, .to = 1}, &rows)));
}

// Records of a variable-length table grow and shrink, within their block and beyond it.
TEST_P(TransactionTest, VariableLengthRecordsMatchAModel) {
  const int steps = GetParam().cluster.adversarial ? 40 : 150;  // each of its yields may cost a slice of the CPU
  std::mt19937_64 random(7);
  for (const Table* table : {&text, &blobs}) {
    std::vector<std::optional<std::string>> model(8);
    for (int step = 0; step < steps; ++step) {
      const size_t i = random() % model.size();
      const std::string key = "key number " + std::to_string(i);
      std::string value(random() % 3 == 0 ? random() % 65536 : random() % 300, '\0');
      for (char& c : value) c = static_cast<char>(random());
      const bool remove = model[i].has_value() && random() % 8 == 0;
      const Status status = Run([&](BlockingTransaction& t) -> Status {
        const std::span<const std::byte> bytes = std::as_bytes(std::span(value));
        if (remove) return t.Remove(*table, std::string_view(key));
        if (!model[i].has_value()) {
          if (Status s = t.Insert(*table, std::string_view(key), bytes.first(bytes.size() / 2)); !s.ok()) return s;
        }
        return t.Update(*table, std::string_view(key), bytes);
      });
      ASSERT_TRUE(status.ok()) << status;
      model[i] = remove ? std::nullopt : std::optional(value);
      for (size_t k = 0; k < model.size(); ++k) {
        const std::string name = "key number " + std::to_string(k);
        std::string got(model[k].value_or("").size(), '\0');
        std::byte beyond;
        const Status read = Run([&](BlockingTransaction& t) {
          return t.Get(*table, std::string_view(name), std::as_writable_bytes(std::span(got)));
        });
        if (!model[k].has_value()) {
          EXPECT_TRUE(absl::IsNotFound(read)) << read;
          continue;
        }
        ASSERT_TRUE(read.ok()) << read;
        ASSERT_EQ(got, *model[k]) << "key " << k << " at step " << step;
        EXPECT_TRUE(absl::IsOutOfRange(Run([&](BlockingTransaction& t) {
          return t.Get(*table, std::string_view(name), std::span(&beyond, 1), static_cast<uint32_t>(got.size()));
        })));
      }
    }
  }
}

TEST_P(TransactionTest, RecordsChangeTheirSizeSeveralTimesInOneTransaction) {
  for (const Table* table : {&text, &blobs}) {
    SizeChanges changes(11, kMaxPayloadBytes);
    for (int i = 0; i < (GetParam().cluster.adversarial ? 5 : 60) && !HasFatalFailure(); ++i) {
      changes.Change(session, *table, 1 + i % 20);
      changes.Expect(session, *table);
    }
  }
}

// The smallest case: the content written in between has no effect.
TEST_P(TransactionTest, ARecordThatGrowsAndShrinksLeavesItsNeighboursAlone) {
  constexpr uint64_t kKeys = 100;
  const std::string large(4000, 'x');
  const auto key = [](uint64_t i) { return "key " + std::to_string(i); };
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t i = 0; i < kKeys; ++i) {
                  const std::string name = key(i);
                  if (Status s = t.Insert(blobs, Key(name), std::as_bytes(std::span("small", 5))); !s.ok()) return s;
                }
                return absl::OkStatus();
              }).ok());
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t i = 0; i < kKeys; i += 7) {
                  const std::string name = key(i);
                  if (Status s = t.Update(blobs, Key(name), std::as_bytes(std::span(large))); !s.ok()) return s;
                  if (Status s = t.Update(blobs, Key(name), std::as_bytes(std::span("SMALL", 5))); !s.ok()) return s;
                }
                return absl::OkStatus();
              }).ok());
  for (uint64_t i = 0; i < kKeys; ++i) {
    const std::string name = key(i);
    std::string got(5, ' ');
    const Status read =
        Run([&](BlockingTransaction& t) { return t.Get(blobs, Key(name), std::as_writable_bytes(std::span(got))); });
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(got, i % 7 == 0 ? "SMALL" : "small") << name;
  }
}

TEST_P(TransactionTest, ScansBothWaysWithLimitAndOwnChanges) {
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t key = 0; key < 200; key += 2) {
                  if (Status s = t.Insert(ordered, key, Account{.balance = static_cast<int64_t>(key)}); !s.ok())
                    return s;
                }
                return absl::OkStatus();
              }).ok());
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    if (Status s = t.Insert(ordered, 51, Account{.balance = 51}); !s.ok()) return s;
    if (Status s = t.Remove(ordered, 54); !s.ok()) return s;
    ScanRows rows;
    if (Status s = t.Scan(ordered, {.from = 49, .to = 60, .limit = 4}, &rows); !s.ok()) return s;
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < rows.size(); ++i) keys.push_back(rows.key(i).integer());
    EXPECT_EQ(keys, (std::vector<uint64_t>{50, 51, 52, 56}));
    if (Status s = t.Scan(ordered, {.from = 49, .to = 60, .reverse = true, .limit = 5}, &rows); !s.ok()) return s;
    keys.clear();
    for (size_t i = 0; i < rows.size(); ++i) keys.push_back(rows.key(i).integer());
    EXPECT_EQ(keys, (std::vector<uint64_t>{60, 58, 56, 52, 51}));
    if (Status s = t.Scan(ordered, {.from = 0, .to = UINT64_MAX}, &rows, {.keys_only = true}); !s.ok()) return s;
    EXPECT_EQ(rows.size(), 100u);
    if (Status s = t.Scan(ordered, {.from = 60, .to = 50}, &rows); !s.ok()) return s;
    EXPECT_TRUE(rows.empty());
    // Rows read for update can be updated and removed.
    if (Status s = t.Scan(ordered, {.from = 0, .to = 2}, &rows, {.for_update = true}); !s.ok()) return s;
    EXPECT_EQ(rows.size(), 2u);
    EXPECT_TRUE(t.Update(rows.handle(0), Account{.balance = 1000}).ok());
    return t.transaction().Remove(rows.handle(1));
  });
  ASSERT_TRUE(status.ok()) << status;
  ScanRows rows;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = 5}, &rows); }).ok());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.As<Account>(0).balance, 1000);
  EXPECT_EQ(rows.key(1).integer(), 4u);
}

TEST_P(TransactionTest, ManyInsertsInOneTransaction) {
  constexpr uint64_t kKeys = 3000;  // more than one prepare message
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t key = 0; key < kKeys; ++key) {
                  if (Status s = t.Insert(ordered, key, Account{.balance = 1}); !s.ok()) return s;
                }
                return absl::OkStatus();
              }).ok());
  ScanRows rows;
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = kKeys}, &rows); }).ok());
  EXPECT_EQ(rows.size(), kKeys);
  ASSERT_TRUE(Run([&](BlockingTransaction& t) -> Status {
                for (uint64_t key = 0; key < kKeys; ++key) {
                  if (Status s = t.Remove(ordered, key); !s.ok()) return s;
                }
                return absl::OkStatus();
              }).ok());
  ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = kKeys}, &rows); }).ok());
  EXPECT_TRUE(rows.empty());
}

// More writes than are searched one by one, several for each key, with scans in between.
TEST_P(TransactionTest, ManyWritesOfOneTransactionMatchAModel) {
  constexpr uint64_t kKeys = 400;
  std::mt19937_64 random(3);
  std::map<uint64_t, int64_t> model;
  std::map<uint64_t, int64_t> now;  // as the transaction leaves the table
  for (int round = 0; round < 3; ++round) {
    const Status status = Run([&](BlockingTransaction& t) -> Status {
      now = model;
      for (int i = 0; i < 1500; ++i) {
        const uint64_t key = random() % kKeys;
        const Account account{.balance = static_cast<int64_t>(random() % 1000)};
        if (!now.contains(key)) {
          if (Status s = t.Remove(ordered, key); !absl::IsNotFound(s)) return absl::InternalError(s.ToString());
          if (Status s = t.Insert(ordered, key, account); !s.ok()) return s;
          now[key] = account.balance;
          Status twice = i % 2 == 0 ? absl::OkStatus() : t.Get(ordered, key, std::span<std::byte>(), 0);
          if (!twice.ok()) return twice;
        } else if (random() % 3 == 0) {
          if (Status s = t.Remove(ordered, key); !s.ok()) return s;
          now.erase(key);
        } else {
          if (Status s = t.Update(ordered, key, account); !s.ok()) return s;
          now[key] = account.balance;
        }
        if (i % 50 != 0) continue;
        const index::ScanRange range{
            .from = random() % kKeys, .to = kKeys, .reverse = random() % 2 == 0, .limit = 1 + random() % 40};
        ScanRows rows;
        if (Status s = t.Scan(ordered, range, &rows); !s.ok()) return s;
        std::vector<std::pair<uint64_t, int64_t>> expected(now.lower_bound(range.from.integer()), now.end());
        if (range.reverse) std::ranges::reverse(expected);
        expected.resize(std::min(expected.size(), range.limit));
        std::vector<std::pair<uint64_t, int64_t>> found;
        for (size_t k = 0; k < rows.size(); ++k) found.emplace_back(rows.key(k).integer(), rows.As<Account>(k).balance);
        EXPECT_EQ(found, expected);
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    model = now;
    ScanRows rows;
    ASSERT_TRUE(Run([&](BlockingTransaction& t) { return t.Scan(ordered, {.from = 0, .to = kKeys}, &rows); }).ok());
    ASSERT_EQ(rows.size(), model.size());
    size_t i = 0;
    for (const auto& [key, balance] : model) {
      EXPECT_EQ(rows.key(i).integer(), key);
      EXPECT_EQ(rows.As<Account>(i++).balance, balance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, TransactionTest,
                         testing::Values(Case{"Direct", {.nodes = 1}, 0}, Case{"OneSided", {.nodes = 2}, 1},
                                         Case{"Call", {.nodes = 2, .read_path = ReadPathPolicy::kCall}, 1},
                                         Case{"Adaptive", {.nodes = 2, .read_path = ReadPathPolicy::kAdaptive}, 1},
                                         Case{"Adversarial", {.nodes = 2, .adversarial = true}, 1}),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(
    Indexes, TransactionTest,
    testing::Values(Case{"BlinkDirect", {.nodes = 1}, 0, IndexKind::kBlink},
                    Case{"BlinkOneSided", {.nodes = 2}, 1, IndexKind::kBlink},
                    Case{"BlinkAdversarial", {.nodes = 2, .adversarial = true}, 1, IndexKind::kBlink},
                    Case{"RolexDirect", {.nodes = 1}, 0, IndexKind::kRolex},
                    Case{"RolexOneSided", {.nodes = 2}, 1, IndexKind::kRolex},
                    Case{"RolexAdversarial", {.nodes = 2, .adversarial = true}, 1, IndexKind::kRolex},
                    Case{"DexDirect", {.nodes = 1}, 0, IndexKind::kDex},
                    Case{"DexOneSided", {.nodes = 2}, 1, IndexKind::kDex},
                    Case{"DexAdversarial", {.nodes = 2, .adversarial = true}, 1, IndexKind::kDex},
                    Case{"DolphinDirect", {.nodes = 1}, 0, IndexKind::kDolphin},
                    Case{"DolphinOneSided", {.nodes = 2}, 1, IndexKind::kDolphin},
                    Case{"DolphinAdversarial", {.nodes = 2, .adversarial = true}, 1, IndexKind::kDolphin}),
    CaseName);

}  // namespace transaction_test
}  // namespace gannet::txn
