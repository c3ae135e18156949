// Keys of up to index::kMaxKeyBytes in hash tables and in ordered ones: by every way to a record, in scans, in the log,
// and in checkpoints. And what a table says of a key that is too long for it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/registry.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/tuple_key.h"
#include "log/manifest/manifest.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"

namespace gannet::txn {
namespace long_keys_test {

constexpr size_t kLongest = index::kMaxKeyBytes;
// Lengths on both sides of every limit: keys in place, one byte of length, the first READ of a record.
constexpr std::array<size_t, 14> kLengths = {0, 1, 8, 63, 64, 65, 255, 256, 440, 511, 512, 513, 1023, kLongest};
constexpr size_t kMostPayload = 3000;

// Keys of one length differ only in their last byte.
std::string KeyOf(size_t length, char last) {
  std::string key(length, 'k');
  if (length > 0) key.back() = last;
  return key;
}
std::string PayloadOf(const std::string& key, size_t bytes, int change) {
  std::string payload(bytes, static_cast<char>('a' + (key.size() + static_cast<size_t>(change)) % 26));
  if (bytes > 0 && !key.empty()) payload.back() = key.back();
  return payload;
}
std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys = {""};
  for (const size_t length : kLengths) {
    for (const char last : {'1', '2', '3'}) {
      if (length > 0) keys.push_back(KeyOf(length, last));
    }
  }
  return keys;
}

TableOptions LongKeys(const std::string& name, size_t payload_bytes, bool variable, Placement placement,
                      IndexKind kind = IndexKind::kHash) {
  return {.name = name,
          .key_kind = index::KeyKind::kBytes,
          .max_key_bytes = kLongest,
          .index = kind,
          .payload_bytes = payload_bytes,
          .variable_length = variable,
          .expected_rows = 16,
          .placement = std::move(placement)};
}

using Rows = std::map<std::string, std::string>;

// Compares every key of AllKeys, and neighbours that are in no table, by single reads and by one of many.
void ExpectRows(BlockingTransaction& t, const Table& table, const Rows& rows) {
  std::vector<std::string> keys = AllKeys();
  for (const size_t length : kLengths) {
    if (length > 0) keys.push_back(KeyOf(length, 'x'));
  }
  std::vector<std::string> out(keys.size(), std::string(kMostPayload, '\0'));
  std::vector<GetRequest> requests;
  for (size_t i = 0; i < keys.size(); ++i) {
    std::string payload;
    const Status got = t.Get(table, Key(keys[i]), &payload);
    const auto row = rows.find(keys[i]);
    if (row == rows.end()) {
      EXPECT_TRUE(absl::IsNotFound(got)) << keys[i].size() << ": " << got;
    } else {
      EXPECT_TRUE(got.ok()) << keys[i].size() << ": " << got;
      EXPECT_EQ(payload, row->second) << keys[i].size();
    }
    requests.push_back({.table = &table, .key = Key(keys[i]), .out = std::as_writable_bytes(std::span(out[i]))});
    requests.back().up_to_end = true;
  }
  ASSERT_TRUE(t.GetMany(requests).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto row = rows.find(keys[i]);
    ASSERT_EQ(requests[i].status.ok(), row != rows.end()) << keys[i].size() << ": " << requests[i].status;
    if (row != rows.end()) {
      EXPECT_EQ(out[i].substr(0, requests[i].payload_bytes), row->second) << keys[i].size();
    }
  }
}

class LongKeysTest : public testing::TestWithParam<std::tuple<ReadPathPolicy, IndexKind>> {
 protected:
  LongKeysTest()
      : cluster({.nodes = 2, .read_path = std::get<ReadPathPolicy>(GetParam())},
                {LongKeys("fixed", 100, false, Placement::OnFirstNode(), kind()),
                 LongKeys("variable", kMostPayload, true, Placement::OnFirstNode(), kind())}) {}

