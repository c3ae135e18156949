// The catalog: a directory keeps its tables, so they are found by name, and a program need not create them.
#include "txn/durable/catalog.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/catfish/catfish.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/all_nodes.h"
#include "txn/bulk_loader.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/verify.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace catalog_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
// Makes a database with these tables, and closes it.
DiskImage Made(const std::vector<TableOptions>& tables, int nodes = 1) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, tables, nodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE((*cluster)->Close().ok());
  return ImageOf(*disk);
}

void ChangeManifest(log::FileSystem& disk, const std::string& path, const std::function<void(log::Manifest&)>& change) {
  log::Manifest manifest = *log::ReadManifest(disk, path);
  change(manifest);
  ASSERT_TRUE(log::WriteManifest(disk, path, manifest).ok());
}

rdma::NodeId OwnerByParity(const index::Key& key, int nodes) {
  return static_cast<rdma::NodeId>(key.integer() % static_cast<uint64_t>(nodes));
}
Placement ByParity() {
  return {.owner = OwnerByParity,
          .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
}

TEST(CatalogTest, TheDirectoryHasTheWholeSchema) {
  const TableOptions cities{.name = "cities",
                            .key_kind = index::KeyKind::kBytes,
                            .max_key_bytes = 40,
                            .index = IndexKind::kBlink,
                            .index_rights = IndexRights::kOwnerOnly,
                            .payload_bytes = 100,
                            .variable_length = true,
                            .expected_rows = 5000,
                            .placement = Placement::ByHash(),
                            .application = "columns: name, \"Höhe\""};
  const TableOptions places{.name = "places",
                            .key_kind = index::KeyKind::kBytes,
                            .max_key_bytes = index::RectangleKey::kBytes,
                            .index = IndexKind::kCatfish,
                            .index_options = ToText(index::CatfishOptions{.node_entries = 5}),
                            .payload_bytes = 8};
  const DiskImage image = Made({cities, places, OrderedTable("old", Placement::Replicated())});
  const Disk disk = DiskOf(image);
  const auto opened = Database::Open("/data", {.files = disk, .memory_bytes = uint64_t{1} << 30});
  ASSERT_TRUE(opened.ok()) << opened.status();
  Database& database = **opened;
  EXPECT_TRUE(ImageOf(*disk) == image) << "only Start writes";
  EXPECT_THAT(Names(database), ElementsAre("cities", "places", "old"));
  EXPECT_EQ(database.FindTable("towns"), nullptr);
  const Table* const found = database.FindTable("cities");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->options().key_kind, cities.key_kind);
  EXPECT_EQ(found->options().max_key_bytes, cities.max_key_bytes);
  EXPECT_EQ(found->options().index, cities.index);
  EXPECT_EQ(found->options().index_rights, cities.index_rights);
  EXPECT_FALSE(found->index_traits().client_writes);
  EXPECT_EQ(found->options().payload_bytes, cities.payload_bytes);
  EXPECT_TRUE(found->options().variable_length);
  EXPECT_EQ(found->options().expected_rows, cities.expected_rows);
  EXPECT_EQ(found->options().placement.owner, Placement::ByHash().owner);
  EXPECT_EQ(found->placement_name(), kPlacedByHash);
  EXPECT_EQ(found->options().application, cities.application);
  EXPECT_THAT(database.FindTable("places")->options().index_options, HasSubstr("node_entries=5"));
  EXPECT_TRUE(database.FindTable("old")->options().placement.replicated);
  EXPECT_EQ(database.table_statistics().size(), 3u) << "also before Start";

  ASSERT_TRUE(database.Start().ok());
  EXPECT_EQ(database.FindTable("cities"), found);
  EXPECT_TRUE(
      database.Run([&](auto& t) { return t.Insert(*found, std::string_view("Zürich"), std::span<const std::byte>()); })
          .ok());
}

