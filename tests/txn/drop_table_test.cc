// Tables are dropped while transactions run, on one node and on several: their memory and disk space are free again.
// schema_change_test.cc tests what all changes of tables have in common.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/key_wire.h"
#include "log/manifest/manifest.h"
#include "rdma/rpc.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/schema_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/bulk_loader.h"
#include "txn/durable/catalog.h"
#include "txn/peer/wire.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace drop_table_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kPayload = 100;

class DropTableTest : public NodesTest {};
INSTANTIATE_TEST_SUITE_P(, DropTableTest, testing::Values(1, kNodes), NameOfNodes);

TEST_P(DropTableTest, ItsNameIsFreeAndItsNumberIsNot) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {Spread("a"), Spread("b")});
    PutRowsWithCheckpoints(*cluster, "a", 100);
    PutRows(*cluster, "b", 300);
    std::vector<const Table*> tables;
    for (Database* const node : cluster->nodes()) tables.push_back(node->FindTable("a"));
    const Status dropped = Drop(cluster->nodes(), "a");
    ASSERT_TRUE(dropped.ok()) << dropped;
    EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("b"));
    for (int node = 0; node < nodes(); ++node) {
      Database& database = cluster->database(node);
      EXPECT_EQ(ManifestOf(*disk, node, nodes()).tables.size(), 1u);
      const Table& table = *tables[static_cast<size_t>(node)];
      EXPECT_EQ(table.name(), "a");
      for (uint64_t key = 0; key < kRows; ++key) {
        uint64_t value = 0;
        for (const Status& late : {database.Run([&](BlockingTransaction& t) { return t.Get(table, key, &value); }),
                                   database.Run([&](BlockingTransaction& t) { return t.Upsert(table, key, key); })}) {
          EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
          EXPECT_THAT(Message(late), HasSubstr("table 'a' has been dropped"));
        }
      }
    }
    EXPECT_TRUE(absl::IsNotFound(Rename(cluster->nodes(), "a", "c")));
    ASSERT_TRUE(Create(cluster->nodes(), Spread("a")).ok());
    EXPECT_EQ(cluster->table("a", last()).id(), 2);
    EXPECT_TRUE(absl::IsNotFound(Get(*cluster, "a", 1).status()));
    PutRows(*cluster, "a", 500);
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("b", "a"));
  ExpectRows(*cluster, "b", 300);
  ExpectRows(*cluster, "a", 500);
  ASSERT_TRUE(Drop(cluster->nodes(), "b").ok());
  ASSERT_TRUE(Drop(cluster->nodes(), "a").ok());
  ASSERT_TRUE(Create(cluster->nodes(), Spread("a")).ok());
  EXPECT_EQ(cluster->table("a", last()).id(), 3);
}

