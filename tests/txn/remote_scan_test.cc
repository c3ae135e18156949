// Scans of another node's rows, by READs and by calls: their results, and the number of verbs.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "txn/access/neighbour_reads.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace remote_scan_test {

constexpr uint64_t kRows = 3000;  // more than one answer has
constexpr size_t kMostBlob = 60'000;

std::string BlobOf(uint64_t i) {
  return std::string(1 + i * 4999 % kMostBlob, static_cast<char>('a' + i % 26));
}
std::string NameOf(uint64_t i) {
  std::string name = std::to_string(i);
  return std::string(4 - name.size(), '0') + name + std::string(i % 50, '!');
}

class RemoteScanTest : public testing::TestWithParam<ReadPathPolicy> {
 protected:
  RemoteScanTest()
      : cluster(
            {.nodes = 2, .read_path = GetParam()},
            {{.name = "rows", .index = IndexKind::kXStore, .payload_bytes = sizeof(Account), .expected_rows = kRows},
             {.name = "blobs",
              .key_kind = index::KeyKind::kBytes,
              .max_key_bytes = index::kShortKeyBytes,
              .index = IndexKind::kXStore,
              .payload_bytes = kMostBlob,
              .variable_length = true,
              .expected_rows = 100}}),
        session(cluster.NewSession(1)),
        rows(cluster.table(1, "rows")),
        blobs(cluster.table(1, "blobs")) {}

  void InsertRows(uint64_t first, uint64_t end) {
    for (uint64_t at = first; at < end; at += 100) {
      const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t i = at; i < std::min(end, at + 100); ++i) {
          Status status = t.Insert(rows, 2 * i, Account{.balance = static_cast<int64_t>(i)});
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(inserted.ok()) << inserted;
    }
  }

  // The keys that a scan finds; checks its rows.
  std::vector<uint64_t> Keys(BlockingTransaction& t, const index::ScanRange& range, ScanOptions options = {}) {
    ScanRows found;
    const Status scanned = t.Scan(rows, range, &found, options);
    EXPECT_TRUE(scanned.ok()) << scanned;
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < found.size(); ++i) {
      keys.push_back(found.key(i).integer());
      if (options.keys_only) continue;
      EXPECT_EQ(found.As<Account>(i).balance, static_cast<int64_t>(keys.back() / 2));
    }
    return keys;
  }

  Cluster cluster;
  Session& session;
  const Table& rows;
  const Table& blobs;
};

std::vector<uint64_t> EvenNumbers(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = first; i <= last; i += 2) numbers.push_back(i);
  return numbers;
}

TEST_P(RemoteScanTest, FindsAllInEitherDirectionUpToItsLimit) {
  InsertRows(0, kRows);
  Step t(session);
  const std::vector<uint64_t> all = EvenNumbers(0, 2 * kRows - 2);
  EXPECT_EQ(Keys(*t.operator->(), {.from = 0, .to = UINT64_MAX}), all);
  std::vector<uint64_t> reversed(all.rbegin(), all.rend());
  EXPECT_EQ(Keys(*t.operator->(), {.from = 0, .to = UINT64_MAX, .reverse = true}), reversed);
  reversed.resize(kRows - 7);
  EXPECT_EQ(Keys(*t.operator->(), {.from = 0, .to = UINT64_MAX, .reverse = true, .limit = kRows - 7}), reversed);
  EXPECT_EQ(Keys(*t.operator->(), {.from = 101, .to = 199, .limit = 10}), EvenNumbers(102, 120));
  EXPECT_EQ(Keys(*t.operator->(), {.from = 100, .to = 200}, {.keys_only = true}), EvenNumbers(100, 200));
  EXPECT_TRUE(Keys(*t.operator->(), {.from = 101, .to = 101}).empty());
  EXPECT_TRUE(t.Commit().ok());
}