  static IndexKind kind() { return std::get<IndexKind>(GetParam()); }

  void Commit(Session& session, const std::function<Status(BlockingTransaction&)>& body) {
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) { return body(t); });
    ASSERT_TRUE(status.ok()) << status;
  }

  Cluster cluster;
};

// The session is at the owner (0), or at another node (1): then READs or calls reach the records.
TEST_P(LongKeysTest, EveryOperationTakesThem) {
  for (const int node : {0, 1}) {
    Session& session = cluster.NewSession(node);
    Session& other = cluster.NewSession(1 - node);
    for (const char* const name : {"fixed", "variable"}) {
      const Table& table = cluster.table(node, name);
      const bool variable = table.options().variable_length;
      const auto size = [variable](const std::string& key, int change) {
        return variable ? (key.size() * 7 + static_cast<size_t>(change) * 1300) % (kMostPayload + 1) : 100;
      };
      Rows rows;
      for (const std::string& key : AllKeys()) rows[key] = PayloadOf(key, size(key, 0), 0);
      Commit(session, [&](BlockingTransaction& t) {
        for (const auto& [key, payload] : rows) GANNET_RETURN_IF_ERROR(t.Insert(table, Key(key), BytesOf(payload)));
        return absl::OkStatus();
      });
      const auto expect = [&] {
        for (Session* const each : {&session, &other}) {
          const Table& seen = cluster.table(each == &session ? node : 1 - node, name);
          Commit(*each, [&](BlockingTransaction& t) {
            ExpectRows(t, seen, rows);
            return absl::OkStatus();
          });
        }
      };
      expect();
      // Payloads that change their size move to other blocks.
      for (auto& [key, payload] : rows) payload = PayloadOf(key, size(key, 1), 1);
      Commit(session, [&](BlockingTransaction& t) {
        for (const auto& [key, payload] : rows) GANNET_RETURN_IF_ERROR(t.Update(table, Key(key), BytesOf(payload)));
        return absl::OkStatus();
      });
      expect();
      Rows removed;
      for (const std::string& key : AllKeys()) {
        if (key.empty() || key.back() == '2') removed.insert(rows.extract(key));
      }
      Commit(session, [&](BlockingTransaction& t) {
        for (const auto& [key, payload] : removed) GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
        return absl::OkStatus();
      });
      expect();
      Commit(session, [&](BlockingTransaction& t) {
        for (const auto& [key, payload] : removed) {
          GANNET_RETURN_IF_ERROR(t.Upsert(table, Key(key), BytesOf(payload)));
        }
        return absl::OkStatus();
      });
      rows.merge(removed);
      expect();
      Commit(session, [&](BlockingTransaction& t) {
        for (const auto& [key, payload] : rows) GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
        return absl::OkStatus();
      });
      rows.clear();
      expect();
      const Status sound = cluster.table(0, name).local_index().CheckStructure();
      EXPECT_TRUE(sound.ok()) << sound;
    }
  }
}