// The operations are those of the node that owns the rows or, with several nodes, of another one.
TEST_P(DropTableTest, EveryAccessIsRefused) {
  TableOptions spatial{.name = "boxes",
                       .key_kind = index::KeyKind::kBytes,
                       .max_key_bytes = index::RectangleKey::kBytes,
                       .index = IndexKind::kCatfish,
                       .payload_bytes = 8};
  const auto cluster = OpenNodes(nullptr, nodes(), {OrderedTable("a"), spatial, OrderedTable("still here")});
  Database& database = cluster->database(last());
  const Table& a = cluster->table("a", last());
  const Table& boxes = cluster->table("boxes", last());
  const Table& b = cluster->table("still here", last());
  {
    const auto session = cluster->database().OpenSession();
    BulkLoader loader(session->get(), &cluster->table("a"));
    ASSERT_TRUE(loader.Add(1, uint64_t{1}).ok());
    ASSERT_TRUE(Drop(cluster->nodes(), "a").ok());
    ASSERT_TRUE(Drop(cluster->nodes(), "boxes").ok());
    const Status loaded = loader.Finish();
    EXPECT_TRUE(absl::IsFailedPrecondition(loaded)) << loaded;
  }
  uint64_t value = 1;
  std::string text;
  ScanRows rows;
  GetRequest request = GetRequest::Of(a, 1, &value);
  const std::pair<const char*, std::function<Status(BlockingTransaction&)>> operations[] = {
      {"Get", [&](BlockingTransaction& t) { return t.Get(a, 1, &value); }},
      {"Get of a text", [&](BlockingTransaction& t) { return t.Get(a, 1, &text); }},
      {"GetView", [&](BlockingTransaction& t) { return t.GetView(a, 1).status(); }},
      {"GetMany", [&](BlockingTransaction& t) { return t.GetMany(std::span(&request, 1)); }},
      {"GetForUpdate", [&](BlockingTransaction& t) { return t.GetForUpdate(a, 1, &value).status(); }},
      {"Exists", [&](BlockingTransaction& t) { return t.Exists(a, 1).status(); }},
      {"Insert", [&](BlockingTransaction& t) { return t.Insert(a, 1, value); }},
      {"Upsert", [&](BlockingTransaction& t) { return t.Upsert(a, 1, value); }},
      {"Update", [&](BlockingTransaction& t) { return t.Update(a, 1, value); }},
      {"UpdateIf", [&](BlockingTransaction& t) { return t.UpdateIf(a, 1, value, value).status(); }},
      {"Add", [&](BlockingTransaction& t) { return t.Add(a, 1, value); }},
      {"Remove", [&](BlockingTransaction& t) { return t.Remove(a, 1); }},
      {"Scan", [&](BlockingTransaction& t) { return t.Scan(a, {.from = 0, .to = 9}, &rows); }},
      {"Rows", [&](BlockingTransaction& t) { return t.Rows(a).First(); }},
      {"Search",
       [&](BlockingTransaction& t) {
         return t.Search(boxes, {0, 0, 9, 9}, &rows);
       }},
      {"Nearest", [&](BlockingTransaction& t) { return t.Nearest(boxes, {.x = 1, .y = 1}, &rows); }},
  };
  for (const auto& [name, operation] : operations) {
    const Status refused = database.Run(operation);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << name << ": " << refused;
    EXPECT_THAT(Message(refused), HasSubstr("has been dropped")) << name;
  }
  // None of these is a failure: a body may go on after all of them.
  const Status went_on = database.Run([&](BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(b, 1, uint64_t{1}));
    for (const auto& [name, operation] : operations) {
      const Status refused = operation(t);
      EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << name << ": " << refused;
    }
    return t.Add(b, 1, uint64_t{1});
  });
  EXPECT_TRUE(went_on.ok()) << went_on;
  EXPECT_EQ(Get(*cluster, "still here", 1).value(), 2u);
}