TEST(CatalogTest, AProgramThatLacksATableKeepsItsRows) {
  for (const int nodes : {1, 2}) {
    const Disk disk = NewDisk();
    const std::vector<TableOptions> all = {HashTable("a", Placement::ByHash()), OrderedTable("b", Placement::ByHash())};
    for (uint64_t run = 0; run < 4; ++run) {
      // Runs 1 and 3 create nothing; run 2 creates one table that was there, and a new one.
      std::vector<TableOptions> created = all;
      if (run % 2 == 1) created.clear();
      if (run == 2) created = {HashTable("c"), all[1]};
      auto cluster = Open(disk, created, nodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (const char* table : {"a", "b"}) {
        for (uint64_t key = 0; key < run * 10; ++key) EXPECT_EQ(Get(**cluster, table, key).value(), key);
        for (uint64_t key = run * 10; key < run * 10 + 10; ++key) ASSERT_TRUE(Put(**cluster, table, key, key).ok());
      }
      if (run == 2) {
        ASSERT_TRUE(Put(**cluster, "c", 1, 100).ok());
      }
      if (run == 3) {
        EXPECT_EQ(Get(**cluster, "c", 1).value(), 100u);
      }
      for (int node = 0; run > 0 && node < nodes; ++node) ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
      ASSERT_TRUE((*cluster)->Close().ok());
    }
  }
}

TEST(CatalogTest, TheOrderOfCreationDoesNotMatter) {
  const std::vector<TableOptions> tables = {HashTable("a"), HashTable("b"), HashTable("c")};
  const Disk disk = DiskOf(Made(tables));
  {
    auto cluster = Open(disk, tables);
    for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Put(**cluster, tables[i].name, 1, i).ok());
  }
  auto cluster = Open(disk, {HashTable("new"), tables[2], tables[0]});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(Get(**cluster, tables[i].name, 1).value(), i);
  EXPECT_THAT(Names((*cluster)->database()), ElementsAre("a", "b", "c", "new"));
}

TEST(CatalogTest, AnotherDefinitionIsRefusedByName) {
  const TableOptions table = OrderedTable("t", Placement::ByHash());
  const Disk disk = DiskOf(Made({table}, 2));
  const DiskImage image = ImageOf(*disk);
  const std::vector<std::pair<std::string, std::function<void(TableOptions&)>>> changes = {
      {"index xstore", [](TableOptions& t) { t.index = IndexKind::kHash; }},
      {"integer keys", [](TableOptions& t) { t.key_kind = index::KeyKind::kBytes; }},
      {"payloads of 8 bytes", [](TableOptions& t) { t.payload_bytes = 9; }},
      {"payloads of 8 bytes", [](TableOptions& t) { t.variable_length = true; }},
      {"placed by hash", [](TableOptions& t) { t.placement = Placement::OnFirstNode(); }},
      {"placed by hash", [](TableOptions& t) { t.placement = ByParity(); }},
      {"placed by hash", [](TableOptions& t) { t.placement = Placement::ByRange({1}); }},
      {"placed by hash", [](TableOptions& t) { t.placement = Placement::Replicated(); }},
  };
  for (const auto& [says, change] : changes) {
    TableOptions other = table;
    change(other);
    const Status refused = Open(disk, {other}, 2).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("table 't' in the directory is "));
    EXPECT_THAT(Message(refused), HasSubstr(says));
  }
  EXPECT_TRUE(ImageOf(*disk) == image);
}

TEST(CatalogTest, HintsAndNotesMayChange) {
  TableOptions table{.name = "t",
                     .index = IndexKind::kBlink,
                     .index_rights = IndexRights::kOwnerOnly,
                     .payload_bytes = 8,
                     .expected_rows = 10,
                     .application = "first"};
  const Disk disk = DiskOf(Made({table}));
  table.index_rights = {};
  table.expected_rows = 2000;
  table.application = "";
  {
    auto cluster = Open(disk, {table});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const TableOptions& now = (*cluster)->table("t").options();
    EXPECT_EQ(now.index_rights, IndexRights::kOwnerOnly);
    EXPECT_EQ(now.application, "first");
    EXPECT_EQ(now.expected_rows, 2000u);
  }
  table.index_rights = IndexRights::kClients;
  table.application = "second";
  ASSERT_TRUE(Open(disk, {table}).ok());
  auto cluster = Open(disk);
  const TableOptions& kept = (*cluster)->table("t").options();
  EXPECT_EQ(kept.index_rights, IndexRights::kClients);
  EXPECT_EQ(kept.application, "second");
  EXPECT_EQ(kept.expected_rows, 2000u);
}