TEST_P(RemoteScanTest, LongRowsWithKeysOfBytes) {
  constexpr uint64_t kBlobs = 40;
  const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    for (uint64_t i = 0; i < kBlobs; ++i) {
      const std::string key = NameOf(i);
      const std::string blob = BlobOf(i);
      Status status = t.Insert(blobs, Key(key), std::as_bytes(std::span(blob)));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(inserted.ok()) << inserted;
  for (const bool reverse : {false, true}) {
    Step t(session);
    ScanRows found;
    const Status scanned = t->Scan(blobs, {.from = Key(""), .to = Key("~"), .reverse = reverse}, &found);
    ASSERT_TRUE(scanned.ok()) << scanned;
    ASSERT_EQ(found.size(), kBlobs);
    for (uint64_t i = 0; i < kBlobs; ++i) {
      const uint64_t n = reverse ? kBlobs - 1 - i : i;
      EXPECT_EQ(found.key(i).bytes(), NameOf(n));
      const std::span<const std::byte> payload = found.payload(i);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(payload.data()), payload.size()), BlobOf(n));
    }
    EXPECT_TRUE(t.Commit().ok());
  }
}

TEST_P(RemoteScanTest, SeesWhatItsTransactionHasChanged) {
  InsertRows(0, 20);
  Step t(session);
  ASSERT_TRUE(t->Insert(rows, 5, Account{.balance = 2}).ok());
  ASSERT_TRUE(t->Remove(rows, 10).ok());
  ScanRows found;
  ASSERT_TRUE(t->Scan(rows, {.from = 0, .to = 20}, &found, {.for_update = true}).ok());
  const std::vector<uint64_t> expected = {0, 2, 4, 5, 6, 8, 12, 14, 16, 18, 20};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found.key(i).integer(), expected[i]);
    ASSERT_TRUE(t.transaction().Update(found.handle(i), Account{.balance = 1000}).ok());
  }
  ASSERT_TRUE(t.Commit().ok());
  Account account;
  ASSERT_TRUE(RunBlockingBody(session, [&](BlockingTransaction& u) { return u.Get(rows, 12, &account); }).ok());
  EXPECT_EQ(account.balance, 1000);
  EXPECT_TRUE(
      absl::IsNotFound(RunBlockingBody(session, [&](BlockingTransaction& u) { return u.Get(rows, 10, &account); })));
}

TEST_P(RemoteScanTest, IsNoLongerTrueAfterAnInsertOrAnUpdate) {
  InsertRows(0, 20);
  Session& other = cluster.NewSession(0);
  const Table& here = cluster.table(0, "rows");
  {
    Step t(session);
    EXPECT_EQ(Keys(*t.operator->(), {.from = 0, .to = 20}).size(), 11u);
    ASSERT_TRUE(t->Insert(rows, 1001, Account{}).ok());
    ASSERT_TRUE(
        RunBlockingBody(other, [&](BlockingTransaction& u) { return u.Insert(here, 7, Account{.balance = 3}); }).ok());
    EXPECT_TRUE(absl::IsAborted(t.Commit()));
  }
  Step t(session);
  EXPECT_EQ(Keys(*t.operator->(), {.from = 0, .to = 20}).size(), 12u);
  ASSERT_TRUE(t->Insert(rows, 1001, Account{}).ok());
  ASSERT_TRUE(RunBlockingBody(other, [&](BlockingTransaction& u) -> Status {
                Account account;
                const StatusOr<RecordHandle> handle = u.GetForUpdate(here, 16, &account);
                return handle.ok() ? u.Update(*handle, account) : handle.status();
              }).ok());
  EXPECT_TRUE(absl::IsAborted(t.Commit()));
}