// Each node has a session that fills the table everywhere and reads it. All memory of a dropped table is used again, on
// every node: the rounds after the first take nothing new.
TEST_P(DropTableTest, ItsMemoryIsFree) {
  const auto number = static_cast<uint64_t>(nodes());
  const uint64_t rows = nodes() == 1 ? 3000 : 1500;
  for (const Way& way : WaysOf(nodes())) {
    const auto cluster = OpenNodes(nullptr, nodes(), {HashTable("stays")}, way.Options());
    const std::array<std::byte, kPayload> payload{};
    for (const TableOptions& options : SpreadKinds(kPayload, /*variable_length=*/true)) {
      SCOPED_TRACE(testing::Message() << options.name << ", " << way);
      std::vector<uint64_t> first;
      for (int round = 0; round < 3; ++round) {
        const Status created = Create(cluster->nodes(), options);
        ASSERT_TRUE(created.ok()) << created;
        std::vector<std::unique_ptr<Session>> sessions = OpenSessions(*cluster);
        for (uint64_t node = 0; node < number; ++node) {
          const Table& table = cluster->table(options.name, static_cast<int>(node));
          for (uint64_t n = node; n < rows; n += 50 * number) {
            const Status filled = sessions[node]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              for (uint64_t i = n; i < std::min(rows, n + 50 * number); i += number) {
                const index::OwnedKey key = KeyOf(options, i);
                GANNET_CO_RETURN_IF_ERROR(t.Insert(table, key.view(), std::span(payload).first(i % kPayload)));
              }
              co_return absl::OkStatus();
            });
            ASSERT_TRUE(filled.ok()) << filled;
          }
        }
        for (uint64_t node = 0; node < number; ++node) {
          const Table& table = cluster->table(options.name, static_cast<int>(node));
          const Status read = sessions[node]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            std::array<std::byte, kPayload> row;
            for (uint64_t i = 0; i < rows; i += 7) {
              const index::OwnedKey key = KeyOf(options, i);
              const Status got = co_await t.Get(table, key.view(), std::span(row).first(i % kPayload), 0);
              if (!got.ok()) co_return got;
            }
            co_return absl::OkStatus();
          });
          EXPECT_TRUE(read.ok()) << read;
        }
        if (way.path == ReadPathPolicy::kOneSided && options.index == IndexKind::kXStore) {
          EXPECT_EQ(cluster->database().shared_cache_bytes().size(), 1u);
        }
        const Table& table = cluster->table(options.name);
        const Status dropped = Drop(cluster->nodes(), options.name);
        ASSERT_TRUE(dropped.ok()) << dropped;
        const Status late = sessions[0]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
          uint64_t value = 0;
          const index::OwnedKey key = KeyOf(options, 1);
          co_return co_await t.Get(table, key.view(), std::as_writable_bytes(std::span(&value, 1)));
        });
        EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
        EXPECT_THAT(Message(late), HasSubstr(absl::StrCat("table '", options.name, "' has been dropped")));
        for (Database* const node : cluster->nodes()) {
          EXPECT_TRUE(node->shared_cache_bytes().empty());
          EXPECT_EQ(node->state().client_caches.BytesOf(static_cast<TableId>(node->state().next_table - 1)), 0u);
        }
        sessions.clear();
        if (round > 0) continue;
        SleepForNanos(100'000'000);  // the first figures, too, are without blocks whose grace period is not over
        for (const Database* const node : cluster->nodes()) first.push_back(TakenBytes(*node));
      }
      // Blocks that are lent to other nodes stay lent.
      const uint64_t lent = (nodes() == 1 ? uint64_t{64} : uint64_t{128}) << 10;
      for (const Database* const node : cluster->nodes()) ExpectTakenBytes(*node, first[node->node_id()] + lent);
    }
    EXPECT_EQ(cluster->database().table_statistics().size(), 1u);
    EXPECT_TRUE(Put(*cluster, "stays", 1, 1, last()).ok());
  }
}

TEST_P(DropTableTest, ALoadOfADroppedTableHoldsNothingUp) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {HashTable("a")});
    ASSERT_TRUE(Create(cluster->nodes(), OrderedTable("loaded")).ok());
    {
      const auto session = cluster->database().OpenSession();
      BulkLoader loader(session->get(), &cluster->table("loaded"));
      ASSERT_TRUE(loader.Add(1, uint64_t{1}).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(Put(*cluster, "a", 1, 1)));
    ASSERT_TRUE(Drop(cluster->nodes(), "loaded").ok());
    ASSERT_TRUE(Put(*cluster, "a", 1, 1).ok());
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("a"));
  EXPECT_EQ(Get(*cluster, "a", 1).value(), 1u);
}

// A checkpoint that is published while a table is created finds it in the manifest, and not among the tables yet.
TEST_P(DropTableTest, OnlyTablesThatWereDroppedLeaveTheManifest) {
  const auto cluster = OpenNodes(NewDisk(), nodes(), {HashTable("stays"), HashTable("goes")});
  ASSERT_TRUE(Drop(cluster->nodes(), "goes").ok());
  log::Manifest manifest;
  for (const uint16_t id : {0, 1, 2}) {
    manifest.tables.emplace_back().id = id;
    manifest.checkpoints.emplace_back().files.emplace_back().table = id;
  }
  LeaveOutDropped(*cluster->database().state().local, &manifest);
  std::vector<int> tables;
  for (const log::TableDescription& table : manifest.tables) tables.push_back(table.id);
  EXPECT_THAT(tables, ElementsAre(0, 2)) << "the last one is being created";
  EXPECT_EQ(manifest.checkpoints[0].files.size(), 1u);
  EXPECT_TRUE(manifest.checkpoints[1].files.empty());
  EXPECT_EQ(manifest.checkpoints[2].files.size(), 1u);
}