TEST(CatalogTest, EachTableIsCreatedOnceByAProgram) {
  const Disk disk = DiskOf(Made({HashTable("t"), HashTable("u")}));
  auto cluster = Open(disk, {HashTable("t")});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  EXPECT_TRUE(absl::IsAlreadyExists(database.CreateTable(HashTable("t")).status()));
  ASSERT_TRUE(Put(**cluster, "u", 1, 1).ok());
  // A table that is there may also be created late, as it is.
  TableOptions noted = HashTable("u");
  noted.application = "late";
  const Status late = database.CreateTable(noted).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
  EXPECT_THAT(Message(late), HasSubstr("TableOptions::application"));
  const auto u = database.CreateTable(HashTable("u"));
  ASSERT_TRUE(u.ok()) << u.status();
  EXPECT_EQ(*u, &(*cluster)->table("u"));
  EXPECT_EQ(Get(**cluster, "u", 1).value(), 1u) << "its rows stay";
  EXPECT_TRUE(absl::IsAlreadyExists(database.CreateTable(HashTable("u")).status()));
}

TEST(CatalogTest, WrongNotesAndPlacementsAreRefused) {
  auto database = Database::Open("/data", {.create_if_missing = true, .files = NewDisk(), .memory_bytes = 1 << 28});
  ASSERT_TRUE(database.ok()) << database.status();
  TableOptions table = HashTable("t");
  table.application = std::string(4097, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(table).status()));
  table.application = "\xff";
  EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(table).status()));
  EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(HashTable("t", Placement::Unknown())).status()));
}

// --- Placements by functions of a program ---

void ExpectUnknownOwners(const Status& status) {
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("table 'own'"));
  EXPECT_THAT(Message(status), HasSubstr("TableOptions::placement"));
}

TEST(CatalogTest, AFunctionOfAnotherProgramIsMissed) {
  const TableOptions own = OrderedTable("own", ByParity());
  const Disk disk = NewDisk();
  for (int run = 0; run < 3; ++run) {
    auto cluster = Open(disk, run == 1 ? std::vector<TableOptions>{} : std::vector{own}, 2);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    if (run == 0) {
      for (uint64_t key = 0; key < 10; ++key) ASSERT_TRUE(Put(**cluster, "own", key, key).ok());
    }
    if (run == 2) {
      for (uint64_t key = 0; key < 10; ++key) EXPECT_EQ(Get(**cluster, "own", key).value(), key);
    }
    if (run != 1) continue;
    for (int node = 0; node < 2; ++node) {
      Database& database = (*cluster)->database(node);
      const Table& table = (*cluster)->table("own", node);
      EXPECT_FALSE(table.knows_owners());
      ExpectUnknownOwners(Get(**cluster, "own", 1, node).status());
      ExpectUnknownOwners(Put(**cluster, "own", 1, 2, node));
      ExpectUnknownOwners(database.Run([&](auto& t) { return t.Insert(table, 100, uint64_t{1}); }));
      ScanRows rows;
      ExpectUnknownOwners(database.Run([&](auto& t) { return t.Scan(table, {.from = 0, .to = 100}, &rows); }));
      ExpectUnknownOwners(database.Run([&](auto& t) { return t.Rows(table).First(); }));
      std::vector<uint64_t> values(2);
      std::vector<GetRequest> requests(2);
      for (uint64_t i = 0; i < 2; ++i) {
        requests[i].table = &table;
        requests[i].key = i;
        requests[i].out = std::as_writable_bytes(std::span(&values[i], 1));
      }
      ExpectUnknownOwners(database.Run([&](auto& t) { return t.GetMany(requests); }));
      auto session = database.OpenSession();
      ASSERT_TRUE(session.ok());
      ExpectUnknownOwners(BulkLoader(session->get(), &table).Add(1, uint64_t{1}));
      ExpectUnknownOwners(BulkLoader(session->get(), &table).Add(2, uint64_t{1}));
    }
    const Status late = (*cluster)->database().CreateTable(own).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
    for (int node = 0; node < 2; ++node) ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
  }
  const Status refused = Open(disk, {OrderedTable("own", Placement::ByHash())}, 2).status();
  EXPECT_THAT(Message(refused), HasSubstr("is placed by a function of the program"));
}