// Rows that were inserted together lie side by side. Here each has four lines, so that the words that a validation
// reads are too far apart for one READ.
TEST_P(RemoteScanTest, TakesOneCallOrFewReads) {
  InsertRows(0, kRows);
  const index::ScanRange range{.from = 200, .to = 218};
  for (int i = 0; i < 100; ++i) {  // until a client has the model
    Step t(session);
    EXPECT_EQ(Keys(*t.operator->(), range).size(), 10u);
    SleepForNanos(1'000'000);
  }
  Step t(session);
  const rdma::VerbCounters before = session.channel().counters();
  EXPECT_EQ(Keys(*t.operator->(), range), EvenNumbers(200, 218));
  const rdma::VerbCounters scanned = session.channel().counters() - before;
  ASSERT_TRUE(t.Commit().ok());
  const rdma::VerbCounters committed = session.channel().counters() - before - scanned;
  if (GetParam() == ReadPathPolicy::kCall) {
    EXPECT_EQ(scanned.calls, 1u);
    EXPECT_EQ(scanned.reads, 0u);
    EXPECT_EQ(scanned.round_trips, 1u);
    EXPECT_EQ(committed.round_trips, 0u);  // the owner has looked at all words once more
  } else if (GetParam() == ReadPathPolicy::kOneSided && session.channel().capabilities().line_consistent) {
    EXPECT_LT(scanned.reads, 10u);
  }
  EXPECT_EQ(committed.calls, 0u);
  EXPECT_LE(committed.round_trips, 1u);
}

INSTANTIATE_TEST_SUITE_P(Paths, RemoteScanTest,
                         testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall, ReadPathPolicy::kAdaptive),
                         [](const auto& path) {
                           return path.param == ReadPathPolicy::kCall       ? "ByCall"
                                  : path.param == ReadPathPolicy::kOneSided ? "ByReads"
                                                                            : "Adaptive";
                         });

TableOptions OrderedBlobs() {
  return {.name = "blobs",
          .index = IndexKind::kXStore,
          .payload_bytes = kMostBlob,
          .variable_length = true,
          .expected_rows = 100};
}

// The row after which the second answer begins is removed between the two answers.
class ScanInTwoAnswersTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t kBlobs = 9;  // a message has room for the first two from either end, or for five others
  static std::string Blob(uint64_t i) { return std::string(i < 2 || i >= kBlobs - 2 ? kMostBlob : kMostBlob / 3, 'b'); }

  ScanInTwoAnswersTest()
      : lossy_(shm_.get(), &plan_),
        cluster_(&lossy_, {.read_path = ReadPathPolicy::kCall}, {OrderedBlobs()}),
        client_(cluster_.NewSession(1)),
        owner_(cluster_.NewSession(0)) {
    for (uint64_t i = 0; i < kBlobs; ++i) {
      const std::string blob = Blob(i);
      const Status inserted = RunBlockingBody(owner_, [&](BlockingTransaction& t) {
        return t.Insert(cluster_.table(0, "blobs"), i, std::as_bytes(std::span(blob)));
      });
      EXPECT_TRUE(inserted.ok()) << inserted;
    }
  }

  LossPlan plan_;
  std::unique_ptr<rdma::ShmFabric> shm_ =
      rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{256} << 20}).value();
  LossyFabric lossy_;
  Cluster cluster_;
  Session& client_;
  Session& owner_;
};