// A checkpoint is in the middle of the table, and would take minutes for it.
TEST_P(DropTableTest, ACheckpointInProgressLeavesItOut) {
  const Disk disk = NewDisk();
  {
    TableOptions large = HashTable("large");
    large.payload_bytes = 60'000;
    const auto cluster =
        OpenNodes(disk, nodes(), {large, HashTable("after it")},
                  {.database = {.checkpoint_log_multiple = 0, .checkpoint_bytes_per_second = kLeastCheckpointRate}});
    const std::vector<std::byte> payload(large.payload_bytes);
    const Status put = cluster->database().Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < 300; ++key) {
        GANNET_RETURN_IF_ERROR(t.Insert(cluster->table("large"), key, payload));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(put.ok()) << put;
    ASSERT_TRUE(Put(*cluster, "after it", 1, 1).ok());
    std::jthread checkpoint([&] {
      const Status taken = cluster->database().Checkpoint();
      EXPECT_TRUE(taken.ok()) << taken;
    });
    for (bool begun = false; !begun; SleepForNanos(1'000'000)) {
      const std::vector<std::string> names = disk->List(DirectoryOf(0, nodes())).value();
      begun = std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("checkpoint"); });
    }
    const Status dropped = Drop(cluster->nodes(), "large");
    EXPECT_TRUE(dropped.ok()) << dropped;
  }
  for (const Disk& each : {Disk(disk->CrashedCopy(1)), disk}) {
    const auto cluster = OpenNodes(each, nodes());
    EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("after it"));
    EXPECT_EQ(Get(*cluster, "after it", 1).value(), 1u);
  }
}

// No manifest can be written: the table is dropped in memory. The directory has all of it until one node's checkpoint,
// and nothing of it afterwards.
TEST_P(DropTableTest, WhereNoDiskWorksANodesCheckpointDropsIt) {
  const Disk disk = NewDisk();
  const auto cluster = OpenNodes(disk, nodes(), {Spread("a"), Spread("b")});
  PutRowsWithCheckpoints(*cluster, "a", 100);
  FailWrites(*disk, "MANIFEST");
  const Status error = Drop(cluster->nodes(), "a");
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  EXPECT_THAT(Message(error), HasSubstr("is dropped here, but"));
  EXPECT_THAT(Message(error), HasSubstr(nodes() == 1 ? "until its next checkpoint" : "until a node's next checkpoint"));
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("b"));
  PutRows(*cluster, "b", 300);
  disk->Heal();
  {
    const auto crashed = OpenAfterCrash(disk, nodes());
    EXPECT_THAT(NamesOnAll(*crashed), ElementsAre("a", "b"));
    ExpectRows(*crashed, "a", 100);
  }
  ASSERT_TRUE(cluster->database(last()).Checkpoint().ok());
  for (const bool all : {false, true}) {
    if (all) {
      ASSERT_TRUE(CheckpointOf(cluster->nodes()).ok());
    }
    const auto crashed = OpenAfterCrash(disk, nodes());
    EXPECT_THAT(NamesOnAll(*crashed), ElementsAre("b"));
    ExpectRows(*crashed, "b", 300);
  }
}