// More keys than one message takes, in a transaction's inserts, reads and removals.
TEST_P(LongKeysTest, ManyOfThemTakeSeveralMessages) {
  constexpr size_t kRows = 300;
  static_assert(kRows * kLongest > 2 * rdma::kMaxMessageBytes);
  Session& session = cluster.NewSession(1);
  const Table& table = cluster.table(1, "fixed");
  std::vector<std::string> keys;
  for (size_t i = 0; i < kRows; ++i) keys.push_back(std::to_string(i) + std::string(kLongest - 10, '.'));
  const auto each = [&](const std::function<Status(BlockingTransaction&, const std::string&)>& change) {
    Commit(session, [&](BlockingTransaction& t) {
      for (const std::string& key : keys) GANNET_RETURN_IF_ERROR(change(t, key));
      return absl::OkStatus();
    });
  };
  each([&](BlockingTransaction& t, const std::string& key) {
    return t.Insert(table, Key(key), BytesOf(PayloadOf(key, 100, 5)));
  });
  Commit(session, [&](BlockingTransaction& t) {
    std::vector<std::array<std::byte, 100>> out(kRows);
    std::vector<GetRequest> requests;
    for (size_t i = 0; i < kRows; ++i) requests.push_back({.table = &table, .key = Key(keys[i]), .out = out[i]});
    GANNET_RETURN_IF_ERROR(t.GetMany(requests));
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_TRUE(requests[i].status.ok()) << i << ": " << requests[i].status;
      EXPECT_TRUE(std::ranges::equal(out[i], BytesOf(PayloadOf(keys[i], 100, 5)))) << i;
    }
    return absl::OkStatus();
  });
  each([&](BlockingTransaction& t, const std::string& key) { return t.Remove(table, Key(key)); });
  Commit(session, [&](BlockingTransaction& t) {
    std::vector<GetRequest> requests;
    for (const std::string& key : keys) requests.push_back({.table = &table, .key = Key(key), .out = {}});
    GANNET_RETURN_IF_ERROR(t.GetMany(requests));
    for (const GetRequest& request : requests) EXPECT_TRUE(absl::IsNotFound(request.status)) << request.status;
    return absl::OkStatus();
  });
}

TEST_P(LongKeysTest, TuplesMayBeLong) {
  Session& session = cluster.NewSession(1);
  const Table& table = cluster.table(1, "variable");
  const std::string name(900, 'n');
  Commit(session, [&](BlockingTransaction& t) {
    for (int number = -2; number <= 2; ++number) {
      GANNET_RETURN_IF_ERROR(t.Insert(table, Key::Tuple(name, number), BytesOf(std::to_string(number))));
    }
    return absl::OkStatus();
  });
  Commit(session, [&](BlockingTransaction& t) {
    for (int number = -3; number <= 3; ++number) {
      std::string payload;
      const Status got = t.Get(table, Key::Tuple(name, number), &payload);
      EXPECT_EQ(got.ok(), std::abs(number) <= 2) << got;
      EXPECT_EQ(payload, got.ok() ? std::to_string(number) : "");
    }
    return absl::OkStatus();
  });
}

TEST_P(LongKeysTest, ErrorsNameTheTableAndTheLimit) {
  const Table& table = cluster.table(0, "fixed");
  const std::string key(kLongest + 1, 'x');
  Step step(cluster.NewSession(0));
  std::string payload;
  for (const Status& status :
       {step->Insert(table, Key(key), BytesOf(std::string(100, 'p'))), step->Get(table, Key(key), &payload)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("a key of 1025 bytes is too long for table 'fixed': at most 1024"),
              absl::string_view::npos)
        << status;
  }
  // A long key in a message is shortened.
  const Status missing = Step(cluster.NewSession(0))->Get(table, Key(std::string(700, 'y')), &payload);
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_NE(missing.message().find(std::string(64, 'y') + "\"... (700 bytes)"), absl::string_view::npos) << missing;
}

