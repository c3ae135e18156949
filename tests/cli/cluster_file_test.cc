// The parts of a cluster file that only the commands read (see also tests/cluster/config_test.cc).
#include "cli/serve/cluster_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace cluster_file_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A file with `tables`, followed by those of two servers.
std::string With(const std::string& tables) {
  return absl::StrCat("fabric = \"shm\"\n[shm]\nmemory_file = \"x\"\n", tables,
                      "\n[[server]]\nid = 0\nmemory = \"64M\"\n[[server]]\nid = 1\nmemory = \"64M\"\n");
}

struct Mistake {
  std::string tables;
  std::string begins;
  std::string says;
};

void ExpectTold(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    const Status status = ParseClusterFile(With(mistake.tables), "c.toml").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << "\n" << mistake.tables;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(mistake.begins), HasSubstr(mistake.says)));
  }
}

TEST(ClusterFileTest, SaysWhatTpccLoads) {
  const StatusOr<ClusterFile> file =
      ParseClusterFile(With("[tpcc]\nwarehouses = 5\nseed = 7\nordered_index = \"rolex\""), "c.toml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tpcc->warehouses, 5);
  EXPECT_EQ(file->tpcc->seed, 7u);
  EXPECT_EQ(file->tpcc->items, 100000u);
  EXPECT_EQ(file->tpcc->customers_per_district, 3000u);
  EXPECT_EQ(SchemaOf(*file->tpcc).ordered_index, index::IndexKind::kRolex);
  EXPECT_EQ(SchemaOf(*file->tpcc).index_rights, std::nullopt);
  const StatusOr<ClusterFile> owner =
      ParseClusterFile(With("[tpcc]\nwarehouses = 5\nordered_index = \"blink\"\nindex_rights = \"owner\""), "c.toml");
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_EQ(SchemaOf(*owner->tpcc).index_rights, index::IndexRights::kOwnerOnly);
}

TEST(ClusterFileTest, MistakesAboutTpccAreTold) {
  ExpectTold({
      {"", "c.toml: ", "has neither the table [tpcc] nor [ycsb]"},
      {"[tpcc]\nwarehouses = 1", "c.toml:5: [tpcc] warehouses: ", "from 2 to 65535"},
      {"[tpcc]\nwarehouses = 2\nseed = -7", "c.toml:6: [tpcc] seed: ", "a whole number from 0"},
      {"[tpcc]\nwarehouses = 2\nordered_index = \"hash\"",
       "c.toml:6: [tpcc] ordered_index: ", "must be xstore, blink, rolex, dex or dolphin"},
      {"[tpcc]\nwarehouses = 2\nindex_rights = \"anybody\"",
       "c.toml:6: [tpcc] index_rights: ", "must be owner or clients"},
      {"[tpcc]\nwarehouses = 2\nindex_rights = \"clients\"",
       "c.toml:6: [tpcc] index_rights: ", "clients cannot change an index of kind xstore"},
      {"[tpcc]\nwarehouses = 2\nsede = 7", "c.toml:6: [tpcc] sede: ", "no such key"},
  });
}

TEST(ClusterFileTest, SaysWhatYcsbLoads) {
  const StatusOr<ClusterFile> file = ParseClusterFile(
      With("[ycsb]\nkeys = 20_000\nindex = \"hash\"\nkeyspace = \"noised\"\nvalue_bytes = 100\nfill_percent = 75\n"
           "sub_models = 3\nupdates = \"one-sided\""),
      "c.toml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->tpcc.has_value());
  const ycsb::ClusterOptions& options = file->ycsb->options;
  EXPECT_EQ(options.servers, 2);
  EXPECT_EQ(options.keys, 20'000u);
  EXPECT_EQ(options.index, index::IndexKind::kHash);
  EXPECT_EQ(options.key_form, ycsb::KeyForm::kNoised);
  EXPECT_EQ(options.value_bytes, 100u);
  EXPECT_EQ(options.fill, 0.75);
  EXPECT_EQ(options.sub_models, 3u);
  EXPECT_EQ(file->ycsb->updates, ycsb::Path::kOneSided);
  const StatusOr<ClusterFile> owner =
      ParseClusterFile(With("[ycsb]\nkeys = 9\nindex = \"rolex\"\nindex_rights = \"owner\""), "c.toml");
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_EQ(owner->ycsb->options.index_rights, index::IndexRights::kOwnerOnly);
}

TEST(ClusterFileTest, MistakesAboutYcsbAreTold) {
  ExpectTold({
      {"[ycsb]\nindex = \"hash\"", "c.toml:4: [ycsb] keys: ", "is missing; add a line such as: keys = 1000000"},
      {"[ycsb]\nkeys = 1", "c.toml:5: [ycsb] keys: ", "from 2 to 4000000000"},
      {"[ycsb]\nkeys = \"1M\"", "c.toml:5: [ycsb] keys: ", "must be a whole number"},
      {"[ycsb]\nkeys = 9\nindex = \"tree\"", "c.toml:6: [ycsb] index: ", "must be hash, xstore, blink, rolex, dex or dolphin"},
      {"[ycsb]\nkeys = 9\nupdates = \"call\"", "c.toml:6: [ycsb] updates: ", "must be one-sided or rpc"},
      {"[ycsb]\nkeys = 9\nkeyspace = 3", "c.toml:6: [ycsb] keyspace: ", "such as \"linear\""},
      {"[ycsb]\nkeys = 9\nvalue_bytes = 4", "c.toml:6: [ycsb] value_bytes: ", "from 8 to 1024"},
      {"[ycsb]\nkeys = 9\nindex = \"hash\"\nindex_rights = \"clients\"",
       "c.toml:7: [ycsb] index_rights: ", "clients cannot change an index of kind hash"},
      {"[ycsb]\nkeys = 9\nfill = 50", "c.toml:6: [ycsb] fill: ", "no such key here; the keys are fill_percent"},
      {"[tpcc]\nwarehouses = 2\n[ycsb]\nkeys = 9", "c.toml: ", "has the tables [tpcc] and [ycsb]"},
      {"[ycsc]\nkeys = 9", "c.toml:4: ycsc: ", "no such key here; the keys are client_slots"},
  });
}

TEST(ClusterFileTest, TheHashIsOfWhatTheServersHold) {
  const auto hash = [](const std::string& tables) { return ParseClusterFile(With(tables), "c.toml")->config.Hash(); };
  const uint64_t good = hash("[tpcc]\nwarehouses = 2\nseed = 1");
  EXPECT_NE(hash("[tpcc]\nwarehouses = 2\nseed = 2"), good);
  EXPECT_NE(hash("[tpcc]\nwarehouses = 3\nseed = 1"), good);
  EXPECT_NE(hash("[tpcc]\nwarehouses = 2\nseed = 1\nitems = 500"), good);
  EXPECT_NE(hash("[tpcc]\nwarehouses = 2\nseed = 1\nordered_index = \"rolex\""), good);
}

TEST(ClusterFileTest, TheExampleIsRight) {
  const StatusOr<ClusterFile> file = ReadClusterFile(GANNET_SOURCE_DIR "/examples/cluster.toml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.num_servers(), 3);
  EXPECT_EQ(file->tpcc->warehouses, 3);
}

}  // namespace cluster_file_test
}  // namespace gannet::cli
