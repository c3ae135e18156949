// Nodes of one fabric widen tables together while transactions run: durably and atomically, without a change of what
// their rows had.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
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
#include "tests/txn/cluster.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/nodes_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/all_nodes.h"
#include "txn/durable/data_directory.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status Widen(DurableCluster& cluster, std::string_view name, size_t payload_bytes) {
  return WidenTableOnAllNodes(NodesOf(cluster), name, payload_bytes);
}

// The size of the payload, which is the same on all nodes.
size_t SizeOnAll(DurableCluster& cluster, const std::string& name) {
  const size_t size = cluster.table(name).payload_bytes();
  for (int node = 1; node < kNodes; ++node) EXPECT_EQ(cluster.table(name, node).payload_bytes(), size) << node;
  return size;
}

// The payload of row n as it was written when the table had `bytes`.
std::vector<std::byte> PayloadOf(uint64_t n, size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(1 + (n + i) % 255);
  return payload;
}

Status PutRow(Session& session, const Table& table, uint64_t n, size_t bytes) {
  const std::vector<std::byte> payload = PayloadOf(n, bytes);
  return session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
    const index::OwnedKey key = KeyOf(table.options(), n);
    co_return co_await t.Upsert(table, key.view(), std::span<const std::byte>(payload));
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

// Rows of every node, written and read by sessions of every node, which know the places of the rows from before.
TEST(WidenNodesTest, RowsGetZerosAtTheirEnd) {
  constexpr uint64_t kRows = 90;
  std::vector<TableOptions> kinds = AllKinds(24, /*variable_length=*/false);
  for (TableOptions& options : kinds) options.placement = Placement::ByHash();
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    const Disk disk = NewDisk();
    {
      auto cluster = DurableCluster::Open(disk, kinds, {.nodes = kNodes, .database = {.read_path = path}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      std::vector<std::unique_ptr<Session>> sessions;
      for (Database* const node : NodesOf(**cluster)) sessions.push_back(*node->OpenSession());
      const auto expect = [&](const TableOptions& options, const std::vector<size_t>& written) {
        for (int node = 0; node < kNodes; ++node) {
          ExpectWideRows(*sessions[static_cast<size_t>(node)], (*cluster)->table(options.name, node), kRows, written);
        }
      };
      const auto put = [&](const TableOptions& options, uint64_t n, size_t bytes) {
        const auto node = static_cast<int>((n + n / kNodes) % kNodes);
        return PutRow(*sessions[static_cast<size_t>(node)], (*cluster)->table(options.name, node), n, bytes);
      };
      for (const TableOptions& options : kinds) {
        SCOPED_TRACE(options.name);
        for (uint64_t n = 0; n < kRows; ++n) ASSERT_TRUE(put(options, n, 24).ok());
        expect(options, {24});
        const Status widened = Widen(**cluster, options.name, 1000);
        ASSERT_TRUE(widened.ok()) << widened;
        EXPECT_EQ(SizeOnAll(**cluster, options.name), 1000u);
        expect(options, {24});
        for (uint64_t n = 1; n < kRows; n += 3) ASSERT_TRUE(put(options, n, 1000).ok());
        EXPECT_TRUE(absl::IsInvalidArgument(put(options, 1, 24)));
        expect(options, {24, 1000, 24});
        ASSERT_TRUE(Widen(**cluster, options.name, 1001).ok());
        for (uint64_t n = 2; n < kRows; n += 3) ASSERT_TRUE(put(options, n, 1001).ok());
        expect(options, {24, 1000, 1001});
        if (options.name == kinds[kinds.size() / 2].name) {
          for (Database* const node : NodesOf(**cluster)) ASSERT_TRUE(node->Checkpoint().ok());
        }
        for (int node = 0; node < kNodes; ++node) {
          EXPECT_TRUE((*cluster)->table(options.name, node).local_index().CheckStructure().ok());
        }
      }
      sessions.clear();
    }
    // Short rows of the logs and of checkpoints, and long ones.
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const TableOptions& options : kinds) {
      EXPECT_EQ(SizeOnAll(**cluster, options.name), 1001u);
      ASSERT_TRUE(Widen(**cluster, options.name, 1002).ok());
      for (int node = 0; node < kNodes; ++node) {
        const std::unique_ptr<Session> session = *(*cluster)->database(node).OpenSession();
        const Table* const table = (*cluster)->database(node).FindTable(options.name);
        if (!table->knows_owners()) continue;
        ExpectWideRows(*session, *table, kRows, {24, 1000, 1001});
      }
    }
  }
}

TEST(WidenNodesTest, ATableOfVariableLengthHasAnotherMaximum) {
  const Disk disk = NewDisk();
  TableOptions words = OrderedTable("words", Placement::ByHash());
  words.variable_length = true;
  const std::string long_word(5000, 'x');
  const auto put = [&](DurableCluster& cluster, uint64_t key, int node) {
    return cluster.database(node).Run([&](BlockingTransaction& t) {
      return t.Upsert(cluster.table("words", node), key, std::as_bytes(std::span(long_word)));
    });
  };
  const auto get = [&](DurableCluster& cluster, uint64_t key, int node) {
    std::string word;
    const Status got = cluster.database(node).Run(
        [&](BlockingTransaction& t) { return t.Get(cluster.table("words", node), key, &word); });
    EXPECT_TRUE(got.ok()) << got;
    EXPECT_EQ(word, long_word);
  };
  {
    auto cluster = Open(disk, {words}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ASSERT_TRUE(Put(**cluster, "words", 100, 7).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(put(**cluster, 2, 0)));
    ASSERT_TRUE(Widen(**cluster, "words", long_word.size()).ok());
    ASSERT_TRUE(Widen(**cluster, "words", long_word.size()).ok()) << "once more";
    for (uint64_t key = 0; key < 12; ++key) ASSERT_TRUE(put(**cluster, key, static_cast<int>(key % kNodes)).ok());
    for (uint64_t key = 0; key < 12; ++key) get(**cluster, key, static_cast<int>((key + 1) % kNodes));
  }
  auto cluster = Open(disk->CrashedCopy(2), {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(Get(**cluster, "words", 100).value(), 7u);
  for (uint64_t key = 0; key < 12; ++key) get(**cluster, key, static_cast<int>((key + 1) % kNodes));
}

// Rows of variable length are read and written while all nodes learn the new maximum; longer rows are refused until
// then.
TEST(WidenNodesTest, ATableOfVariableLengthIsUsedMeanwhile) {
  TableOptions words = OrderedTable("words", Placement::ByHash());
  words.variable_length = true;
  const std::vector<std::byte> word(300);
  // The last transaction that it waits for ends in time, or too late; or the table is dropped meanwhile.
  enum class End : uint8_t { kWidened, kTooLate, kDropped };
  for (const End end : {End::kWidened, End::kTooLate, End::kDropped}) {
    SCOPED_TRACE(static_cast<int>(end));
    DurableOptions options{.nodes = kNodes};
    if (end == End::kTooLate) options.database.durable_within = absl::Milliseconds(300);
    auto cluster = DurableCluster::Open(NewDisk(), {words, Spread("b")}, options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const std::vector<Database*> nodes = NodesOf(**cluster);
    std::vector<const Table*> tables;
    for (Database* const node : nodes) tables.push_back(node->FindTable("words"));
    if (end != End::kTooLate) PutRows(**cluster, "words", 100);
    auto open = nodes[1]->Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    ASSERT_TRUE((*open)->Upsert((*cluster)->table("b", 1), 1, uint64_t{1}).ok());
    std::jthread widen([&] {
      const Status done = Widen(**cluster, "words", 300);
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
        const Status longer = nodes[node]->Run([&](BlockingTransaction& t) {
          return t.Upsert(*tables[node], 50 + node, std::span<const std::byte>(word));
        });
        EXPECT_TRUE(absl::IsInvalidArgument(longer)) << longer;
        for (uint64_t key = 0; key < 12; ++key) {
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
        const Status dropped = DropTableOnAllNodes(nodes, "words");
        EXPECT_TRUE(dropped.ok()) << dropped;
      });
      while (tables[2]->life() != Table::Life::kBeingDropped) SleepForNanos(1'000'000);
    }
    EXPECT_TRUE(open->Commit().ok());
    if (widen.joinable()) widen.join();
    for (size_t node = 0; node < kNodes; ++node) {
      EXPECT_EQ(tables[node]->payload_bytes(), end == End::kWidened ? 300u : 8u);
      EXPECT_EQ(tables[node]->accepted_payload_bytes(), tables[node]->payload_bytes());
    }
  }
}

// Several calls widen one table at the same time: it gets the largest size of those that are not refused.
TEST(WidenNodesTest, SeveralCallsAtTheSameTime) {
  for (const bool variable : {false, true}) {
    TableOptions a = Spread("a");
    a.variable_length = variable;
    auto cluster = Open(NewDisk(), {a}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    PutRows(**cluster, "a", 100);
    std::atomic<size_t> largest{0};
    {
      std::vector<std::jthread> threads;
      for (const size_t bytes : {size_t{40}, size_t{400}, size_t{90}, size_t{200}}) {
        threads.emplace_back([&, bytes] {
          const Status widened = Widen(**cluster, "a", bytes);
          EXPECT_TRUE(widened.ok() || absl::IsInvalidArgument(widened) || absl::IsAborted(widened)) << widened;
          if (!widened.ok()) return;
          for (size_t seen = largest.load(); seen < bytes && !largest.compare_exchange_weak(seen, bytes);) {
          }
        });
      }
    }
    EXPECT_EQ(SizeOnAll(**cluster, "a"), largest.load());
    ExpectRows(**cluster, "a", 100);
  }
}

TEST(WidenNodesTest, WrongOnesAreRefused) {
  auto cluster = DurableCluster::Open(NewDisk(), {Spread("a"), Spread("b")},
                                      {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(500)}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutRows(**cluster, "a", 100);
  EXPECT_TRUE(absl::IsNotFound(Widen(**cluster, "c", 100)));
  EXPECT_TRUE(absl::IsInvalidArgument(Widen(**cluster, "a", 7)));
  EXPECT_TRUE(absl::IsInvalidArgument(Widen(**cluster, "a", kMaxPayloadBytes + 1)));
  const Status alone = (*cluster)->database(1).WidenTable("a", 100);
  EXPECT_TRUE(absl::IsUnimplemented(alone)) << alone;
  EXPECT_THAT(Message(alone), HasSubstr("use WidenTableOnAllNodes if all are in this process"));
  for (int node = 0; node < kNodes; ++node) {
    auto open = (*cluster)->database(node).Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    ASSERT_TRUE((*open)->Update((*cluster)->table("a", node), 1, uint64_t{101}).ok());
    const Status late = Widen(**cluster, "a", 16);
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    EXPECT_THAT(Message(late), HasSubstr("table 'a' was not widened"));
    EXPECT_TRUE(open->Commit().ok());
  }
  EXPECT_EQ(SizeOnAll(**cluster, "a"), 8u);
  ExpectRows(**cluster, "a", 100);
  PutRows(**cluster, "a", 200);
  ASSERT_TRUE((*cluster)->database(1).Checkpoint().ok()) << "the table is not held";
  EXPECT_TRUE(Patiently([&] { return Widen(**cluster, "a", 16); }).ok());
}

// Node 0 has no memory for larger rows.
TEST(WidenNodesTest, ANodeWithoutMemoryIsNamed) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{32} << 20});
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<Database*> nodes;
  for (rdma::NodeId node = 0; node < 2; ++node) {
    databases.push_back(*Database::Open(fabric->get(), node, {}));
    nodes.push_back(databases.back().get());
    ASSERT_TRUE(nodes.back()->CreateTable(HashTable("a", Placement::ByHash())).ok());
  }
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  const auto put = [&](uint64_t key) {
    return nodes[key % 2]->Run(
        [&](BlockingTransaction& t) { return t.Upsert(*nodes[key % 2]->FindTable("a"), key, key); });
  };
  for (uint64_t key = 0; key < 4000; ++key) ASSERT_TRUE(put(key).ok());
  const Status full = WidenTableOnAllNodes(nodes, "a", 60'000);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("node 0: table 'a' was not widened"));
  for (Database* const node : nodes) EXPECT_EQ(node->FindTable("a")->payload_bytes(), 8u);
  for (uint64_t key = 0; key < 10; ++key) ASSERT_TRUE(put(key).ok());
  ASSERT_TRUE(WidenTableOnAllNodes(nodes, "a", 16).ok());
}

// Memory of the owner runs out in the middle, because what is free is in the part of the heap for indexes. All nodes
// refuse the table, nothing of it is lost, and with more memory the next start completes it.
TEST(WidenNodesTest, ATableThatIsHalfWidenedIsCompletedByTheNextStart) {
  constexpr size_t kWide = 4096;
  const size_t block = rdma::SlabAllocator::BlockBytes(index::RecordBytes(index::kIntegerKeyBytes, kWide));
  const uint64_t rows = (uint64_t{27} << 20) / block;
  const Disk disk = NewDisk();
  for (const uint64_t memory : {uint64_t{32} << 20, uint64_t{256} << 20}) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = memory});
    std::vector<std::unique_ptr<Database>> databases;
    std::vector<Database*> nodes;
    const bool first = memory < uint64_t{64} << 20;
    for (rdma::NodeId node = 0; node < 2; ++node) {
      auto database =
          Database::Open(fabric->get(), node, {.directory = "/data", .create_if_missing = first, .files = disk});
      ASSERT_TRUE(database.ok()) << database.status();
      databases.push_back(*std::move(database));
      nodes.push_back(databases.back().get());
      if (first) {
        ASSERT_TRUE(nodes.back()->CreateTable(HashTable("a")).ok());
      }
    }
    ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
    for (uint64_t key = 0; first && key < rows; ++key) {
      const Status put =
          nodes[0]->Run([&](BlockingTransaction& t) { return t.Insert(*nodes[0]->FindTable("a"), key, key); });
      ASSERT_TRUE(put.ok()) << put;
    }
    if (first) {
      const Status widened = WidenTableOnAllNodes(nodes, "a", kWide);
      EXPECT_TRUE(absl::IsFailedPrecondition(widened)) << widened;
    }
    for (Database* const node : nodes) {
      const Table& a = *node->FindTable("a");
      EXPECT_EQ(a.payload_bytes(), kWide);
      for (uint64_t key = 0; key < rows; key += first ? rows : 1) {
        uint64_t value = 0;
        const Status got = node->Run([&](BlockingTransaction& t) { return t.Get(a, key, &value, 0); });
        EXPECT_EQ(got.code(), first ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk) << got;
        ASSERT_EQ(value, first ? 0 : key);
      }
    }
    EXPECT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Checkpoint(); }).ok());
    EXPECT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Close(); }).ok());
  }
}