// Keys that share their first 1,000 bytes, and others around them; more rows than a message takes.
TEST_P(LongKeysTest, AreScannedInOrder) {
  if (kind() == IndexKind::kHash) GTEST_SKIP() << "has no order";
  constexpr size_t kRows = 700;
  Random random(1);
  Rows rows;
  while (rows.size() < kRows) {
    std::string key(random.OneIn(5) ? random.Below(kLongest - 30) : 1000, 's');
    key += std::to_string(random.Below(5000));
    if (random.OneIn(4)) key.append(random.Below(8), '\0');
    rows[key] = PayloadOf(key, random.Below(200), 1);
  }
  for (const int node : {0, 1}) {
    Session& session = cluster.NewSession(node);
    const Table& table = cluster.table(node, "variable");
    Commit(session, [&](BlockingTransaction& t) {
      for (const auto& [key, payload] : rows) GANNET_RETURN_IF_ERROR(t.Upsert(table, Key(key), BytesOf(payload)));
      return absl::OkStatus();
    });
    for (int round = 0; round < 40; ++round) {
      const auto any = [&] {
        std::string key = std::next(rows.begin(), static_cast<ptrdiff_t>(random.Below(rows.size())))->first;
        if (random.OneIn(3)) key.back() = static_cast<char>(random.Below(256));
        return key;
      };
      std::string from = round < 4 ? "" : any();
      std::string to = round < 4 ? std::string(kLongest, '\xff') : any();
      if (to < from) std::swap(from, to);
      index::ScanRange range{.from = Key(from), .to = Key(to), .reverse = round % 2 == 1};
      if (round % 4 >= 2) range.limit = 1 + random.Below(kRows);
      std::vector<std::pair<std::string, std::string>> expected(rows.lower_bound(from), rows.upper_bound(to));
      if (range.reverse) std::ranges::reverse(expected);
      if (expected.size() > range.limit) expected.resize(range.limit);
      Commit(session, [&](BlockingTransaction& t) -> Status {
        ScanRows found;
        GANNET_RETURN_IF_ERROR(t.Scan(table, range, &found));
        EXPECT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
          EXPECT_EQ(found.key(i).bytes(), expected[i].first) << i;
          EXPECT_TRUE(std::ranges::equal(found.payload(i), BytesOf(expected[i].second))) << i;
        }
        return absl::OkStatus();
      });
    }
    // The structure is checked before rows are removed: the owner then unlinks empty leaves at any time.
    const Status sound = cluster.table(0, "variable").local_index().CheckStructure();
    EXPECT_TRUE(sound.ok()) << sound;
    // The cursor reads rows that the transaction itself has added and removed, by a cursor.
    Commit(session, [&](BlockingTransaction& t) -> Status {
      std::vector<std::string> expected;
      for (const auto& [key, payload] : rows) {
        if (expected.size() % 3 == 2) GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
        expected.push_back(expected.size() % 3 == 2 ? key + "+" : key);
        if (expected.back() != key) GANNET_RETURN_IF_ERROR(t.Insert(table, Key(expected.back()), BytesOf(payload)));
      }
      std::ranges::sort(expected);
      std::vector<std::string> found;
      BlockingCursor cursor = t.OpenCursor(table);
      for (const Cursor& row : cursor) found.emplace_back(row.key().bytes());
      EXPECT_EQ(found, expected);
      for (const std::string& key : found) GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
      return cursor.status();
    });
    Commit(session, [&](BlockingTransaction& t) -> Status {
      ScanRows found;
      GANNET_RETURN_IF_ERROR(t.Scan(table, {.from = "", .to = Key(std::string_view(rows.rbegin()->first))}, &found));
      EXPECT_TRUE(found.empty());
      return absl::OkStatus();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, LongKeysTest,
                         testing::Combine(testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall),
                                          testing::Values(IndexKind::kHash, IndexKind::kXStore)),
                         [](const auto& test) {
                           return std::string(index::EntryOf(std::get<IndexKind>(test.param)).name) +
                                  (std::get<ReadPathPolicy>(test.param) == ReadPathPolicy::kCall ? "_calls" : "_reads");
                         });

TEST(LongKeyTablesTest, APositionInAMessageHasTheWordsOfTheTable) {
  for (const size_t words : {index::kFewPositionWords, index::kMostPositionWords}) {
    ScanRequest request{.table = 3, .range = {.from = "a", .to = "b", .reverse = true}};
    request.position.emplace().words.assign(words, 0);
    for (size_t i = 0; i < words; ++i) request.position->words[i] = i + 1;
    std::vector<std::byte> bytes(2000);
    rdma::WireWriter writer(bytes);
    Put(writer, request);
    EXPECT_EQ(writer.written().size(), size_t{2 + 1 + 6 + 6 + 8} + words * 8);
    rdma::WireReader reader(writer.written());
    ScanRequest got;
    ASSERT_TRUE(Get(reader, &got));
    EXPECT_TRUE(reader.Finish().ok());
    EXPECT_EQ(got.position, request.position);
    EXPECT_TRUE(got.range.reverse);
  }
}

TEST(LongKeyTablesTest, AKindThatTakesNoLongOnesSaysSo) {
  Cluster cluster({}, {});
  for (const auto& [kind, most] :
       {std::pair(IndexKind::kHash, kLongest), std::pair(IndexKind::kXStore, kLongest),
        std::pair(IndexKind::kBlink, size_t{64}), std::pair(IndexKind::kRolex, size_t{64}),
        std::pair(IndexKind::kDex, size_t{64}), std::pair(IndexKind::kDolphin, size_t{64})}) {
    EXPECT_EQ(index::EntryOf(kind).traits.max_key_bytes, most);
    TableOptions options = LongKeys("t" + std::to_string(static_cast<int>(kind)), 8, false, Placement::OnFirstNode());
    options.index = kind;
    options.max_key_bytes = most + 1;
    const Status status = cluster.databases[0]->CreateTable(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("table '" + options.name + "': max_key_bytes is " + std::to_string(most + 1) +
                                    ", from 1 to " + std::to_string(most) + " with an index of kind " +
                                    index::EntryOf(kind).name),
              absl::string_view::npos)
        << status;
    // Names the kinds that take such keys, if there are any.
    const bool names_them =
        status.message().find("; kinds that take such keys: hash (no order), xstore") != absl::string_view::npos;
    EXPECT_EQ(names_them, most < kLongest) << status;
    options.max_key_bytes = 0;
    const Status zero = cluster.databases[0]->CreateTable(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(zero)) << zero;
    EXPECT_EQ(zero.message().find("kinds that take"), absl::string_view::npos) << zero;
    options.max_key_bytes = most;
    EXPECT_TRUE(cluster.databases[0]->CreateTable(options).ok());
  }
}

coro::Task<StatusOr<size_t>> AskOwner(Session* session, rdma::MethodId method, std::span<const std::byte> request) {
  std::vector<std::byte> response(rdma::kMaxMessageBytes);
  co_return co_await session->channel().Call(0, method, request, response);
}

// What another node sends may have any length: the owner refuses what its table cannot have.
TEST(LongKeyTablesTest, RequestsWithLongerKeysAreRefused) {
  constexpr size_t kMost = 40;
  std::vector<TableOptions> tables;
  for (const IndexKind kind : index::KindsOfPoints()) {
    tables.push_back(LongKeys("t" + std::to_string(tables.size()), 8, false, Placement::OnFirstNode()));
    tables.back().max_key_bytes = kMost;
    tables.back().index = kind;
    tables.back().index_rights = IndexRights::kOwnerOnly;
  }
  Cluster cluster({.nodes = 2}, tables);
  Session& session = cluster.NewSession(1);
  for (const TableOptions& options : tables) {
    const Table& table = cluster.table(1, options.name);
    for (const size_t size : {kMost, kMost + 1, size_t{64}, size_t{65}, kLongest, kLongest + 1, size_t{5000}}) {
      const std::string bytes(size, 'x');
      std::vector<std::byte> request(rdma::kMaxMessageBytes);
      const auto refused = [&](rdma::MethodId method, const std::function<void(rdma::WireWriter&)>& put) {
        rdma::WireWriter writer(request);
        put(writer);
        const StatusOr<size_t> answer = session.worker().BlockOn(AskOwner(&session, method, writer.written()));
        return absl::IsInvalidArgument(answer.status());
      };
      const Caller caller{Caller::NameOf(OwnerBits(1, 9), 0), size};
      const bool too_long = size > kMost;
      EXPECT_EQ(refused(kTxnRead,
                        [&](rdma::WireWriter& writer) {
                          writer.PutU16(table.id());
                          index::PutKey(writer, Key(bytes));
                        }),
                too_long)
          << size;
      EXPECT_EQ(refused(kTxnReadMany,
                        [&](rdma::WireWriter& writer) {
                          writer.PutU16(1);
                          writer.PutU16(table.id());
                          index::PutKey(writer, Key(bytes));
                        }),
                too_long)
          << size;
      if (table.index_traits().ordered) {
        EXPECT_EQ(refused(kTxnScan,
                          [&](rdma::WireWriter& writer) {
                            Put(writer, ScanRequest{.table = table.id(), .range = {.from = "", .to = Key(bytes)}});
                          }),
                  too_long)
            << size;
      }
      if (!too_long) continue;
      EXPECT_TRUE(refused(kTxnPrepare, [&](rdma::WireWriter& writer) {
        Put(writer, caller);
        writer.PutU16(1);
        Put(writer, PrepareItem{table.id(), Key(bytes), std::as_bytes(std::span("12345678", 8))});
      })) << size;
      // Only shared leaves have these calls; index and table have one number.
      if (!index::EntryOf(options.index).traits.client_writes) continue;
      for (const rdma::MethodId method :
           {index::shared_leaf::kCallInsert, index::shared_leaf::kCallRemove, index::shared_leaf::kCallReplace}) {
        rdma::WireWriter writer(request);
        writer.PutU16(table.id());
        index::PutKey(writer, Key(bytes));
        writer.PutAddress({0, 640});
        if (method == index::shared_leaf::kCallReplace) writer.PutAddress({0, 1280});
        EXPECT_FALSE(session.worker().BlockOn(AskOwner(&session, method, writer.written())).ok()) << size;
      }
    }
  }
}

// A removal names a record that the caller has locked, and a key that is too long, for which the owner would look in
// its index.
TEST(LongKeyTablesTest, ARemovalWithALongerKeyIsRefused) {
  constexpr size_t kMost = 20;
  TableOptions options = LongKeys("t", 8, false, Placement::OnFirstNode());
  options.max_key_bytes = kMost;
  options.index = IndexKind::kXStore;
  Cluster cluster({.nodes = 2}, {options});
  Session& session = cluster.NewSession(1);
  const Table& table = cluster.table(1, "t");
  const auto insert = [&](BlockingTransaction& t) { return t.Insert(table, Key("key"), uint64_t{7}); };
  ASSERT_TRUE(RunBlockingBody(session, insert).ok());  // the node is known to the owner from here on
  index::LocalIndex& index = cluster.table(0, "t").local_index();
  const rdma::GlobalAddress record = index.Find(Key("key")).record;
  std::byte* const at = cluster.databases[0]->node().memory().data() + record.offset();
  const uint64_t state = LoadWord(at);
  const uint64_t owner_bits = OwnerBits(1, 9);
  uint64_t number = uint64_t{1} << 62;
  for (const size_t size : {kMost + 1, size_t{64}, size_t{65}, kLongest}) {
    StoreWord(at, Locked(state, owner_bits));
    const std::string bytes(size, 'x');
    std::vector<std::byte> request(2 * kLongest);
    rdma::WireWriter writer(request);
    Put(writer, Caller{Caller::NameOf(owner_bits, 99), ++number});
    writer.PutU16(1);
    Put(writer,
        FinishItem{
            .kind = FinishKind::kRemove, .table = table.id(), .key = Key(bytes), .record = record, .state = state});
    const Status status = session.worker().BlockOn(AskOwner(&session, kTxnFinish, writer.written())).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size << ": " << status;
    EXPECT_EQ(LoadWord(at), Locked(state, owner_bits));
    StoreWord(at, state);
  }
  const auto remove = [&](BlockingTransaction& t) { return t.Remove(table, Key("key")); };
  EXPECT_TRUE(RunBlockingBody(session, remove).ok());
}

// Rows come back from the log, from a checkpoint with the log after it, and from a load that only a checkpoint has.
TEST(LongKeyTablesTest, TheyAreRecovered) {
  for (const auto& [nodes, kind] : {std::pair(1, IndexKind::kHash), std::pair(2, IndexKind::kHash),
                                    std::pair(1, IndexKind::kXStore), std::pair(2, IndexKind::kXStore)}) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    const std::vector<TableOptions> tables = {LongKeys("fixed", 100, false, Placement::ByHash(), kind),
                                              LongKeys("variable", kMostPayload, true, Placement::ByHash(), kind)};
    std::vector<Rows> rows(tables.size());
    for (int run = 0; run < 4; ++run) {
      auto cluster = DurableCluster::Open(disk, tables, {.nodes = nodes});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database(nodes - 1);
      for (size_t i = 0; i < tables.size(); ++i) {
        const Table& table = *database.FindTable(tables[i].name);
        Status status = database.Run([&](BlockingTransaction& t) {
          ExpectRows(t, table, rows[i]);
          return absl::OkStatus();
        });
        EXPECT_TRUE(status.ok()) << status;
        Rows next;
        size_t n = 0;
        for (const std::string& key : AllKeys()) {
          if ((n++ + static_cast<size_t>(run)) % 3 == 0) continue;  // removed, or not there
          next[key] =
              PayloadOf(key, i == 0 ? 100 : (key.size() * 3 + static_cast<size_t>(run) * 900) % kMostPayload, run);
        }
        status = database.Run([&](BlockingTransaction& t) {
          for (const auto& [key, payload] : rows[i]) {
            if (!next.contains(key)) GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
          }
          for (const auto& [key, payload] : next) GANNET_RETURN_IF_ERROR(t.Upsert(table, Key(key), BytesOf(payload)));
          return absl::OkStatus();
        });
        ASSERT_TRUE(status.ok()) << status;
        rows[i] = std::move(next);
      }
      if (run == 2) {
        for (int node = 0; node < nodes; ++node) ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
      }
      ASSERT_TRUE((*cluster)->Close().ok());
    }
  }
}