// Threads of all nodes run transactions on all tables, also on those that go, while tables come and go, checkpoints are
// taken, and copies are made.
TEST_P(DropTableTest, TransactionsRunMeanwhile) {
  constexpr size_t kThreads = 3;
  const int rounds = nodes() == 1 ? 120 : 45;
  const std::vector<TableOptions> kinds = SpreadKinds(kPayload, /*variable_length=*/true);
  std::vector<Way> ways = {{}};
  if (nodes() > 1) ways = {{.path = ReadPathPolicy::kOneSided}, {.path = ReadPathPolicy::kCall}, {}};
  for (const Way& way : ways) {
    SCOPED_TRACE(testing::Message() << way);
    const Disk disk = NewDisk();
    std::array<std::atomic<uint64_t>, kThreads> acknowledged{};
    std::atomic<uint64_t> refused{0};
    {
      const auto cluster = OpenNodes(disk, nodes(), {SpreadOrdered("stays")}, way.Options());
      std::atomic<bool> stop{false};
      std::vector<std::jthread> threads;
      const absl::Cleanup end = [&] { stop.store(true); };
      for (size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          Random random(i + 1);
          Database& database = cluster->database(static_cast<int>(i) % nodes());
          const Table& stays = *database.FindTable("stays");
          const auto session = database.OpenSession();
          ASSERT_TRUE(session.ok()) << session.status();
          const std::array<std::byte, kPayload> payload{};
          std::array<std::byte, kPayload> read;
          while (!stop.load()) {
            const std::vector<const Table*> tables = database.tables();
            const Table& one = *tables[random.Below(tables.size())];
            const uint64_t mark = acknowledged[i].load();
            const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              GANNET_CO_RETURN_IF_ERROR(t.Insert(stays, mark * kThreads + i, mark));
              if (&one == &stays) co_return absl::OkStatus();
              const index::OwnedKey key = KeyOf(one.options(), random.Below(500));
              Status status = t.Insert(one, key.view(), std::span(payload).first(random.Below(kPayload)));
              if (status.ok() && random.OneIn(2)) {
                const index::OwnedKey other = KeyOf(one.options(), random.Below(500));
                if (random.OneIn(2)) {
                  status = co_await t.Remove(one, other.view());
                } else {
                  status = co_await t.Get(one, other.view(), std::span(read).first(0), 0);
                }
                if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) status = absl::OkStatus();
              }
              co_return status;
            });
            if (done.ok()) {
              acknowledged[i].store(mark + 1);
            } else if (absl::IsFailedPrecondition(done)) {
              refused.fetch_add(1);
            } else {
              ASSERT_TRUE(absl::IsAlreadyExists(done)) << done;
            }
          }
        });
      }
      for (int round = 0; round < rounds; ++round) {
        const TableOptions& options = kinds[static_cast<size_t>(round) % kinds.size()];
        const Status created = Create(cluster->nodes(), options);
        ASSERT_TRUE(created.ok()) << created;
        SleepForNanos(2'000'000);
        std::jthread other;
        if (round % 10 == 3) {
          other = std::jthread([&, round] {
            const Status taken = cluster->database(round % nodes()).Checkpoint();
            EXPECT_TRUE(taken.ok()) << taken;
          });
        } else if (round % 10 == 7 && nodes() > 1) {
          other = std::jthread([&, round] {
            const Status copied = cluster->database(round % nodes()).Backup(absl::StrCat("/copy-", round));
            EXPECT_TRUE(copied.ok()) << copied;
          });
        }
        const Status dropped = Drop(cluster->nodes(), options.name);
        ASSERT_TRUE(dropped.ok()) << dropped;
      }
    }
    EXPECT_GT(refused.load(), 0u);
    const auto cluster = OpenAfterCrash(disk, nodes());
    EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("stays"));
    uint64_t rows = 0;
    for (size_t i = 0; i < kThreads; ++i) {
      for (uint64_t mark = 0; mark < acknowledged[i].load(); ++mark, ++rows) {
        ASSERT_EQ(Get(*cluster, "stays", mark * kThreads + i).value(), mark);
      }
    }
    EXPECT_EQ(KeysOnAll(*cluster, "stays"), rows);
  }
}