// A session knows the places of rows that were the last ones in the owner's memory. A READ of a row of the new size
// from there would reach beyond that memory. The session is one of another node, or of a node that takes the same path
// to its own rows.
TEST(WidenNodesTest, PlacesAtTheEndOfMemory) {
  constexpr uint64_t kRows = 16;
  for (const int num_nodes : {1, 2}) {
    SCOPED_TRACE(testing::Message() << num_nodes << " nodes");
    auto shm = rdma::ShmFabric::InProcess({.num_nodes = num_nodes, .bytes_per_node = uint64_t{32} << 20});
    NicAtomics nic(shm->get());
    std::vector<std::unique_ptr<Database>> databases;
    std::vector<Database*> nodes;
    for (int node = 0; node < num_nodes; ++node) {
      databases.push_back(
          *Database::Open(&nic, static_cast<rdma::NodeId>(node), {.read_path = ReadPathPolicy::kOneSided}));
      nodes.push_back(databases.back().get());
      ASSERT_TRUE(nodes.back()->CreateTable(HashTable("a")).ok());
      TableOptions filler = HashTable("filler");
      filler.payload_bytes = 16'000;
      ASSERT_TRUE(nodes.back()->CreateTable(filler).ok());
    }
    ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
    const std::vector<std::byte> filling(16'000);
    Status filled;
    for (uint64_t key = 0; filled.ok(); ++key) {
      filled = nodes[0]->Run([&](BlockingTransaction& t) {
        return t.Insert(*nodes[0]->FindTable("filler"), key, std::span<const std::byte>(filling));
      });
    }
    EXPECT_TRUE(absl::IsResourceExhausted(filled)) << filled;
    uint64_t rows = 0;
    for (Status put; put.ok(); rows += put.ok() ? 1 : 0) {
      put = nodes[0]->Run([&](BlockingTransaction& t) { return t.Insert(*nodes[0]->FindTable("a"), rows, rows); });
    }
    ASSERT_GT(rows, kRows);
    auto session = nodes.back()->OpenSession();
    const Table& a = *nodes.back()->FindTable("a");
    const auto read = [&](uint64_t key) {
      return (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
        uint64_t value = 0;
        const Status got = co_await t.Get(a, key, &value, 0);
        EXPECT_TRUE(!got.ok() || value == key) << value;
        co_return got;
      });
    };
    for (uint64_t key = rows - kRows; key < rows; ++key) ASSERT_TRUE(read(key).ok());
    for (uint64_t key = 0; key + kRows < rows; ++key) {
      ASSERT_TRUE(nodes[0]->Run([&](BlockingTransaction& t) { return t.Remove(*nodes[0]->FindTable("a"), key); }).ok());
    }
    ASSERT_TRUE(DropTableOnAllNodes(nodes, "filler").ok());
    const Status widened = WidenTableOnAllNodes(nodes, "a", 60'000);
    ASSERT_TRUE(widened.ok()) << widened;
    for (uint64_t key = rows - kRows; key < rows; ++key) {
      // The value is the beginning of the row.
      std::vector<std::byte> row(60'000);
      const Status got = (*session)->RunBlocking(
          [&](Transaction& t) -> coro::Task<Status> { co_return co_await t.Get(a, key, std::span<std::byte>(row)); });
      EXPECT_TRUE(got.ok()) << key << ": " << got;
    }
  }
}

// While it waits, every node's accesses to rows of every node are conflicts.
TEST(WidenNodesTest, NoNodeUsesItMeanwhile) {
  ExpectNobodyUsesItDuring([](const std::vector<Database*>& nodes) { return WidenTableOnAllNodes(nodes, "a", 100); },
                           Table::Life::kBeingWidened, absl::StatusCode::kAborted, "is being widened");
}

// A node dies while the widening waits: the others keep the table as it was.
TEST(WidenNodesTest, ANodeDiesMeanwhile) {
  Cluster cluster(ClusterOptions{.nodes = kNodes}, {HashTable("a")});
  std::vector<Database*> nodes;
  for (const auto& database : cluster.databases) nodes.push_back(database.get());
  const Table& table = cluster.table(1, "a");
  auto open = nodes[1]->Begin();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->Insert(table, 1, uint64_t{1}).ok());
  std::thread widen([&] {
    const Status widened = WidenTableOnAllNodes(nodes, "a", 100);
    EXPECT_TRUE(absl::IsUnavailable(widened)) << widened;
  });
  while (table.life() != Table::Life::kBeingWidened) SleepForNanos(1'000'000);
  cluster.Kill(2);
  EXPECT_TRUE(open->Commit().ok());
  widen.join();
  uint64_t value = 0;
  const Status read = nodes[1]->Run([&](BlockingTransaction& t) { return t.Get(table, 1, &value); });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(table.payload_bytes(), 8u);
}

TEST(WidenNodesTest, OneManifestWithTheNewSizeIsEnough) {
  WithManifestsBehind(
      {Spread("a"), Spread("b")},
      [](DurableCluster& cluster) {
        PutRows(cluster, "a", 100);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
        PutRows(cluster, "b", 300);
      },
      [](DurableCluster& cluster) { ASSERT_TRUE(Widen(cluster, "a", 40).ok()); },
      [](DurableCluster& cluster, const Disk&, bool all_behind) {
        EXPECT_EQ(SizeOnAll(cluster, "a"), all_behind ? 8u : 40u);
        EXPECT_EQ(SizeOnAll(cluster, "b"), 8u);
        ExpectRows(cluster, "a", 100);
        ExpectRows(cluster, "b", 300);
      });
}

// The manifest of one node cannot be written: the table has its size on all nodes, also after a crash.
TEST(WidenNodesTest, AnErrorOfOneNodesDiskChangesNothing) {
  for (int node = 0; node < kNodes; ++node) {
    const Disk disk = NewDisk();
    {
      auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      PutRows(**cluster, "a", 100);
      disk->Schedule({.operation = log::DiskOperation::kWrite,
                      .times = 1000,
                      .path_contains = absl::StrCat("/data/node-", node, "/MANIFEST")});
      const Status refused = Widen(**cluster, "a", 100);
      EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
      EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat("when a table is widened: node ", node, ": ")));
      EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
      EXPECT_EQ(SizeOnAll(**cluster, "a"), 8u);
      PutRows(**cluster, "a", 200);
      disk->Heal();
      for (const bool checkpoint : {false, true}) {
        for (Database* const each : NodesOf(**cluster)) ASSERT_TRUE(!checkpoint || each->Checkpoint().ok());
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          auto crashed = Open(disk->CrashedCopy(seed), {}, kNodes);
          ASSERT_TRUE(crashed.ok()) << crashed.status();
          EXPECT_EQ(SizeOnAll(**crashed, "a"), 8u);
          ExpectRows(**crashed, "a", 200);
        }
      }
      ASSERT_TRUE(Widen(**cluster, "a", 100).ok());
      ExpectRows(**cluster, "a", 200);
    }
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(SizeOnAll(**cluster, "a"), 100u);
    ExpectRows(**cluster, "a", 200);
  }
}