// The rows are loaded in bulk, read by another node, and again after the directory was closed.
TEST(LongKeyTablesTest, TheyAreLoadedInBulk) {
  constexpr size_t kRows = 3000;
  for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore}) {
    const TableOptions options = LongKeys("rows", 30, true, Placement::OnFirstNode(), kind);
    std::vector<std::string> keys;
    for (size_t i = 0; i < kRows; ++i) {
      keys.push_back(std::string(i % 11 == 0 ? i % 900 : 1000, 'b') + std::to_string(10'000 + i));
    }
    std::ranges::sort(keys);
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    for (const bool loads : {true, false}) {
      auto cluster = DurableCluster::Open(disk, {options}, {.nodes = 2});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      if (loads) {
        auto session = (*cluster)->database(0).OpenSession().value();
        BulkLoader loader(session.get(), &(*cluster)->table("rows", 0));
        for (const std::string& key : keys) ASSERT_TRUE(loader.Add(Key(key), BytesOf(key.substr(key.size() - 5))).ok());
        const Status loaded = loader.Finish();
        ASSERT_TRUE(loaded.ok()) << loaded;
        ASSERT_TRUE((*cluster)->database(0).Checkpoint().ok());
      }
      for (const int node : {0, 1}) {
        const Table& table = (*cluster)->table("rows", node);
        const Status read = (*cluster)->database(node).Run([&](BlockingTransaction& t) -> Status {
          for (size_t i = 0; i < kRows; i += 97) {
            std::string payload;
            GANNET_RETURN_IF_ERROR(t.Get(table, Key(keys[i]), &payload));
            EXPECT_EQ(payload, keys[i].substr(keys[i].size() - 5));
          }
          if (kind == IndexKind::kHash) return absl::OkStatus();
          ScanRows rows;
          const std::string greatest(kLongest, '\xff');
          GANNET_RETURN_IF_ERROR(t.Scan(table, {.from = "", .to = Key(greatest)}, &rows, {.keys_only = true}));
          EXPECT_EQ(rows.size(), kRows);
          for (size_t i = 0; i < std::min(rows.size(), kRows); ++i) EXPECT_EQ(rows.key(i).bytes(), keys[i]) << i;
          return absl::OkStatus();
        });
        EXPECT_TRUE(read.ok()) << read;
      }
      const Status sound = (*cluster)->table("rows").local_index().CheckStructure();
      EXPECT_TRUE(sound.ok()) << sound;
      ASSERT_TRUE((*cluster)->Close().ok());
    }
  }
}

// The power goes while rows are in the log, or in a checkpoint and in the log after it. Ordered rows come back in
// order.
TEST(LongKeyTablesTest, OrderedRowsAreThereAfterACrash) {
  const TableOptions options = LongKeys("rows", 40, true, Placement::OnFirstNode(), IndexKind::kXStore);
  for (const bool with_checkpoint : {false, true}) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    Rows rows;
    {
      auto cluster = DurableCluster::Open(disk, {options});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database();
      const Table& table = (*cluster)->table("rows");
      Random random(7);
      for (int round = 0; round < 12; ++round) {
        const Status status = database.Run([&](BlockingTransaction& t) -> Status {
          for (int i = 0; i < 50; ++i) {
            std::string key(random.OneIn(4) ? random.Below(900) : 1000, 'p');
            key += std::to_string(random.Below(2000));
            if (rows.contains(key) && random.OneIn(2)) {
              GANNET_RETURN_IF_ERROR(t.Remove(table, Key(key)));
              rows.erase(key);
              continue;
            }
            rows[key] = std::to_string(round);
            GANNET_RETURN_IF_ERROR(t.Upsert(table, Key(key), BytesOf(rows[key])));
          }
          return absl::OkStatus();
        });
        ASSERT_TRUE(status.ok()) << status;
        if (with_checkpoint && round == 6) {
          ASSERT_TRUE(database.Checkpoint().ok());
        }
      }
      disk->PowerOff();
    }
    disk->PowerOn();
    auto cluster = DurableCluster::Open(disk, {options});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const Table& table = (*cluster)->table("rows");
    Rows found;
    std::vector<std::string> order;
    const Status read = (*cluster)->database().Run([&](BlockingTransaction& t) -> Status {
      found.clear(), order.clear();
      ScanRows scanned;
      const std::string greatest(kLongest, '\xff');
      GANNET_RETURN_IF_ERROR(t.Scan(table, {.from = "", .to = Key(greatest)}, &scanned));
      for (size_t i = 0; i < scanned.size(); ++i) {
        const auto payload = scanned.payload(i);
        order.emplace_back(scanned.key(i).bytes());
        found[order.back()] = std::string(reinterpret_cast<const char*>(payload.data()), payload.size());
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_TRUE(found == rows) << found.size() << " rows, not " << rows.size();
    EXPECT_TRUE(std::ranges::is_sorted(order));
    const Status sound = table.local_index().CheckStructure();
    EXPECT_TRUE(sound.ok()) << sound;
  }
}

// A program that does not know long keys in the log must refuse the directory; one without them stays as it was.
TEST(LongKeyTablesTest, TheManifestSaysThatThereAreSome) {
  for (const size_t most : {size_t{64}, size_t{65}}) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    TableOptions table = LongKeys("t", 8, false, Placement::OnFirstNode());
    table.max_key_bytes = most;
    auto cluster = DurableCluster::Open(disk, {table});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ASSERT_TRUE((*cluster)->Close().ok());
    const auto manifest = log::ReadManifest(*disk, "/data");
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->version, most == 64 ? log::kManifestVersion : log::kChangedTablesManifestVersion);
  }
}

}  // namespace long_keys_test
}  // namespace gannet::txn