TEST_P(ScanInTwoAnswersTest, DoesNotNeedTheRowAtWhichTheSecondBegins) {
  const bool reverse = GetParam();
  for (const size_t limit : {size_t{5}, size_t{SIZE_MAX}}) {
    const auto key_of = [&](uint64_t i) { return reverse ? kBlobs - 1 - i : i; };
    Step t(client_);
    plan_ = {.channel = &client_.channel(), .skip = 1, .loss = Loss::kNothing, .when_fired = [&] {
               for (const uint64_t i : {0, 1, 2}) {
                 const Status removed = RunBlockingBody(
                     owner_, [&](BlockingTransaction& u) { return u.Remove(cluster_.table(0, "blobs"), key_of(i)); });
                 EXPECT_TRUE(removed.ok()) << removed;
               }
             }};
    ScanRows found;
    const index::ScanRange range{.from = 0, .to = UINT64_MAX, .reverse = reverse, .limit = limit};
    const Status scanned = t->Scan(cluster_.table(1, "blobs"), range, &found);
    EXPECT_TRUE(plan_.fired);
    plan_ = {};
    EXPECT_TRUE(scanned.ok()) << scanned;
    EXPECT_LE(found.size(), limit);
    for (size_t i = 1; i < found.size(); ++i) {
      EXPECT_TRUE(reverse ? found.key(i) < found.key(i - 1) : found.key(i - 1) < found.key(i));
    }
    EXPECT_TRUE(absl::IsAborted(t.Commit())) << "the rows of the first answer were removed";

    const Status put_back = RunBlockingBody(owner_, [&](BlockingTransaction& u) -> Status {
      for (const uint64_t i : {0, 1, 2}) {
        const std::string blob = Blob(key_of(i));
        Status inserted = u.Insert(cluster_.table(0, "blobs"), key_of(i), std::as_bytes(std::span(blob)));
        if (!inserted.ok()) return inserted;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(put_back.ok()) << put_back;
    Step u(client_);
    ASSERT_TRUE(u->Scan(cluster_.table(1, "blobs"), range, &found).ok());
    ASSERT_EQ(found.size(), std::min<size_t>(limit, kBlobs));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found.key(i).integer(), key_of(i));
    EXPECT_TRUE(u.Commit().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Directions, ScanInTwoAnswersTest, testing::Bool(),
                         [](const auto& reverse) { return reverse.param ? "Down" : "Up"; });

// Emptied leaves stay until no reader can have them. Their witnesses alone exceed a message.
TEST(ScanOverADesertTest, TakesAsManyAnswersAsItNeeds) {
  constexpr uint64_t kKeys = 160'000;
  constexpr uint64_t kBatch = 200;
  Cluster cluster({.nodes = 2, .read_path = ReadPathPolicy::kCall},
                  {{.name = "queue", .index = IndexKind::kXStore, .payload_bytes = 8, .expected_rows = kKeys}});
  Session& owner = cluster.NewSession(0);
  Session& client = cluster.NewSession(1);
  const Table& here = cluster.table(0, "queue");
  const Table& there = cluster.table(1, "queue");
  BulkLoader loader(&owner, &here);
  for (uint64_t key = 1; key <= kKeys; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
  ASSERT_TRUE(loader.Finish().ok());

  Step looker(cluster.NewSession(0));
  uint64_t value = 0;
  ASSERT_TRUE(looker->Get(here, uint64_t{1}, &value).ok());
  for (uint64_t at = 2; at < kKeys; at += kBatch) {
    const Status removed = RunBlockingBody(owner, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = at; key < std::min(kKeys, at + kBatch); ++key) {
        Status status = t.Remove(here, key);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(removed.ok()) << removed;
  }
  for (const bool reverse : {false, true}) {
    for (const size_t limit : {size_t{1}, size_t{2}, size_t{SIZE_MAX}}) {
      Step t(client);
      ScanRows found;
      const Status scanned = t->Scan(there, {.from = 0, .to = UINT64_MAX, .reverse = reverse, .limit = limit}, &found);
      ASSERT_TRUE(scanned.ok()) << scanned;
      ASSERT_EQ(found.size(), std::min<size_t>(limit, 2));
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found.key(i).integer(), (i == 0) == reverse ? kKeys : uint64_t{1});
        EXPECT_EQ(found.As<uint64_t>(i), found.key(i).integer());
      }
      EXPECT_TRUE(t.Commit().ok());
    }
  }
  // The empty leaves belong to the read range.
  Step t(client);
  ScanRows found;
  ASSERT_TRUE(t->Scan(there, {.from = 0, .to = UINT64_MAX}, &found).ok());
  ASSERT_TRUE(
      RunBlockingBody(owner, [&](BlockingTransaction& u) { return u.Insert(here, kKeys / 2, uint64_t{3}); }).ok());
  EXPECT_TRUE(absl::IsAborted(t.Commit()));
}

// A first READ brings more bytes than a short record has. At the end of the heap there are no more.
TEST(HeapEndTest, ShortRecordsAreReadUpToTheLastLine) {
  constexpr uint64_t kBytesPerNode = 8 << 20;
  for (const auto read_path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    const rdma::TestFabric made = rdma::MakeShmTestFabric({.num_nodes = 2, .bytes_per_node = kBytesPerNode});
    Cluster cluster(
        made.fabric.get(), {.read_path = read_path},
        {{.name = "short", .index = IndexKind::kXStore, .payload_bytes = kMaxPayloadBytes, .variable_length = true}});
    Session& owner = cluster.NewSession(0);
    const Table& here = cluster.table(0, "short");
    // The number of rows grows one by one near the end, so that the last block is used, too.
    uint64_t rows = 0;
    for (uint64_t step = 100; step > 0; step = step == 1 ? 0 : 1) {
      Status status;
      while (status.ok()) {
        status = RunBlockingBody(owner, [&](BlockingTransaction& t) -> Status {
          for (uint64_t i = rows; i < rows + step; ++i) {
            if (Status s = t.Insert(here, i, std::as_bytes(std::span(&i, 1))); !s.ok()) return s;
          }
          return absl::OkStatus();
        });
        if (status.ok()) rows += step;
      }
      ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    }
    Session& client = cluster.NewSession(1);
    const Table& table = cluster.table(1, "short");
    for (uint64_t first = 0; first < rows; first += 1000) {
      const uint64_t end = std::min(rows, first + 1000);
      const Status status = RunBlockingBody(client, [&](BlockingTransaction& t) -> Status {
        std::vector<uint64_t> values(end - first);
        std::vector<GetRequest> requests;
        for (uint64_t i = first; i < end; ++i) requests.push_back(GetRequest::Of(table, i, &values[i - first]));
        if (Status s = t.GetMany(requests); !s.ok()) return s;
        for (uint64_t i = first; i < end; ++i) {
          if (!requests[i - first].status.ok()) return requests[i - first].status;
          EXPECT_EQ(values[i - first], i);
        }
        ScanRows found;
        if (Status s = t.Scan(table, {.from = first, .to = end - 1}, &found); !s.ok()) return s;
        EXPECT_EQ(found.size(), end - first);
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status << " among rows " << first << " to " << end << " of " << rows;
    }
  }
}

std::vector<rdma::Operation> Plan(NeighbourReads* reads, bool merge, Arena* arena) {
  std::vector<rdma::Operation> operations;
  reads->AppendTo(&operations, merge, arena);
  return operations;
}

TEST(NeighbourReadsTest, JoinsWhatIsClose) {
  Arena arena;
  NeighbourReads reads;
  const auto at = [](rdma::NodeId node, uint64_t offset) { return rdma::GlobalAddress(node, offset); };
  reads.Add(at(0, 4096), 64);
  reads.Add(at(1, 4096), 64);                                     // of another node
  reads.Add(at(0, 4096 - 64 - NeighbourReads::kMostGap), 64);     // the largest gap before it
  reads.Add(at(0, 4096 + 64 + NeighbourReads::kMostGap + 8), 8);  // too far
  reads.Add(at(0, 4096), 8);                                      // a part of another piece
  const std::vector<rdma::Operation> operations = Plan(&reads, true, &arena);
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].remote, at(0, 4096 - 64 - NeighbourReads::kMostGap));
  EXPECT_EQ(operations[0].size, 128 + NeighbourReads::kMostGap);
  EXPECT_EQ(reads.image(0), static_cast<std::byte*>(operations[0].local) + 64 + NeighbourReads::kMostGap);
  EXPECT_EQ(reads.image(4), reads.image(0));
  EXPECT_EQ(reads.image(3), operations[1].local);
  EXPECT_EQ(reads.image(1), operations[2].local);
  EXPECT_EQ(Plan(&reads, false, &arena).size(), 5u);
}

TEST(NeighbourReadsTest, MakesNoReadTooLargeButOfOnePiece) {
  Arena arena;
  NeighbourReads reads;
  constexpr uint64_t kPieces = 3 * NeighbourReads::kMostBytes / 64;
  for (uint64_t i = 0; i < kPieces; ++i) reads.Add(rdma::GlobalAddress(0, 64 * i), 64);
  reads.Add(rdma::GlobalAddress(1, 0), 2 * NeighbourReads::kMostBytes);
  const std::vector<rdma::Operation> operations = Plan(&reads, true, &arena);
  ASSERT_EQ(operations.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(operations[i].size, NeighbourReads::kMostBytes);
  EXPECT_EQ(operations[3].size, 2 * NeighbourReads::kMostBytes);
}

}  // namespace remote_scan_test
}  // namespace gannet::txn
