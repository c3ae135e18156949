// Tables are widened while transactions run, on one node and on several, without a change of what their rows had. What
// all changes of tables have in common is in schema_change_test.cc.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "rdma/slab.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/schema_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace widen_table_test {

using ::testing::HasSubstr;

// The payload of row n as it was written when the table had `bytes`.
std::vector<std::byte> PayloadOf(uint64_t n, size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(1 + (n + i) % 255);
  return payload;
}

// Writes these rows in one transaction.
Status PutRows(Session& session, const Table& table, const std::vector<uint64_t>& rows, size_t bytes) {
  return session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
    for (const uint64_t n : rows) {
      const std::vector<std::byte> payload = PayloadOf(n, bytes);
      const index::OwnedKey key = KeyOf(table.options(), n);
      const Status put = co_await t.Upsert(table, key.view(), std::span<const std::byte>(payload));
      GANNET_CO_RETURN_IF_ERROR(put);
    }
    co_return absl::OkStatus();
  });
}

// Rows [0, rows) were written when the table had written[n % size] bytes.
void ExpectWideRows(Session& session, const Table& table, uint64_t rows, const std::vector<size_t>& written) {
  const Status read = session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
    for (uint64_t n = 0; n < rows; ++n) {
      std::vector<std::byte> expected = PayloadOf(n, written[n % written.size()]);
      expected.resize(table.payload_bytes());
      std::vector<std::byte> payload(table.payload_bytes());
      const index::OwnedKey key = KeyOf(table.options(), n);
      const Status got = co_await t.Get(table, key.view(), std::span<std::byte>(payload));
      if (!got.ok()) co_return got;
      EXPECT_EQ(payload, expected) << table.name() << ", row " << n;
    }
    co_return absl::OkStatus();
  });
  ASSERT_TRUE(read.ok()) << table.name() << ": " << read;
}

TableOptions Words() {
  TableOptions words = SpreadOrdered("words");
  words.variable_length = true;
  return words;
}

Status PutWord(Database& database, uint64_t key, size_t bytes) {
  const std::vector<std::byte> word(bytes, std::byte{1});
  return database.Run([&](BlockingTransaction& t) {
    return t.Upsert(*database.FindTable("words"), key, std::span<const std::byte>(word));
  });
}

class WidenTableTest : public NodesTest {};
INSTANTIATE_TEST_SUITE_P(, WidenTableTest, testing::Values(1, kNodes), NameOfNodes);

