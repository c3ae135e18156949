// Nodes whose tables differ do not start: their rows would be lost to each other, or be read wrongly.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace table_digests_test {

using index::KeyKind;
using Change = std::function<void(TableOptions&)>;

class TableDigestsTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 2;

  TableDigestsTest() : fabric_(*rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = 64 << 20})) {}

  std::unique_ptr<Database> Open(rdma::NodeId node, const std::vector<TableOptions>& tables, int data_nodes = 0) {
    auto database = Database::Open(fabric_.get(), node, {.data_nodes = data_nodes});
    EXPECT_TRUE(database.ok()) << database.status();
    for (const TableOptions& table : tables) {
      const auto made = (*database)->CreateTable(table);
      EXPECT_TRUE(made.ok()) << made.status();
    }
    return *std::move(database);
  }
  // The status of the node that starts after the other one.
  Status StartOther(const std::vector<TableOptions>& first, const std::vector<TableOptions>& other) {
    auto a = Open(0, first);
    auto b = Open(1, other);
    EXPECT_TRUE(a->Start().ok());
    return b->Start();
  }

  std::unique_ptr<rdma::ShmFabric> fabric_;
};

const TableOptions kNumbers = {.name = "numbers", .index = IndexKind::kRolex, .payload_bytes = 8};
const TableOptions kNames = {
    .name = "names", .key_kind = KeyKind::kBytes, .max_key_bytes = 20, .index = IndexKind::kBlink, .payload_bytes = 8};

TEST_F(TableDigestsTest, EqualTablesStart) {
  EXPECT_TRUE(StartOther({kNumbers, kNames}, {kNumbers, kNames}).ok());
  // What each node may choose for itself.
  TableOptions larger = kNumbers;
  larger.expected_rows = 100'000;
  larger.index_rights = IndexRights::kClients;  // the default
  EXPECT_TRUE(StartOther({kNumbers}, {larger}).ok());
  EXPECT_TRUE(StartOther({}, {}).ok());
  const std::vector<TableOptions> many = [] {
    std::vector<TableOptions> tables(70, kNumbers);  // more than have a digest of their own
    for (size_t i = 0; i < tables.size(); ++i) tables[i].name = std::to_string(i);
    return tables;
  }();
  EXPECT_TRUE(StartOther(many, many).ok());
  std::vector<TableOptions> last = many;
  last.back().payload_bytes = 16;
  EXPECT_EQ(StartOther(many, last).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TableDigestsTest, DifferentTablesAreRefused) {
  const std::vector<std::pair<std::string, Change>> changes = {
      {"name", [](TableOptions& o) { o.name = "other"; }},
      {"index", [](TableOptions& o) { o.index = IndexKind::kXStore; }},
      {"rights", [](TableOptions& o) { o.index_rights = IndexRights::kOwnerOnly; }},
      {"keys", [](TableOptions& o) { o.max_key_bytes = 21; }},
      {"kind of keys",
       [](TableOptions& o) {
         o.key_kind = KeyKind::kInteger;
         o.max_key_bytes = index::kIntegerKeyBytes;
       }},
      {"form of keys", [](TableOptions& o) { o.key_form = KeyForm::kTuple; }},
      {"payload", [](TableOptions& o) { o.payload_bytes = 9; }},
      {"lengths", [](TableOptions& o) { o.variable_length = true; }},
      {"replicated", [](TableOptions& o) { o.placement = Placement::Replicated(); }},
      {"hash", [](TableOptions& o) { o.placement = Placement::ByHash(); }},
      {"ranges", [](TableOptions& o) { o.placement = Placement::ByRange({std::string_view("m")}); }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    TableOptions changed = kNames;
    change(changed);
    for (const bool reversed : {false, true}) {
      const std::vector<TableOptions> one = {kNumbers, kNames};
      const std::vector<TableOptions> two = {kNumbers, changed};
      const Status status = reversed ? StartOther(two, one) : StartOther(one, two);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_NE(status.message().find("node 0"), std::string::npos) << status;
      EXPECT_NE(status.message().find(absl::StrCat("'", reversed ? kNames.name : changed.name, "'")), std::string::npos)
          << status;
    }
  }
  EXPECT_EQ(StartOther({kNumbers, kNames}, {kNames, kNumbers}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StartOther({kNumbers}, {kNumbers, kNames}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StartOther({kNumbers, kNames}, {}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TableDigestsTest, AClientIsComparedWithTheOwners) {
  auto owner = Open(0, {kNumbers}, 1);
  ASSERT_TRUE(owner->Start().ok());
  {
    auto client = Open(1, {kNames}, 1);
    EXPECT_EQ(client->Start().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(client->Start().code(), absl::StatusCode::kFailedPrecondition) << "a start that failed is not repeated";
  }
  EXPECT_EQ(Open(1, {kNumbers})->Start().code(), absl::StatusCode::kFailedPrecondition) << "other data_nodes";
  EXPECT_TRUE(Open(1, {kNumbers}, 1)->Start().ok());
}

// A client can be there before the owners have told their tables.
TEST_F(TableDigestsTest, AnOwnerThatStartsLaterIsComparedBySessions) {
  for (const bool equal : {true, false}) {
    auto owner = Open(0, {kNumbers}, 1);
    auto client = Open(1, {equal ? kNumbers : kNames}, 1);
    ASSERT_TRUE(client->Start().ok());
    EXPECT_TRUE(client->OpenSession().ok());
    ASSERT_TRUE(owner->Start().ok());
    const Status opened = client->OpenSession().status();
    EXPECT_EQ(opened.code(), equal ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition) << opened;
    const Status run = client->Run([](BlockingTransaction&) { return absl::OkStatus(); });
    EXPECT_EQ(run.code(), opened.code()) << run;
  }
}

}  // namespace table_digests_test
}  // namespace gannet::txn