TEST(CatalogTest, ARectangleOfAnotherProgramsPlacementIsMissed) {
  Placement placement{.owner = [](const index::Key&, int) -> rdma::NodeId { return 1; },
                      .range_owner = [](const index::Key&, const index::Key&, int) { return 1; }};
  const TableOptions own{.name = "own",
                         .key_kind = index::KeyKind::kBytes,
                         .max_key_bytes = index::RectangleKey::kBytes,
                         .index = IndexKind::kCatfish,
                         .payload_bytes = 8,
                         .placement = placement};
  auto cluster = Open(DiskOf(Made({own}, 2)), {}, 2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Table& table = (*cluster)->table("own");
  ScanRows rows;
  ExpectUnknownOwners((*cluster)->database().Run([&](auto& t) { return t.Search(table, {0, 0, 1, 1}, &rows); }));
  ExpectUnknownOwners(
      (*cluster)->database().Run([&](auto& t) { return t.Nearest(table, {.x = 0, .y = 0, .count = 1}, &rows); }));
}

TEST(CatalogTest, WithOneDataNodeNoFunctionIsNeeded) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {HashTable("own", ByParity())});
    ASSERT_TRUE(Put(**cluster, "own", 1, 1).ok());
  }
  {
    auto cluster = Open(disk);
    EXPECT_EQ(Get(**cluster, "own", 1).value(), 1u);
    EXPECT_EQ((*cluster)->table("own").placement_name(), kPlacedByFunction);
  }
  EXPECT_TRUE(Open(disk, {HashTable("own", Placement::ByHash())}).ok());
}

// --- Manifests ---

TEST(CatalogTest, ANodeThatNotedFewerTablesGetsThem) {
  const std::vector<TableOptions> tables = {HashTable("a", Placement::ByHash()), HashTable("b", Placement::ByHash())};
  for (int node = 0; node < 2; ++node) {
    const Disk disk = DiskOf(Made(tables, 2));
    ChangeManifest(*disk, NodeDirectory("/data", node, 2), [](log::Manifest& manifest) {
      manifest.tables.pop_back();
      manifest.next_table = 1;
    });
    auto cluster = Open(disk, {}, 2);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint64_t key = 0; key < 10; ++key) EXPECT_TRUE(Put(**cluster, "b", key, key).ok());
    const auto nodes = ReadDataDirectory(*disk, "/data");
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    for (const NodeData& each : *nodes) {
      EXPECT_EQ(each.manifest.tables.size(), 2u);
      EXPECT_EQ(each.manifest.next_table, 2u);
    }
  }
}

TEST(CatalogTest, ManifestsThatContradictEachOtherAreRefused) {
  const DiskImage image = Made({HashTable("a"), HashTable("b")}, 2);
  for (const auto& change : std::vector<std::function<void(log::Manifest&)>>{
           [](log::Manifest& manifest) { manifest.tables[1].name = "c"; },
           [](log::Manifest& manifest) { std::swap(manifest.tables[0].id, manifest.tables[1].id); },
           [](log::Manifest& manifest) { manifest.tables[1].id = 0; },
           [](log::Manifest& manifest) { manifest.tables[1].id = 2; }}) {
    const Disk disk = DiskOf(image);
    ChangeManifest(*disk, "/data/node-1", change);
    const Status refused = Open(disk, {}, 2).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("/data/node-1/MANIFEST has table '"));
  }
}

