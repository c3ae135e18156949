// Inserts at other nodes by verbs, in databases with a log: what is recovered is what was committed, also if a key was
// removed and came back within an epoch (txn/durable/removal_versions.h).
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/registry.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"

namespace gannet::txn {
namespace insert_logged_test {

constexpr int kOwner = 0;
constexpr int kClient = 1;

struct Wide {
  uint64_t number = 0;
  uint64_t filler[30] = {};  // several lines
};

struct Setup {
  IndexKind kind;
  bool names = false;  // byte keys
};

class InsertLoggedTest : public testing::TestWithParam<Setup> {
 protected:
  // The epochs are long, so that only the versions order the changes of a key.
  void Open(DurabilityMode mode, absl::Duration group_commit = absl::Milliseconds(50)) {
    sessions_.clear();
    cluster_.reset();
    std::vector<TableOptions> tables;
    for (const auto& [name, bytes] : {std::pair("narrow", sizeof(uint64_t)), std::pair("wide", sizeof(Wide))}) {
      tables.push_back({.name = name,
                        .key_kind = GetParam().names ? index::KeyKind::kBytes : index::KeyKind::kInteger,
                        .max_key_bytes = GetParam().names ? size_t{24} : index::kIntegerKeyBytes,
                        .index = GetParam().kind,
                        .payload_bytes = bytes,
                        .expected_rows = 1000,
                        .placement = Placement::OnFirstNode()});
    }
    auto opened = DurableCluster::Open(
        disk_, tables,
        {.nodes = 2,
         .database = {.read_path = ReadPathPolicy::kOneSided, .durability = mode, .group_commit = group_commit}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    cluster_ = *std::move(opened);
    for (const int node : {kOwner, kClient}) {
      auto session = cluster_->database(node).OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      sessions_.push_back(*std::move(session));
    }
  }
  void CloseAll() {
    sessions_.clear();
    const Status closed = cluster_->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }

  static index::OwnedKey KeyOf(uint64_t number) {
    if (!GetParam().names) return index::OwnedKey(index::Key(number));
    const std::string name = "the name of " + std::to_string(number);
    return index::OwnedKey(index::Key(std::string_view(name)));
  }
  Session& session(int node) { return *sessions_[static_cast<size_t>(node)]; }
  const Table& table(int node, bool wide) { return cluster_->table(wide ? "wide" : "narrow", node); }

  Status Insert(int node, bool wide, uint64_t key, uint64_t value) {
    return RunBlockingBody(session(node), [&](BlockingTransaction& t) {
      return wide ? t.Insert(table(node, wide), KeyOf(key).view(), Wide{.number = value})
                  : t.Insert(table(node, wide), KeyOf(key).view(), value);
    });
  }
  Status Remove(int node, bool wide, uint64_t key) {
    return RunBlockingBody(session(node),
                           [&](BlockingTransaction& t) { return t.Remove(table(node, wide), KeyOf(key).view()); });
  }
  Status Update(int node, bool wide, uint64_t key, uint64_t value) {
    return RunBlockingBody(session(node), [&](BlockingTransaction& t) -> Status {
      Wide row;
      StatusOr<RecordHandle> handle = wide ? t.GetForUpdate(table(node, wide), KeyOf(key).view(), &row)
                                           : t.GetForUpdate(table(node, wide), KeyOf(key).view(), &row.number);
      if (!handle.ok()) return handle.status();
      row.number = value;
      return wide ? t.Update(*handle, row) : t.Update(*handle, row.number);
    });
  }
  std::optional<uint64_t> Get(int node, bool wide, uint64_t key) {
    Wide row;
    const Status read = RunBlockingBody(session(node), [&](BlockingTransaction& t) {
      return wide ? t.Get(table(node, wide), KeyOf(key).view(), &row)
                  : t.Get(table(node, wide), KeyOf(key).view(), &row.number);
    });
    EXPECT_TRUE(read.ok() || absl::IsNotFound(read)) << read;
    return read.ok() ? std::optional(row.number) : std::nullopt;
  }

  using Rows = std::map<uint64_t, uint64_t>;
  void ExpectRows(bool wide, const Rows& rows, uint64_t keys) {
    for (const int node : {kOwner, kClient}) {
      for (uint64_t key = 0; key < keys; ++key) {
        const auto row = rows.find(key);
        EXPECT_EQ(Get(node, wide, key), row == rows.end() ? std::nullopt : std::optional(row->second))
            << "node " << node << ", key " << key << (wide ? ", wide" : "");
      }
    }
    index::LocalIndex& index = table(kOwner, wide).local_index();
    EXPECT_EQ(index.statistics().keys, rows.size());
    const Status structure = index.CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }
  // Number of inserts of the client's session.
  PathStatistics Inserts() {
    PathStatistics all;
    for (const TablePaths& paths : session(kClient).path_statistics()) {
      if (paths.kind == AccessKind::kInsert) all += paths.paths;
    }
    return all;
  }

  const Disk disk_ = NewDisk();
  std::unique_ptr<DurableCluster> cluster_;
  std::vector<std::unique_ptr<Session>> sessions_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, InsertLoggedTest,
                         testing::Values(Setup{IndexKind::kBlink}, Setup{IndexKind::kRolex}, Setup{IndexKind::kDex},
                                         Setup{IndexKind::kDolphin}, Setup{IndexKind::kBlink, true},
                                         Setup{IndexKind::kDolphin, true}),
                         [](const auto& instance) {
                           return index::EntryOf(instance.param.kind).name + (instance.param.names ? "_names" : "");
                         });

// The record that is removed has a much later version than the block that the client has for the key. If the insert did
// not start above it, recovery would take the removal for the later change.
TEST_P(InsertLoggedTest, AKeyThatComesBackByVerbsIsRecovered) {
  constexpr uint64_t kKeys = 20;
  Open(DurabilityMode::kAsync);
  std::array<Rows, 2> rows;
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (const bool wide : {false, true}) {
      ASSERT_TRUE(Insert(kOwner, wide, key, 1).ok());
      for (uint64_t i = 2; i < 40; ++i) ASSERT_TRUE(Update(kOwner, wide, key, i).ok());
      // The row is removed by the owner itself, or by its client's call.
      ASSERT_TRUE(Remove(key % 2 == 0 ? kOwner : kClient, wide, key).ok());
      const Status inserted = Insert(kClient, wide, key, 1000 + key);
      ASSERT_TRUE(inserted.ok()) << inserted;
      rows[wide][key] = 1000 + key;
      if (key % 3 == 0) {
        ASSERT_TRUE(Update(kOwner, wide, key, 2000 + key).ok());
        rows[wide][key] = 2000 + key;
      }
      if (key % 5 == 0) {
        ASSERT_TRUE(Remove(kClient, wide, key).ok());
        rows[wide].erase(key);
      }
    }
  }
  const PathStatistics inserts = Inserts();
  EXPECT_GT(inserts.one_sided, 2 * kKeys * 3 / 4) << inserts.calls << " calls";
  for (const bool wide : {false, true}) ExpectRows(wide, rows[wide], kKeys);
  CloseAll();
  Open(DurabilityMode::kAsync);
  for (const bool wide : {false, true}) ExpectRows(wide, rows[wide], kKeys);
}

// Both nodes change the same few keys, several in one transaction; then the power fails.
TEST_P(InsertLoggedTest, KeysThatComeAndGoByBothNodesKeepTheirLastState) {
  constexpr uint64_t kKeys = 8;
  std::array<Rows, 2> rows;
  uint64_t value = 0;
  Random random(11);
  for (int run = 0; run < 2; ++run) {
    const bool power_cut = run == 1;
    Open(power_cut ? DurabilityMode::kSync : DurabilityMode::kAsync,
         power_cut ? absl::Microseconds(100) : absl::Milliseconds(50));
    for (int i = 0; i < (power_cut ? 100 : 800); ++i) {
      const int node = random.OneIn(3) ? kOwner : kClient;
      std::array<Rows, 2> after = rows;
      const uint64_t first = random.Below(kKeys);
      const uint64_t n = 1 + random.Below(3);
      const Status status = RunBlockingBody(session(node), [&](BlockingTransaction& t) -> Status {
        after = rows;
        for (uint64_t k = 0; k < n; ++k) {
          const uint64_t key = (first + k) % kKeys;
          const bool wide = k % 2 == 1;
          const Table& in = table(node, wide);
          if (after[wide].erase(key) == 1) {
            GANNET_RETURN_IF_ERROR(t.Remove(in, KeyOf(key).view()));
            continue;
          }
          after[wide][key] = value + k;
          GANNET_RETURN_IF_ERROR(wide ? t.Insert(in, KeyOf(key).view(), Wide{.number = value + k})
                                      : t.Insert(in, KeyOf(key).view(), value + k));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
      rows = after;
      value += n;
    }
    EXPECT_GT(Inserts().one_sided, 0u);
    for (const bool wide : {false, true}) ExpectRows(wide, rows[wide], kKeys);
    if (power_cut) {
      disk_->PowerOff();
      sessions_.clear();
      cluster_.reset();
      disk_->PowerOn();
    } else {
      CloseAll();
    }
  }
  Open(DurabilityMode::kSync);
  for (const bool wide : {false, true}) ExpectRows(wide, rows[wide], kKeys);
}

// A transaction with a log that reads one record, changes another and inserts takes no more round trips than one that
// calls the owner, and fewer calls.
TEST_P(InsertLoggedTest, TakesNoMoreRoundTripsThanCalls) {
  rdma::VerbCounters used[2];
  for (const ReadPathPolicy policy : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    sessions_.clear();
    cluster_.reset();
    auto opened =
        DurableCluster::Open(NewDisk(),
                             {{.name = "narrow",
                               .key_kind = GetParam().names ? index::KeyKind::kBytes : index::KeyKind::kInteger,
                               .max_key_bytes = GetParam().names ? size_t{24} : index::kIntegerKeyBytes,
                               .index = GetParam().kind,
                               .payload_bytes = sizeof(uint64_t),
                               .expected_rows = 1000,
                               .placement = Placement::OnFirstNode()}},
                             {.nodes = 2, .database = {.read_path = policy, .durability = DurabilityMode::kAsync}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    cluster_ = *std::move(opened);
    for (const int node : {kOwner, kClient}) sessions_.push_back(*cluster_->database(node).OpenSession());
    for (uint64_t key = 0; key < 100; ++key) ASSERT_TRUE(Insert(kClient, false, key, key).ok());
    // Most find everything cached. On a busy machine one may borrow blocks again.
    rdma::VerbCounters& least = used[policy == ReadPathPolicy::kCall ? 1 : 0];
    for (uint64_t key = 200; key < 205; ++key) {
      Step step(session(kClient));
      uint64_t number = 0;
      ASSERT_TRUE(step->Get(table(kClient, false), KeyOf(50).view(), &number).ok());
      const StatusOr<RecordHandle> handle = step->GetForUpdate(table(kClient, false), KeyOf(0).view(), &number);
      ASSERT_TRUE(handle.ok()) << handle.status();
      ASSERT_TRUE(step->Update(*handle, number + 1).ok());
      ASSERT_TRUE(step->Insert(table(kClient, false), KeyOf(key).view(), key).ok());
      const rdma::VerbCounters before = session(kClient).channel().counters();
      ASSERT_TRUE(step.Commit().ok());
      const rdma::VerbCounters taken = session(kClient).channel().counters() - before;
      if (key == 200 || taken.round_trips < least.round_trips) least = taken;
    }
  }
  EXPECT_LE(used[0].round_trips, used[1].round_trips);
  EXPECT_EQ(used[0].calls + 1, used[1].calls);
}

}  // namespace insert_logged_test
}  // namespace gannet::txn
