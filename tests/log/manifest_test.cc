// The manifest: round trip, damage, versions, crashes while it is replaced.
#include "log/manifest/manifest.h"

#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/transaction_format.h"
#include "log/manifest/manifest_json.h"

namespace gannet::log {
namespace manifest_test {

constexpr char kDirectory[] = "/data";

Manifest SomeManifest() {
  Manifest manifest;
  manifest.database = "0123456789abcdef0123456789abcdef";
  manifest.started = true;
  manifest.node = 3;
  manifest.num_nodes = 5;
  manifest.application = "tpcc warehouses=2 \"quoted\" \n";
  TableDescription table;
  table.id = 65535;
  table.name = "orders";
  table.integer_keys = false;
  table.max_key_bytes = 64;
  table.index = "xstore";
  table.index_options = "color=green";
  table.index_rights = "owner";
  table.placement = "hash";
  table.application = "columns: a, \"b\"";
  table.key_form = "tuple";
  table.payload_bytes = 1 << 20;
  table.least_payload_bytes = 1 << 20;
  table.variable_length = true;
  table.replicated = true;
  table.expected_rows = ~uint64_t{0};
  table.range_starts = {"0x00", "0xff"};
  manifest.tables = {table, TableDescription{}};
  manifest.next_table = 65536;
  CheckpointDescription checkpoint;
  checkpoint.id = 9;
  checkpoint.begin_epoch = 10;
  checkpoint.end_epoch = 11;
  checkpoint.first_segment = 12;
  checkpoint.wall_nanos = 13;
  checkpoint.all_logged = true;
  checkpoint.files = {{"table-00001-00000", 1, ~uint64_t{0}, 3, 0xffffffff}, {"x", 2, 3, 4, 5}};
  manifest.checkpoints = {checkpoint, CheckpointDescription{}};
  return manifest;
}

TEST(Manifest, RoundTrip) {
  FaultyFileSystem disk(1);
  ASSERT_TRUE(disk.MakeDirectory(kDirectory).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadManifest(disk, kDirectory).status()));
  ASSERT_TRUE(WriteManifest(disk, kDirectory, SomeManifest()).ok());
  const auto read = ReadManifest(disk, kDirectory);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ManifestToJson(*read), ManifestToJson(SomeManifest()));
  EXPECT_EQ(read->database, SomeManifest().database);
  EXPECT_TRUE(read->started);
  EXPECT_EQ(read->node, 3);
  EXPECT_EQ(read->application, SomeManifest().application);
  ASSERT_EQ(read->tables.size(), 2u);
  EXPECT_EQ(read->tables, SomeManifest().tables);
  EXPECT_EQ(read->next_table, 65536u);
  EXPECT_EQ(read->tables[0].name, "orders");
  EXPECT_EQ(read->tables[0].expected_rows, ~uint64_t{0});
  EXPECT_FALSE(read->tables[0].integer_keys);
  EXPECT_TRUE(read->tables[0].variable_length);
  ASSERT_EQ(read->checkpoints.size(), 2u);
  EXPECT_EQ(read->checkpoints[0].first_segment, 12u);
  EXPECT_EQ(read->checkpoints[0].files[0].crc, 0xffffffff);
  EXPECT_TRUE(read->checkpoints[0].all_logged);
  EXPECT_FALSE(read->checkpoints[1].all_logged);
}

TEST(Manifest, TextThatIsNoUtf8IsNoCrash) {
  Manifest manifest;
  manifest.application = "\xff\xfe";
  EXPECT_TRUE(ManifestFromJson(ManifestToJson(manifest)).ok());
}

TEST(Manifest, NewerVersionIsRefusedBySayingSo) {
  Manifest manifest = SomeManifest();
  manifest.version = kNewestManifestVersion + 1;
  const Status status = ManifestFromJson(ManifestToJson(manifest)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("version 6"), std::string::npos) << status;
  // The error does not depend on other changes in a newer version.
  EXPECT_TRUE(absl::IsInvalidArgument(ManifestFromJson(R"({"gannet_manifest": 7, "nodes": []})").status()));
}