// Rows of every node, written and read by sessions of every node, which know the places of the rows from before.
TEST_P(WidenTableTest, RowsGetZerosAtTheirEnd) {
  const uint64_t rows = nodes() == 1 ? 240 : 90;
  const std::vector<TableOptions> kinds = SpreadKinds(24, /*variable_length=*/false);
  for (const Way& way : WaysOf(nodes())) {
    const Disk disk = NewDisk();
    {
      const auto cluster = OpenNodes(disk, nodes(), kinds, way.Options());
      std::vector<std::unique_ptr<Session>> sessions = OpenSessions(*cluster);
      const auto expect = [&](const TableOptions& options, const std::vector<size_t>& written) {
        for (int node = 0; node < nodes(); ++node) {
          ExpectWideRows(*sessions[static_cast<size_t>(node)], cluster->table(options.name, node), rows, written);
        }
      };
      // The rows first, first + step, ...: some by each node.
      const auto put = [&](const TableOptions& options, uint64_t first, uint64_t step, size_t bytes) -> Status {
        const auto number = static_cast<uint64_t>(nodes());
        std::vector<std::vector<uint64_t>> of_nodes(number);
        for (uint64_t n = first; n < rows; n += step) of_nodes[(n + n / number) % number].push_back(n);
        for (size_t node = 0; node < number; ++node) {
          const Table& table = cluster->table(options.name, static_cast<int>(node));
          GANNET_RETURN_IF_ERROR(PutRows(*sessions[node], table, of_nodes[node], bytes));
        }
        return absl::OkStatus();
      };
      for (const TableOptions& options : kinds) {
        SCOPED_TRACE(testing::Message() << options.name << ", " << way);
        ASSERT_TRUE(put(options, 0, 1, 24).ok());
        expect(options, {24});
        const Status widened = Widen(cluster->nodes(), options.name, 1000);
        ASSERT_TRUE(widened.ok()) << widened;
        EXPECT_EQ(SizeOnAll(*cluster, options.name), 1000u);
        expect(options, {24});
        ASSERT_TRUE(put(options, 1, 3, 1000).ok());
        EXPECT_TRUE(absl::IsInvalidArgument(put(options, 1, rows, 24)));
        expect(options, {24, 1000, 24});
        ASSERT_TRUE(Widen(cluster->nodes(), options.name, 1001).ok());
        ASSERT_TRUE(put(options, 2, 3, 1001).ok());
        expect(options, {24, 1000, 1001});
        EXPECT_EQ(KeysOnAll(*cluster, options.name), rows);
        for (int node = 0; node < nodes(); ++node) {
          EXPECT_TRUE(cluster->table(options.name, node).local_index().CheckStructure().ok());
        }
        // With several nodes, an owner learns later of rows that others have inserted by verbs.
        for (const TableStatistics& one : cluster->database().table_statistics()) {
          if (nodes() > 1 || one.table != options.name) continue;
          EXPECT_GE(one.record_bytes, rows * 1000);
          EXPECT_LE(one.record_bytes, rows * (options.max_key_bytes + 1400));
        }
        if (options.name == kinds[kinds.size() / 2].name) {
          ASSERT_TRUE(CheckpointOf(cluster->nodes()).ok());
        }
      }
    }
    // Short rows of the logs and of checkpoints, and long ones.
    const auto cluster = OpenAfterCrash(disk, nodes());
    for (const TableOptions& options : kinds) {
      EXPECT_EQ(SizeOnAll(*cluster, options.name), 1001u);
      for (const bool again : {false, true}) {
        if (again) {
          ASSERT_TRUE(Widen(cluster->nodes(), options.name, 1002).ok());
        }
        for (int node = 0; node < nodes(); ++node) {
          const std::unique_ptr<Session> session = *cluster->database(node).OpenSession();
          ExpectWideRows(*session, cluster->table(options.name, node), rows, {24, 1000, 1001});
        }
      }
    }
  }
}

TEST_P(WidenTableTest, ATableOfVariableLengthHasAnotherMaximum) {
  constexpr size_t kLong = 5000;
  const Disk disk = NewDisk();
  const auto expect_words = [](DurableCluster& cluster) {
    for (uint64_t key = 0; key < kRows; ++key) {
      const int node = static_cast<int>((key + 1) % cluster.nodes().size());
      std::string word;
      const Status got = cluster.database(node).Run(
          [&](BlockingTransaction& t) { return t.Get(cluster.table("words", node), key, &word); });
      EXPECT_TRUE(got.ok()) << got;
      EXPECT_EQ(word, std::string(kLong, '\1'));
    }
    EXPECT_EQ(Get(cluster, "words", 100).value(), 7u);
  };
  {
    const auto cluster = OpenNodes(disk, nodes(), {Words()});
    ASSERT_TRUE(Put(*cluster, "words", 100, 7).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(PutWord(cluster->database(), 2, kLong)));
    ASSERT_TRUE(Widen(cluster->nodes(), "words", kLong).ok());
    ASSERT_TRUE(Widen(cluster->nodes(), "words", kLong).ok()) << "once more";
    for (uint64_t key = 0; key < kRows; ++key) {
      ASSERT_TRUE(PutWord(cluster->database(static_cast<int>(key) % nodes()), key, kLong).ok());
    }
    expect_words(*cluster);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Open(disk->CrashedCopy(1), {Words()}, nodes()).status()))
      << "it is not as it was created";
  expect_words(*OpenAfterCrash(disk, nodes(), 2));
}