TEST(CatalogTest, NoNumberIsUsedTwice) {
  const Disk disk = DiskOf(Made({HashTable("a"), HashTable("b")}));
  // The manifest is as it would be if tables 1 to 6 had been removed.
  ChangeManifest(*disk, "/data", [](log::Manifest& manifest) {
    manifest.tables.pop_back();
    manifest.next_table = 7;
  });
  {
    auto cluster = Open(disk, {HashTable("c"), OrderedTable("d")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ((*cluster)->table("c").id(), 7);
    EXPECT_EQ((*cluster)->table("d").id(), 8);
    for (const char* name : {"a", "c", "d"}) ASSERT_TRUE(Put(**cluster, name, 1, 10).ok());
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    for (const char* name : {"a", "c", "d"}) ASSERT_TRUE(Put(**cluster, name, 2, 20).ok());
  }
  {
    auto cluster = Open(disk);
    for (const char* name : {"a", "c", "d"}) {
      EXPECT_EQ(Get(**cluster, name, 1).value(), 10u);
      EXPECT_EQ(Get(**cluster, name, 2).value(), 20u);
    }
  }
  ChangeManifest(*disk, "/data", [](log::Manifest& manifest) { manifest.next_table = 65536; });
  const Status full = Open(disk, {HashTable("e")}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(Open(disk).ok());
}

TEST(CatalogTest, WhatThisProgramDoesNotKnowIsNamed) {
  const DiskImage image = Made({HashTable("a")});
  for (const auto& change : std::vector<std::function<void(log::TableDescription&)>>{
           [](log::TableDescription& table) { table.index = "lsm"; },
           [](log::TableDescription& table) { table.index_rights = "lsm"; },
           [](log::TableDescription& table) { table.key_form = "lsm"; },
           [](log::TableDescription& table) { table.placement = "lsm"; }}) {
    const Disk disk = DiskOf(image);
    ChangeManifest(*disk, "/data", [&](log::Manifest& manifest) { change(manifest.tables[0]); });
    const Status refused = Open(disk).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("table 'a' of the manifest: "));
    EXPECT_THAT(Message(refused), HasSubstr("lsm"));
  }
}

// The power goes while a start notes new tables: afterwards each is there or not, and can be created.
TEST(CatalogTest, APowerCutLeavesTheOldTablesOrTheNewOnes) {
  for (const int nodes : {1, 2}) {
    const Disk first = NewDisk();
    {
      auto cluster = Open(first, {HashTable("old", Placement::ByHash())}, nodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (uint64_t key = 0; key < 5; ++key) ASSERT_TRUE(Put(**cluster, "old", key, key).ok());
      ASSERT_TRUE((*cluster)->Close().ok());
    }
    const DiskImage image = ImageOf(*first);
    int with = 0;
    int without = 0;
    for (uint64_t at = 1;; ++at) {
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      disk->SetOptions({.before = [&](log::DiskOperation, const std::string&) {
        if (operations.fetch_add(1) + 1 == at) disk->PowerOff();
      }});
      bool acknowledged = false;
      {
        auto cluster = DurableCluster::Open(disk, {OrderedTable("new", Placement::ByHash())},
                                            {.nodes = nodes, .database = {.durable_within = absl::Milliseconds(20)}});
        acknowledged = cluster.ok() && Put(**cluster, "new", 1, 1).ok();
        disk->SetOptions({});
      }
      if (operations.load() < at) break;
      disk->Heal();
      auto cluster = Open(disk->CrashedCopy(at), {}, nodes);
      ASSERT_TRUE(cluster.ok()) << "at operation " << at << ": " << cluster.status();
      for (uint64_t key = 0; key < 5; ++key) EXPECT_EQ(Get(**cluster, "old", key).value(), key);
      const bool there = (*cluster)->database().FindTable("new") != nullptr;
      ++(there ? with : without);
      EXPECT_TRUE(there || !acknowledged);
      if (acknowledged) {
        EXPECT_EQ(Get(**cluster, "new", 1).value(), 1u);
      }
      if (there) {
        ASSERT_TRUE(Put(**cluster, "new", 2, 2).ok());
      }
    }
    EXPECT_GT(with, 0);
    EXPECT_GT(without, 0);
  }
}

// --- Directories of the version before the catalog, made by that version ---

// The directory tests/txn/directories/<name> as /data.
DiskImage KeptDirectory(const std::string& name) {
  const std::filesystem::path root = std::filesystem::path(GANNET_KEPT_DIRECTORIES) / name;
  DiskImage image;
  image["/data"] = std::nullopt;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = "/data/" + entry.path().lexically_relative(root).string();
    if (entry.is_directory()) {
      image[path] = std::nullopt;
      continue;
    }
    std::ifstream in(entry.path(), std::ios::binary);
    image[path] = std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  return image;
}

TEST(KeptDirectoryTest, OfOneNode) {
  const DiskImage image = KeptDirectory("v2/nodes-1");
  const TableOptions words{.name = "words",
                           .key_kind = index::KeyKind::kBytes,
                           .max_key_bytes = 16,
                           .index = IndexKind::kXStore,
                           .payload_bytes = 8};
  for (const auto& tables : {std::vector<TableOptions>{}, std::vector{words}}) {
    const Disk disk = DiskOf(image);
    for (int again = 0; again < 2; ++again) {
      auto cluster = Open(disk, tables);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database();
      EXPECT_THAT(Names(database), ElementsAre("cities", "counters", "words"));
      EXPECT_EQ((*cluster)->table("cities").options().index_rights, IndexRights::kClients) << "they were not kept";
      for (uint64_t i = 0; i < 20; ++i) {
        EXPECT_EQ(Get(**cluster, "counters", i).value(), i + 100);
        const std::string city = "city " + std::to_string(i);
        const std::string word = "word " + std::to_string(i);
        std::string mayor;
        uint64_t number = 0;
        const Status read = database.Run([&](BlockingTransaction& t) {
          GANNET_RETURN_IF_ERROR(t.Get((*cluster)->table("cities"), std::string_view(city), &mayor));
          return t.Get((*cluster)->table("words"), std::string_view(word), &number);
        });
        ASSERT_TRUE(read.ok()) << read;
        EXPECT_EQ(mayor, "mayor " + std::to_string(i * i));
        EXPECT_EQ(number, i);
      }
      EXPECT_EQ(log::ReadManifest(*disk, "/data")->next_table, 3u);
    }
  }
}

// A directory that was written before files had an identity gets files that have it, wherever the first run of this
// version ends. `version`: of its manifest; that of version 1 has no identity, either.
TEST(KeptDirectoryTest, ItsNewFilesHaveItsIdentity) {
  for (const uint32_t version : {1u, 2u}) {
    const Disk kept = DiskOf(KeptDirectory("v2/nodes-1"));
    ChangeManifest(*kept, "/data", [&](log::Manifest& manifest) { manifest.version = version; });
    const DiskImage image = ImageOf(*kept);
    bool done = false;
    for (uint64_t at = 1; !done; at += 3) {
      SCOPED_TRACE(absl::StrCat("version ", version, ", power cut at operation ", at));
      const auto disk = DiskOf(image);
      std::atomic<uint64_t> operations{0};
      disk->SetOptions({.before = [&](log::DiskOperation, const std::string&) {
        if (operations.fetch_add(1) + 1 == at) disk->PowerOff();
      }});
      bool put = false;
      {
        auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(20)}});
        put = cluster.ok() && Put(**cluster, "counters", 1000, 7).ok();
      }
      disk->SetOptions({});
      done = operations.load() < at;
      disk->Heal();
      const Disk left = disk->CrashedCopy(at);
      {
        auto cluster = Open(left, {});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(Get(**cluster, "counters", i).value(), i + 100);
        if (put) {
          EXPECT_EQ(Get(**cluster, "counters", 1000).value(), 7u);
        }
        ASSERT_TRUE((*cluster)->Close().ok());
      }
      const auto verified = VerifyDataDirectory(*left, "/data", 1);
      ASSERT_TRUE(verified.ok()) << verified.status();
      for (const Problem& problem : verified->problems) ADD_FAILURE() << ToText(problem);
      const std::string identity = log::ReadManifest(*left, "/data")->database;
      EXPECT_EQ(identity.size(), 32u);
      EXPECT_EQ(log::ReadEndNote(*left, "/data")->database.ToText(), identity);
      const DiskImage now = ImageOf(*left);
      std::string last;
      for (const auto& [path, content] : now) {
        if (path.starts_with("/data/log-")) last = path;
      }
      EXPECT_EQ(log::LoadIdentity(std::as_bytes(std::span(*now.at(last))).data() + 88).ToText(), identity) << last;
    }
  }
}