// Tables whose keys may be longer than all versions of the log's format know them.
TEST(Manifest, LongKeysMakeItAVersionThatOlderProgramsRefuse) {
  Manifest manifest = SomeManifest();
  manifest.next_table = static_cast<uint32_t>(manifest.tables.size());
  EXPECT_EQ(ManifestFromJson(ManifestToJson(manifest))->version, kManifestVersion);
  manifest.tables.back().integer_keys = false;
  manifest.tables.back().max_key_bytes = kShortKeyBytes;
  EXPECT_EQ(ManifestFromJson(ManifestToJson(manifest))->version, kManifestVersion);
  manifest.tables.back().max_key_bytes = kShortKeyBytes + 1;
  const StatusOr<Manifest> read = ManifestFromJson(ManifestToJson(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, kChangedTablesManifestVersion);
  EXPECT_EQ(read->tables, manifest.tables);
}

// The number of a dropped table must not be given to another one.
TEST(Manifest, ADroppedTableMakesItAVersionThatOlderProgramsRefuse) {
  Manifest manifest = SomeManifest();
  manifest.next_table = static_cast<uint32_t>(manifest.tables.size()) + 1;
  const StatusOr<Manifest> read = ManifestFromJson(ManifestToJson(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, kChangedTablesManifestVersion);
  EXPECT_EQ(read->next_table, manifest.next_table);
}

// Manifests of one database may have different numbers only after a crash, and then not all of them count.
TEST(Manifest, AGenerationMakesItAVersionThatOlderProgramsRefuse) {
  Manifest manifest = SomeManifest();
  EXPECT_EQ(ManifestToJson(manifest).find("catalog_generation"), std::string::npos);
  manifest.catalog_generation = 1;
  const StatusOr<Manifest> read = ManifestFromJson(ManifestToJson(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, kGenerationManifestVersion);
  EXPECT_EQ(read->catalog_generation, 1u);
  std::string text = ManifestToJson(manifest);
  const std::string has = R"("catalog_generation": 1)";
  text.replace(text.find(has), has.size(), R"("catalog_generation": -1)");
  EXPECT_TRUE(absl::IsDataLoss(ManifestFromJson(text).status()));
}

// A program that does not keep secondary indexes would change rows without their entries.
TEST(Manifest, SecondaryIndexesMakeItAVersionThatOlderProgramsRefuse) {
  Manifest manifest = SomeManifest();
  manifest.tables.back().secondary = {.table = 3,
                                      .unique = true,
                                      .complete = true,
                                      .by_function = false,
                                      .fields = {{.source = "payload", .type = "text", .offset = 8, .bytes = 16},
                                                 {.source = "key", .type = "signed", .offset = 0, .bytes = 8}}};
  StatusOr<Manifest> read = ManifestFromJson(ManifestToJson(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, kSecondaryIndexManifestVersion);
  EXPECT_EQ(read->tables, manifest.tables);
  manifest.tables.back().secondary = {.by_function = true};
  read = ManifestFromJson(ManifestToJson(manifest));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tables, manifest.tables);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{R"("unique": false)", R"("unique": 1)"},
                                 {R"("by_function": true)", R"("by_a_function": true)"},
                                 {R"("fields": [])", R"("fields": [{"source": "key"}])"},
                                 {R"("fields": [])", R"("fields": 3)"}}) {
    std::string text = ManifestToJson(manifest);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_TRUE(absl::IsDataLoss(ManifestFromJson(text).status())) << to;
  }
}

TEST(Manifest, UnknownNamesAreIgnored) {
  std::string text = ManifestToJson(SomeManifest());
  text.insert(text.find('{') + 1, R"("a_later_addition": [1, {"b": null}], )");
  EXPECT_TRUE(ManifestFromJson(text).ok());
}

TEST(Manifest, WrongTypesRangesAndNamesAreDataLoss) {
  const std::string good = ManifestToJson(SomeManifest());
  const std::vector<std::pair<std::string, std::string>> replacements = {
      {R"("node": 3)", R"("node": 65536)"},   {R"("node": 3)", R"("node": -1)"},
      {R"("node": 3)", R"("node": 1.5)"},     {R"("node": 3)", R"("node": "3")"},
      {R"("node": 3)", R"("nodes": 3)"},      {R"("integer_keys": false)", R"("integer_keys": 0)"},
      {R"("name": "x")", R"("name": ["x"])"}, {R"("name": "x")", R"("name": "../x")"},
      {R"("name": "x")", R"("name": "")"},    {R"("name": "x")", R"("name": "..")"},
      {R"("tables": [)", R"("tables": [1,)"}, {R"("crc": 5)", R"("crc": 4294967296)"},
      {R"("id": 9)", R"("id": true)"},        {R"("range_starts": [)", R"("range_starts": [1,)"}};
  for (const auto& [from, to] : replacements) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_TRUE(absl::IsDataLoss(ManifestFromJson(text).status())) << to;
  }
  for (const char* text : {"", "{", "[]", "null", "1", "\"x\"", "{}", "{\"gannet_manifest\": \"1\"}"})
    EXPECT_TRUE(absl::IsDataLoss(ManifestFromJson(text).status())) << text;
}

TEST(Manifest, EveryCutTextIsDataLoss) {
  const std::string good = ManifestToJson(SomeManifest());
  const size_t end = good.rfind('}');
  for (size_t length = 0; length <= end; ++length)
    EXPECT_TRUE(absl::IsDataLoss(ManifestFromJson(std::string_view(good).substr(0, length)).status())) << length;
}

TEST(Manifest, DamagedFileIsDataLossAndNamesIt) {
  FaultyFileSystem disk(1);
  ASSERT_TRUE(disk.MakeDirectory(kDirectory).ok());
  ASSERT_TRUE(WriteManifest(disk, kDirectory, SomeManifest()).ok());
  ASSERT_TRUE(disk.FlipBit("/data/MANIFEST", 30, 2).ok());
  const Status status = ReadManifest(disk, kDirectory).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("/data/MANIFEST"), std::string::npos) << status;
}

TEST(Manifest, CrashWhileItIsReplacedLeavesOneOfBoth) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    FaultyFileSystem disk(seed);
    ASSERT_TRUE(disk.MakeDirectory(kDirectory).ok());
    ASSERT_TRUE(disk.SyncDirectory("/").ok());
    ASSERT_TRUE(WriteManifest(disk, kDirectory, SomeManifest()).ok());
    Manifest next = SomeManifest();
    next.application = "next";
    disk.Schedule({.operation = seed % 2 == 0 ? DiskOperation::kSyncDirectory : DiskOperation::kRename});
    EXPECT_FALSE(WriteManifest(disk, kDirectory, next).ok());
    disk.Crash();
    const auto read = ReadManifest(disk, kDirectory);
    ASSERT_TRUE(read.ok()) << seed << " " << read.status();
    EXPECT_TRUE(read->application == "next" || read->application == SomeManifest().application);
  }
}

}  // namespace manifest_test
}  // namespace gannet::log