// Several calls widen one table at the same time: it gets the largest size of those that are not refused.
TEST_P(WidenTableTest, SeveralSizesAtTheSameTime) {
  for (const bool variable : {false, true}) {
    TableOptions a = Spread("a");
    a.variable_length = variable;
    const auto cluster = OpenNodes(NewDisk(), nodes(), {a});
    PutRows(*cluster, "a", 100);
    std::atomic<size_t> largest{0};
    {
      std::vector<std::jthread> threads;
      for (const size_t bytes : {size_t{40}, size_t{400}, size_t{90}, size_t{200}}) {
        threads.emplace_back([&, bytes] {
          const Status widened = Widen(cluster->nodes(), "a", bytes);
          EXPECT_TRUE(widened.ok() || absl::IsInvalidArgument(widened) || absl::IsAborted(widened)) << widened;
          if (!widened.ok()) return;
          for (size_t seen = largest.load(); seen < bytes && !largest.compare_exchange_weak(seen, bytes);) {
          }
        });
      }
    }
    EXPECT_EQ(SizeOnAll(*cluster, "a"), largest.load());
    ExpectRows(*cluster, "a", 100);
  }
}

TEST_P(WidenTableTest, WrongSizesAreRefused) {
  const auto cluster = OpenNodes(NewDisk(), nodes(), {Spread("a")});
  PutRows(*cluster, "a", 100);
  for (const size_t bytes : {size_t{0}, size_t{7}, kMaxPayloadBytes + 1}) {
    const Status wrong = Widen(cluster->nodes(), "a", bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
    EXPECT_THAT(Message(wrong), HasSubstr("table 'a' has payloads of 8 bytes"));
  }
  EXPECT_EQ(SizeOnAll(*cluster, "a"), 8u);
  ExpectRows(*cluster, "a", 100);
  PutRows(*cluster, "a", 200);
  ASSERT_TRUE(cluster->database(last()).Checkpoint().ok()) << "the table is not held";
  EXPECT_TRUE(Widen(cluster->nodes(), "a", 16).ok());
}

// The first node has no memory for larger rows.
TEST_P(WidenTableTest, WithoutMemoryItIsRefused) {
  const auto cluster = OpenNodes(nullptr, nodes(), {HashTable("a")}, {.bytes_per_node = uint64_t{32} << 20});
  for (uint64_t key = 0; key < 4000; ++key) ASSERT_TRUE(Put(*cluster, "a", key, key, last()).ok());
  const Status full = Widen(cluster->nodes(), "a", 60'000);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr(absl::StrCat(nodes() == 1 ? "" : "node 0: ", "table 'a' was not widened")));
  EXPECT_EQ(SizeOnAll(*cluster, "a"), 8u);
  ASSERT_TRUE(Put(*cluster, "a", 1, 1, last()).ok());
  ASSERT_TRUE(Widen(cluster->nodes(), "a", 16).ok());
}

// Memory of the owner runs out in the middle, because what is free is in the part of the heap for indexes. All nodes
// refuse the table, nothing of it is lost, and with more memory the next start completes it.
TEST_P(WidenTableTest, ATableThatIsHalfWidenedIsCompletedByTheNextStart) {
  constexpr size_t kWide = 4096;
  const size_t block = rdma::SlabAllocator::BlockBytes(index::RecordBytes(index::kIntegerKeyBytes, kWide));
  const uint64_t rows = (uint64_t{27} << 20) / block;
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {HashTable("a")}, {.bytes_per_node = uint64_t{32} << 20});
    const Status filled = PutMany(*cluster, "a", rows);
    ASSERT_TRUE(filled.ok()) << filled;
    const Status widened = Widen(cluster->nodes(), "a", kWide);
    EXPECT_TRUE(absl::IsFailedPrecondition(widened)) << widened;
    EXPECT_EQ(SizeOnAll(*cluster, "a"), kWide);
    for (int node = 0; node < nodes(); ++node) {
      const Status refused = Get(*cluster, "a", 1, node).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
      EXPECT_THAT(Message(refused), HasSubstr("open it again with more memory"));
    }
    EXPECT_TRUE(CheckpointOf(cluster->nodes()).ok());
    EXPECT_TRUE(cluster->Close().ok());
  }
  const auto cluster = OpenNodes(disk, nodes());
  EXPECT_EQ(SizeOnAll(*cluster, "a"), kWide);
  for (int node = 0; node < nodes(); ++node) ExpectMany(*cluster, "a", rows, node);
}