// The directory was made by the version that began with secondary indexes; one is older than the checkpoint, one newer.
TEST(KeptDirectoryTest, WithSecondaryIndexes) {
  const Disk disk = DiskOf(KeptDirectory("v4/secondary-indexes"));
  for (int again = 0; again < 2; ++again) {
    auto cluster = Open(disk);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    EXPECT_THAT(Names(database), ElementsAre("people", "by_city", "by_mail"));
    EXPECT_TRUE(database.FindIndex("by_city")->is_complete());
    EXPECT_TRUE(database.FindIndex("by_mail")->is_complete());
    PeopleRows rows;
    const Status same = ComparePeople(database, &rows);
    EXPECT_TRUE(same.ok()) << same;
    EXPECT_EQ(rows.size(), 24u);
    EXPECT_EQ(rows.at(24).city, 7u);
    EXPECT_TRUE(absl::IsAlreadyExists(
        database.Run([&](auto& t) { return t.Insert(*database.FindTable("people"), 99, MakePerson("p5", 1)); })));
    ASSERT_TRUE(database.CreateIndex(ByCity()).ok());
    ASSERT_TRUE(database.CreateIndex(ByMail()).ok());
  }
}

TEST(KeptDirectoryTest, OfTwoNodes) {
  const DiskImage image = KeptDirectory("v2/nodes-2");
  {
    // The manifests of the directory do not say how the first two are placed, so nobody knows unless the program does.
    const Disk disk = DiskOf(image);
    for (int again = 0; again < 2; ++again) {
      auto cluster = Open(disk, {}, 2);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_THAT(Names((*cluster)->database()), ElementsAre("hashed", "own", "ranges"));
      for (uint64_t key = 0; key < 20; ++key) EXPECT_EQ(Get(**cluster, "ranges", key).value(), key + 100);
      EXPECT_TRUE(absl::IsFailedPrecondition(Get(**cluster, "hashed", 1).status()));
      ExpectUnknownOwners(Get(**cluster, "own", 1).status());
    }
    auto cluster = Open(disk,
                        {{.name = "own", .payload_bytes = 8, .placement = ByParity()},
                         {.name = "hashed", .payload_bytes = 8, .placement = Placement::ByHash()}},
                        2);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (int node = 0; node < 2; ++node) {
      for (const char* table : {"hashed", "own", "ranges"}) {
        for (uint64_t key = 0; key < 20; ++key) EXPECT_EQ(Get(**cluster, table, key, node).value(), key + 100);
      }
    }
    ASSERT_TRUE((*cluster)->Close().ok());
    cluster = Open(disk, {}, 2);
    EXPECT_EQ(Get(**cluster, "hashed", 1).value(), 101u) << "its placement is kept now";
  }
}