// The power goes at every operation on a manifest, or all of them fail from there on. Afterwards the table has one size
// or the other on all nodes, with all its rows; those that were written after an error, too.
TEST(WidenNodesTest, ACrashLeavesOneSizeOrTheOther) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {Spread("a"), Spread("b")}, kNodes);
    PutRows(**cluster, "a", 100);
    for (Database* const node : NodesOf(**cluster)) ASSERT_TRUE(node->Checkpoint().ok());
    PutRows(**cluster, "a", 200);
  }
  const DiskImage image = ImageOf(*first);
  std::set<size_t> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      bool widened = false;
      uint64_t value = 200;
      {
        auto cluster = Open(disk, {}, kNodes);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        BreakAtManifest(disk, at, power_cut, &operations);
        widened = Widen(**cluster, "a", 100).ok();
        EXPECT_EQ(SizeOnAll(**cluster, "a"), widened ? 100u : 8u);
        disk->SetOptions({});
        if (!power_cut && !widened) {
          value = 300;
          PutRows(**cluster, "a", value);
        }
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 9u) << "three replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk, {}, kNodes);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        const size_t size = SizeOnAll(**cluster, "a");
        EXPECT_TRUE(size == 100 || (size == 8 && !widened)) << size;
        EXPECT_TRUE(power_cut || widened || size == 8);
        seen.insert(size);
        ExpectRows(**cluster, "a", value);
        ASSERT_TRUE(Widen(**cluster, "a", 200).ok());
        ExpectRows(**cluster, "a", value);
        ASSERT_TRUE((*cluster)->Close().ok());
        if (!power_cut) break;
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre(8, 100));
}