// A session that has used many tables keeps no caches of those that were dropped.
TEST(DropTableOnNodesTest, ASessionForgetsDroppedTables) {
  const auto cluster = OpenNodes(nullptr, kNodes, {}, {.database = {.read_path = ReadPathPolicy::kOneSided}});
  const auto session = cluster->database().OpenSession().value();
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(Create(cluster->nodes(), Spread("a")).ok());
    const Table& a = cluster->table("a");
    const Status put = session->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
      for (uint64_t key = 0; key < kRows; ++key) GANNET_CO_RETURN_IF_ERROR(t.Insert(a, key, key));
      co_return absl::OkStatus();
    });
    ASSERT_TRUE(put.ok()) << put;
    const Status read = session->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
      for (uint64_t key = 0; key < kRows; ++key) {
        uint64_t value = 0;
        const Status got = co_await t.Get(a, key, &value);
        if (!got.ok()) co_return got;
      }
      co_return absl::OkStatus();
    });
    ASSERT_TRUE(read.ok()) << read;
    // One for each other node.
    EXPECT_EQ(std::ranges::count_if(session->state().remote_indexes, [](const auto& one) { return one != nullptr; }),
              kNodes - 1);
    ASSERT_TRUE(Drop(cluster->nodes(), "a").ok());
  }
}

// Calls for a table may be served when it is being dropped, or was: those of a transaction that did not wait for the
// answer. Each thread calls a node all the time, outside of any transaction.
TEST(DropTableOnNodesTest, CallsThatComeLate) {
  constexpr uint64_t kMany = 300;
  const auto cluster = OpenNodes(nullptr, kNodes);
  const Databases& nodes = cluster->nodes();
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> newest{0};
  std::array<std::atomic<uint64_t>, 2> answers{};  // refused, served
  std::vector<std::jthread> threads;
  const absl::Cleanup end = [&] { stop.store(true); };
  for (int i = 1; i < kNodes; ++i) {
    threads.emplace_back([&, i] {
      auto session = nodes[0]->OpenSession();
      ASSERT_TRUE(session.ok());
      std::vector<std::byte> request(256);
      std::vector<std::byte> answer(rdma::kMaxMessageBytes);
      const auto call = [&](rdma::MethodId method, size_t bytes) -> coro::Task<Status> {
        const StatusOr<size_t> got = co_await (*session)->channel().Call(
            static_cast<rdma::NodeId>(i), method, std::span(request).first(bytes), answer, absl::Seconds(5));
        co_return got.status();
      };
      for (uint64_t n = 0; !stop.load(); ++n) {
        const auto table = static_cast<TableId>(newest.load());
        rdma::WireWriter writer(request);
        rdma::MethodId method = kTxnRead;
        if (n % 2 == 0) {
          writer.PutU16(table);
          index::PutKey(writer, index::Key(n % kMany));
        } else {
          method = kTxnScan;
          ScanRequest scan;
          scan.table = table;
          scan.range.from = index::Key(0);
          scan.range.to = index::Key(kMany);
          scan.range.limit = 100;
          Put(writer, scan);
        }
        const Status status = (*session)->worker().BlockOn(call(method, *writer.Finish()));
        const bool refused = absl::IsInvalidArgument(status);
        EXPECT_TRUE(refused || status.ok() || absl::IsAborted(status)) << status;
        answers[refused ? 0 : 1].fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(Create(nodes, SpreadOrdered("a")).ok());
    newest.store(nodes[0]->FindTable("a")->id());
    const Status filled = nodes[1]->Run([&](BlockingTransaction& t) {
      for (uint64_t key = 0; key < kMany; ++key) {
        GANNET_RETURN_IF_ERROR(t.Insert(*nodes[1]->FindTable("a"), key, key));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(filled.ok()) << filled;
    SleepForNanos(1'000'000);
    ASSERT_TRUE(Drop(nodes, "a").ok());
  }
  EXPECT_GT(answers[0].load(), 0u);
  EXPECT_GT(answers[1].load(), 0u);
}

}  // namespace drop_table_test
}  // namespace gannet::txn