// --- The directory of the present version: two nodes that have changed their catalog together ---

constexpr uint64_t kKeptRows = 24;

std::string LongKey(uint64_t i, size_t most) {
  std::string key = absl::StrCat("key ", i % 10, " ", i);
  if (i % 3 == 0) key.resize(most, 'x');
  return key;
}

std::vector<TableOptions> KeptTables() {
  TableOptions words{.name = "words", .key_kind = index::KeyKind::kBytes, .max_key_bytes = 1000, .payload_bytes = 8};
  words.placement = Placement::ByHash();
  TableOptions names = words;
  names.name = "names";
  names.index = IndexKind::kXStore;
  names.max_key_bytes = 200;
  TableOptions persons = People();
  persons.name = "persons";
  persons.placement = Placement::ByHash();
  return {words, names, persons};
}

Status PutKept(DurableCluster& cluster, uint64_t i) {
  return cluster.database(static_cast<int>(i % 2)).Run([&](BlockingTransaction& t) -> Status {
    const int node = static_cast<int>(i % 2);
    const std::string word = LongKey(i, 1000);
    const std::string name = LongKey(i, 200);
    GANNET_RETURN_IF_ERROR(t.Insert(cluster.table("words", node), std::string_view(word), i));
    GANNET_RETURN_IF_ERROR(t.Insert(cluster.table("names", node), std::string_view(name), i * i));
    return t.Insert(cluster.table("people", node), i, MakePerson(absl::StrCat("p", i), static_cast<uint32_t>(i % 5)));
  });
}

// What made tests/txn/directories/v5/nodes-2, and what a crash left: half of the rows are newer than the checkpoint.
DiskImage MakeNodesOfThisVersion() {
  const Disk disk = NewDisk();
  SecondaryIndexOptions by_city = ByCity();
  SecondaryIndexOptions by_mail = ByMail();
  by_city.table = by_mail.table = "persons";
  auto cluster =
      DurableCluster::Open(disk, KeptTables(),
                           {.nodes = 2,
                            .database = {.log_segment_bytes = uint64_t{64} << 10, .log_buffer_bytes = size_t{16} << 10},
                            .indexes = {by_city, by_mail}});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  Database* const nodes[] = {&(*cluster)->database(0), &(*cluster)->database(1)};
  EXPECT_TRUE(RenameTableOnAllNodes(nodes, "persons", "people").ok());
  EXPECT_TRUE(CreateTableOnAllNodes(nodes, OrderedTable("created", Placement::ByHash())).ok());
  for (uint64_t i = 0; i < kKeptRows; ++i) {
    if (i == kKeptRows / 2) {
      for (Database* const node : nodes) EXPECT_TRUE(node->Checkpoint().ok());
    }
    const Status put = PutKept(**cluster, i);
    EXPECT_TRUE(put.ok()) << put;
    EXPECT_TRUE(Put(**cluster, "created", i, i + 7).ok());
  }
  disk->PowerOff();
  cluster->reset();
  disk->PowerOn();
  return ImageOf(*disk);
}