// A session knows the places of rows that were the last ones in the owner's memory. A READ of a row of the new size
// from there would reach beyond that memory. The session is one of another node, or of a node that takes the same path
// to its own rows.
TEST_P(WidenTableTest, PlacesAtTheEndOfMemory) {
  constexpr uint64_t kLast = 16;
  TableOptions filler = HashTable("filler");
  filler.payload_bytes = 16'000;
  DurableOptions options = Way{.path = ReadPathPolicy::kOneSided, .nic_atomics = true}.Options();
  options.bytes_per_node = uint64_t{32} << 20;
  const auto cluster = OpenNodes(nullptr, nodes(), {HashTable("a"), filler}, options);
  const std::vector<std::byte> filling(filler.payload_bytes);
  Status filled;
  for (uint64_t key = 0; filled.ok(); ++key) {
    filled = cluster->database().Run([&](BlockingTransaction& t) {
      return t.Insert(cluster->table("filler"), key, std::span<const std::byte>(filling));
    });
  }
  EXPECT_TRUE(absl::IsResourceExhausted(filled)) << filled;
  uint64_t rows = 0;
  while (Put(*cluster, "a", rows, rows).ok()) ++rows;
  ASSERT_GT(rows, kLast);
  const auto session = cluster->database(last()).OpenSession().value();
  const Table& a = cluster->table("a", last());
  const auto read = [&](uint64_t key, std::span<std::byte> row) {
    return session->RunBlocking([&](Transaction& t) -> coro::Task<Status> { co_return co_await t.Get(a, key, row); });
  };
  for (uint64_t key = rows - kLast; key < rows; ++key) {
    uint64_t value = 0;
    ASSERT_TRUE(read(key, std::as_writable_bytes(std::span(&value, 1))).ok());
    EXPECT_EQ(value, key);
  }
  for (uint64_t key = 0; key + kLast < rows; ++key) {
    ASSERT_TRUE(
        cluster->database().Run([&](BlockingTransaction& t) { return t.Remove(cluster->table("a"), key); }).ok());
  }
  ASSERT_TRUE(Drop(cluster->nodes(), "filler").ok());
  const Status widened = Widen(cluster->nodes(), "a", 60'000);
  ASSERT_TRUE(widened.ok()) << widened;
  for (uint64_t key = rows - kLast; key < rows; ++key) {
    std::vector<std::byte> row(60'000);
    const Status got = read(key, row);
    EXPECT_TRUE(got.ok()) << key << ": " << got;
  }
}

// A scan of a table of variable length meets rows that are longer than all were allowed to be when it began.
TEST_P(WidenTableTest, AScanMeetsLongerRows) {
  constexpr uint64_t kWords = 2000;
  const int scans = nodes() == 1 ? 200 : 50;
  const auto cluster = OpenNodes(nullptr, nodes(), {Words()});
  for (uint64_t n = 0; n < kWords; ++n) ASSERT_TRUE(PutWord(cluster->database(), n, 8).ok());
  std::atomic<bool> done{false};
  std::jthread scanner([&] {
    const absl::Cleanup end = [&] { done.store(true); };
    Database& database = cluster->database(last());
    for (int i = 0; i < scans && !::testing::Test::HasFailure(); ++i) {
      const Status scanned = database.Run([&](BlockingTransaction& t) -> Status {
        ScanRows rows;
        const index::ScanRange all{.from = index::Key(uint64_t{0}), .to = index::Key(UINT64_MAX)};
        Status status = t.Scan(*database.FindTable("words"), all, &rows);
        EXPECT_EQ(status.ok() ? rows.size() : kWords, kWords);
        return status;
      });
      EXPECT_TRUE(scanned.ok()) << scanned;
    }
  });
  for (size_t bytes = 9; bytes < 5000 && !done.load(); ++bytes) {
    EXPECT_TRUE(Widen(cluster->nodes(), "words", bytes).ok());
    EXPECT_TRUE(PutWord(cluster->database(), kWords - 1 - bytes % 100, bytes).ok());
    SleepForNanos(20'000);
  }
}

// Sessions of all nodes add to counters, and write words of the greatest length that their node knows, while the tables
// are widened again and again, checkpoints are taken, and copies are made. No addition is lost, and no owner refuses a
// word.
TEST_P(WidenTableTest, TransactionsRunMeanwhile) {
  constexpr size_t kThreads = 3;
  const uint64_t counters = nodes() == 1 ? 200 : 3000;  // of several nodes so many that moving them takes some time
  const size_t steps = nodes() == 1 ? 25 : 8;
  const std::array<const char*, 3> names = {"hash", "tree", "blink"};
  TableOptions blink = SpreadOrdered("blink");
  blink.index = IndexKind::kBlink;
  std::vector<Way> ways = {{}};
  if (nodes() > 1) ways = {{.path = ReadPathPolicy::kOneSided}, {.path = ReadPathPolicy::kCall}, {}};
  for (const Way& way : ways) {
    SCOPED_TRACE(testing::Message() << way);
    const Disk disk = NewDisk();
    std::array<std::atomic<uint64_t>, kThreads> added{};
    {
      const auto cluster =
          OpenNodes(disk, nodes(), {Spread("hash"), SpreadOrdered("tree"), blink, Words()}, way.Options());
      for (const char* name : names) {
        for (uint64_t from = 0; from < counters; from += 100) {
          const Status filled = cluster->database().Run([&](BlockingTransaction& t) {
            for (uint64_t n = from; n < from + 100; ++n) {
              GANNET_RETURN_IF_ERROR(t.Insert(cluster->table(name), n, uint64_t{0}));
            }
            return absl::OkStatus();
          });
          ASSERT_TRUE(filled.ok()) << filled;
        }
      }
      std::atomic<bool> stop{false};
      std::vector<std::jthread> threads;
      const absl::Cleanup end = [&] { stop.store(true); };
      for (size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          Random random(i + 1);
          Database& database = cluster->database(static_cast<int>(i) % nodes());
          const auto session = database.OpenSession();
          const Table& longest = *database.FindTable("words");
          while (!stop.load()) {
            const std::array<uint64_t, 3> keys = {random.Below(counters), random.Below(counters),
                                                  random.Below(counters)};
            const std::vector<std::byte> word(longest.payload_bytes(), std::byte{1});
            const uint64_t key = random.Below(counters);
            const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              size_t at = 0;
              for (const char* name : names) {
                const Status one = co_await t.AddAt<uint64_t>(*database.FindTable(name), keys[at++], 0, 1);
                if (!one.ok()) co_return one;
              }
              co_return co_await t.Upsert(longest, key, std::span<const std::byte>(word));
            });
            ASSERT_TRUE(done.ok()) << done;
            added[i].fetch_add(1);
            const Status got = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              std::string row;
              co_return co_await t.Get(longest, key, &row);
            });
            ASSERT_TRUE(got.ok()) << got;
          }
        });
      }
      for (size_t step = 1; step <= steps; ++step) {
        std::jthread other;
        const int node = static_cast<int>(step) % nodes();
        if (step % 4 == 1) {
          other = std::jthread([&, node] {
            const Status taken = cluster->database(node).Checkpoint();
            EXPECT_TRUE(taken.ok()) << taken;
          });
        } else if (step % 4 == 3) {
          other = std::jthread([&, node, step] {
            const Status copied = cluster->database(node).Backup(absl::StrCat("/copy-", step));
            EXPECT_TRUE(copied.ok()) << copied;
          });
        }
        for (const char* name : {"hash", "tree", "blink", "words"}) {
          const Status widened = Widen(cluster->nodes(), name, 8 + step * 60);
          ASSERT_TRUE(widened.ok()) << widened;
        }
        SleepForNanos(2'000'000);
      }
    }
    uint64_t expected = 0;
    for (const auto& each : added) expected += each.load();
    EXPECT_GT(expected, 0u);
    const auto cluster = OpenAfterCrash(disk, nodes());
    for (const char* name : names) {
      uint64_t sum = 0;
      for (uint64_t n = 0; n < counters; ++n) {
        sum += Get(*cluster, name, n, static_cast<int>(n) % nodes()).value();
      }
      EXPECT_EQ(sum, expected) << name;
      EXPECT_EQ(SizeOnAll(*cluster, name), 8 + steps * 60);
    }
  }
}