// A client that comes back after a change is compared with the tables of now.
TEST(WidenNodesTest, ClientNodesComeBack) {
  NodesWithClient nodes;
  for (Database* const node : nodes.all()) {
    ASSERT_TRUE(node->CreateTable(Spread("gone")).ok());
    ASSERT_TRUE(node->CreateTable(Spread("a")).ok());
  }
  ASSERT_TRUE(nodes.Start().ok());
  ASSERT_TRUE(WidenTableOnAllNodes(nodes.all(), "a", 16).ok());
  for (const bool knows : {false, true}) {
    Database& client = nodes.Reopen();
    TableOptions a = Spread("a");
    a.payload_bytes = knows ? 16 : 8;
    ASSERT_TRUE(client.CreateTable(Spread("gone")).ok());
    ASSERT_TRUE(client.CreateTable(a).ok());
    const Status started = client.Start();
    EXPECT_EQ(started.ok(), knows) << started;
  }
  ASSERT_TRUE(DropTableOnAllNodes(nodes.all(), "a").ok());
  for (const bool knows : {false, true}) {
    Database& client = nodes.Reopen();
    ASSERT_TRUE(client.CreateTable(Spread("gone")).ok());
    if (!knows) {
      ASSERT_TRUE(client.CreateTable(Spread("a")).ok());
    }
    const Status started = client.Start();
    EXPECT_EQ(started.ok(), knows) << started;
  }
  ASSERT_TRUE(DropTableOnAllNodes(nodes.all(), "gone").ok());
}