void ExpectKeptRows(DurableCluster& cluster, uint64_t rows) {
  for (int node = 0; node < 2; ++node) {
    for (uint64_t i = 0; i < rows; ++i) {
      const std::string word = LongKey(i, 1000);
      const std::string name = LongKey(i, 200);
      uint64_t of_word = 0;
      uint64_t of_name = 0;
      const Status read = cluster.database(node).Run([&](BlockingTransaction& t) -> Status {
        GANNET_RETURN_IF_ERROR(t.Get(cluster.table("words", node), std::string_view(word), &of_word));
        return t.Get(cluster.table("names", node), std::string_view(name), &of_name);
      });
      ASSERT_TRUE(read.ok()) << "row " << i << ": " << read;
      EXPECT_EQ(of_word, i);
      EXPECT_EQ(of_name, i * i);
      EXPECT_EQ(Get(cluster, "created", i, node).value(), i + 7);
    }
    PeopleRows people;
    const Status same = ComparePeople(cluster.database(node), &people);
    EXPECT_TRUE(same.ok()) << same;
    EXPECT_EQ(people.size(), rows);
    for (const char* name : {"names", "people", "created"})
      EXPECT_TRUE(cluster.table(name, node).local_index().CheckStructure().ok()) << name;
  }
}

// Opens, verifies and uses the directory, and changes its catalog once more.
void ExpectNodesOfThisVersion(const DiskImage& image) {
  const Disk disk = DiskOf(image);
  for (int node = 0; node < 2; ++node) {
    const log::Manifest manifest = log::ReadManifest(*disk, NodeDirectory("/data", node, 2)).value();
    EXPECT_EQ(manifest.catalog_generation, 2u);
  }
  const auto verified = VerifyDataDirectory(*disk, "/data", 2);
  ASSERT_TRUE(verified.ok()) << verified.status();
  for (const Problem& problem : verified->problems) ADD_FAILURE() << ToText(problem);
  EXPECT_EQ(verified->nodes.size(), 2u);
  uint64_t rows = kKeptRows;
  for (uint64_t again = 0; again < 3; ++again) {
    auto cluster = Open(disk, {}, 2);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(Names((*cluster)->database(1)),
                ElementsAre("words", "names", "people", "by_city", "by_mail", "created"));
    ExpectKeptRows(**cluster, rows);
    if (testing::Test::HasFailure()) return;
    ASSERT_TRUE(PutKept(**cluster, rows).ok());
    ASSERT_TRUE(Put(**cluster, "created", rows, rows + 7).ok());
    ++rows;
    Database* const nodes[] = {&(*cluster)->database(0), &(*cluster)->database(1)};
    ASSERT_TRUE(RenameTableOnAllNodes(nodes, "people", "folk").ok());
    ASSERT_TRUE(RenameTableOnAllNodes(nodes, "folk", "people").ok());
    if (again == 1) {
      for (Database* const node : nodes) ASSERT_TRUE(node->Checkpoint().ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
    for (int node = 0; node < 2; ++node) {
      EXPECT_EQ(log::ReadManifest(*disk, NodeDirectory("/data", node, 2))->catalog_generation, 4 + 2 * again);
    }
  }
}

TEST(KeptDirectoryTest, OfTwoNodesThatChangedTheirCatalog) {
  const DiskImage image = KeptDirectory("v5/nodes-2");
  for (int node = 0; node < 2; ++node) {
    EXPECT_EQ(log::ReadManifest(*DiskOf(image), NodeDirectory("/data", node, 2))->version, 5u);
  }
  ExpectNodesOfThisVersion(image);
}

// What this program makes now is what was kept. With GANNET_KEEP_IN it is also written into that directory.
TEST(KeptDirectoryTest, MakesWhatIsKept) {
  const DiskImage image = MakeNodesOfThisVersion();
  ExpectNodesOfThisVersion(image);
  const char* const directory = std::getenv("GANNET_KEEP_IN");
  if (directory == nullptr) return;
  for (const auto& [path, content] : image) {
    const std::string to = absl::StrCat(directory, path.substr(std::string("/data").size()));
    if (!content.has_value()) {
      std::filesystem::create_directories(to);
    } else if (!absl::StrContains(path, "new-segment")) {  // one that the log had not begun
      std::ofstream(to, std::ios::binary) << *content;
    }
  }
}

}  // namespace catalog_test
}  // namespace gannet::txn