// Rows of variable length are read and written while all nodes learn the new maximum; longer rows are refused until
// then.
TEST(WidenTableOnNodesTest, ATableOfVariableLengthIsUsedMeanwhile) {
  // The last transaction that it waits for ends in time, or too late; or the table is dropped meanwhile.
  enum class End : uint8_t { kWidened, kTooLate, kDropped };
  for (const End end : {End::kWidened, End::kTooLate, End::kDropped}) {
    SCOPED_TRACE(static_cast<int>(end));
    DurableOptions options;
    if (end == End::kTooLate) options.database.durable_within = absl::Milliseconds(300);
    const auto cluster = OpenNodes(NewDisk(), kNodes, {Words(), Spread("b")}, options);
    const Databases& nodes = cluster->nodes();
    std::vector<const Table*> tables;
    for (Database* const node : nodes) tables.push_back(node->FindTable("words"));
    if (end != End::kTooLate) PutRows(*cluster, "words", 100);
    auto open = nodes[1]->Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    ASSERT_TRUE((*open)->Upsert(cluster->table("b", 1), 1, uint64_t{1}).ok());
    std::jthread widen([&] {
      const Status done = Widen(nodes, "words", 300);
      EXPECT_EQ(done.code(), end == End::kWidened   ? absl::StatusCode::kOk
                             : end == End::kTooLate ? absl::StatusCode::kDeadlineExceeded
                                                    : absl::StatusCode::kFailedPrecondition)
          << done;
    });
    std::jthread drop;
    if (end == End::kTooLate) {
      widen.join();
    } else {
      while (tables[2]->accepted_payload_bytes() == 8) SleepForNanos(1'000'000);
      for (size_t node = 0; node < kNodes; ++node) {
        EXPECT_EQ(tables[node]->payload_bytes(), 8u);
        const Status longer = PutWord(*nodes[node], 50 + node, 300);
        EXPECT_TRUE(absl::IsInvalidArgument(longer)) << longer;
        for (uint64_t key = 0; key < kRows; ++key) {
          const Status used = nodes[node]->Run([&](BlockingTransaction& t) {
            uint64_t value = 0;
            GANNET_RETURN_IF_ERROR(t.Get(*tables[node], key, &value));
            return t.Update(*tables[node], key, 100 + key);
          });
          EXPECT_TRUE(used.ok()) << used;
        }
      }
    }
    if (end == End::kDropped) {
      drop = std::jthread([&] {
        const Status dropped = Drop(nodes, "words");
        EXPECT_TRUE(dropped.ok()) << dropped;
      });
      while (tables[2]->state() != Table::State::kBeingDropped) SleepForNanos(1'000'000);
    }
    EXPECT_TRUE(open->Commit().ok());
    if (widen.joinable()) widen.join();
    for (size_t node = 0; node < kNodes; ++node) {
      EXPECT_EQ(tables[node]->payload_bytes(), end == End::kWidened ? 300u : 8u);
      EXPECT_EQ(tables[node]->accepted_payload_bytes(), tables[node]->payload_bytes());
    }
  }
}

}  // namespace widen_table_test
}  // namespace gannet::txn