// Sessions of all nodes add to counters, and write words of the greatest length that their node knows, while the tables
// are widened again and again, checkpoints are taken, and copies are made. No addition is lost, and no owner refuses a
// word.
TEST(WidenNodesTest, TransactionsRunMeanwhile) {
  constexpr uint64_t kCounters = 3000;  // so many that moving them takes some time
  constexpr size_t kSteps = 8;
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall, ReadPathPolicy::kAdaptive}) {
    const Disk disk = NewDisk();
    std::array<std::atomic<uint64_t>, kNodes> added{};
    TableOptions words = OrderedTable("words", Placement::ByHash());
    words.variable_length = true;
    TableOptions blink = Spread("blink");
    blink.index = IndexKind::kBlink;
    {
      auto cluster =
          DurableCluster::Open(disk, {Spread("hash"), OrderedTable("tree", Placement::ByHash()), blink, words},
                               {.nodes = kNodes, .database = {.read_path = path}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (const char* name : {"hash", "tree", "blink"}) {
        for (uint64_t from = 0; from < kCounters; from += 100) {
          const Status filled = (*cluster)->database().Run([&](BlockingTransaction& t) {
            for (uint64_t n = from; n < from + 100; ++n) {
              GANNET_RETURN_IF_ERROR(t.Insert((*cluster)->table(name), n, uint64_t{0}));
            }
            return absl::OkStatus();
          });
          ASSERT_TRUE(filled.ok()) << filled;
        }
      }
      std::atomic<bool> stop{false};
      std::vector<std::jthread> threads;
      const absl::Cleanup end = [&] { stop.store(true); };
      for (int i = 0; i < kNodes; ++i) {
        threads.emplace_back([&, i] {
          Random random(static_cast<uint64_t>(i) + 1);
          Database& database = (*cluster)->database(i);
          auto session = database.OpenSession();
          const Table& longest = *database.FindTable("words");
          while (!stop.load()) {
            const std::array<uint64_t, 3> keys = {random.Below(kCounters), random.Below(kCounters),
                                                  random.Below(kCounters)};
            const std::vector<std::byte> word(longest.payload_bytes(), std::byte{1});
            const uint64_t key = random.Below(kCounters);
            const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              size_t at = 0;
              for (const char* name : {"hash", "tree", "blink"}) {
                const Status one = co_await t.AddAt<uint64_t>(*database.FindTable(name), keys[at++], 0, 1);
                if (!one.ok()) co_return one;
              }
              co_return co_await t.Upsert(longest, key, std::span<const std::byte>(word));
            });
            ASSERT_TRUE(done.ok()) << done;
            added[static_cast<size_t>(i)].fetch_add(1);
            const Status got = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              std::string row;
              co_return co_await t.Get(longest, key, &row);
            });
            ASSERT_TRUE(got.ok()) << got;
          }
        });
      }
      for (size_t step = 1; step <= kSteps; ++step) {
        std::jthread other;
        if (step % 4 == 1) {
          other = std::jthread([&, step] {
            const Status taken = (*cluster)->database(static_cast<int>(step) % kNodes).Checkpoint();
            EXPECT_TRUE(taken.ok()) << taken;
          });
        } else if (step % 4 == 3) {
          other = std::jthread([&, step] {
            const Status copied =
                (*cluster)->database(static_cast<int>(step) % kNodes).Backup(absl::StrCat("/copy-", step));
            EXPECT_TRUE(copied.ok()) << copied;
          });
        }
        for (const char* name : {"hash", "tree", "blink", "words"}) {
          const Status widened = Widen(**cluster, name, 8 + step * 60);
          ASSERT_TRUE(widened.ok()) << widened;
        }
        SleepForNanos(2'000'000);
      }
    }
    uint64_t expected = 0;
    for (const auto& each : added) expected += each.load();
    EXPECT_GT(expected, 0u);
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const char* name : {"hash", "tree", "blink"}) {
      uint64_t sum = 0;
      for (uint64_t n = 0; n < kCounters; ++n) sum += Get(**cluster, name, n, static_cast<int>(n % kNodes)).value();
      EXPECT_EQ(sum, expected) << name;
      EXPECT_EQ(SizeOnAll(**cluster, name), 8 + kSteps * 60);
    }
  }
}

}  // namespace
}  // namespace gannet::txn
