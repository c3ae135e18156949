// Transactions on tables with an index of Dolphin (index/dolphin/dolphin.h), which is no kind of a program yet: clients
// of two nodes insert, remove and scan by verbs or by calls, and no scan sees a phantom.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/dolphin/dolphin.h"
#include "tests/txn/simulated_cluster.h"

namespace gannet::txn {
namespace dolphin_table_test {

constexpr uint64_t kKeys = 90;
constexpr size_t kRows = 45;  // in leaves of 21 slots

IndexKind Dolphin() {
  static const IndexKind kind = index::RegisterIndexKind(index::DolphinKind()).value();
  return kind;
}

struct Case {
  index::KeyKind keys;
  ReadPathPolicy path;
};

class DolphinTableTest : public testing::TestWithParam<Case> {
 protected:
  static index::OwnedKey KeyOf(uint64_t n) {
    if (GetParam().keys == index::KeyKind::kInteger) return index::OwnedKey(Key(n * 1'000'003));
    std::array<char, 16> name;
    std::snprintf(name.data(), name.size(), "name %06u", static_cast<unsigned>(n * 1009));
    return index::OwnedKey(Key(std::string_view(name.data())));
  }
  static TableOptions Rows() {
    const bool bytes = GetParam().keys == index::KeyKind::kBytes;
    return {.name = "rows",
            .key_kind = GetParam().keys,
            .max_key_bytes = bytes ? size_t{24} : index::kIntegerKeyBytes,
            .index = Dolphin(),
            .payload_bytes = sizeof(uint64_t),
            .placement = Placement::OnFirstNode()};
  }
  // Moves rows to other keys: their number stays. Each committed scan has seen all of them.
  static void MoveRows(Session& session, const Table& table, uint64_t seed) {
    Random random(seed);
    const index::OwnedKey first = KeyOf(0);
    const index::OwnedKey last = KeyOf(kKeys);
    for (int i = 0; i < 60; ++i) {
      size_t seen = 0;
      const Status moved = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        ScanRows rows;
        GANNET_RETURN_IF_ERROR(t.Scan(table, {.from = first.view(), .to = last.view()}, &rows));
        seen = rows.size();
        std::vector<index::OwnedKey> there;
        for (size_t row = 0; row < rows.size(); ++row) there.emplace_back(rows.key(row));
        if (there.empty()) return absl::OkStatus();
        const index::OwnedKey to = KeyOf(random.Below(kKeys));
        const auto same = [&to](const index::OwnedKey& key) { return key.view() == to.view(); };
        if (std::ranges::any_of(there, same)) return absl::OkStatus();
        GANNET_RETURN_IF_ERROR(t.Remove(table, there[random.Below(there.size())].view()));
        return t.Insert(table, to.view(), seed);
      });
      ASSERT_TRUE(moved.ok()) << moved;
      ASSERT_EQ(seen, kRows) << i;
    }
  }
};

TEST_P(DolphinTableTest, ScansOfTwoNodesSeeNoPhantoms) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SimulatedCluster cluster(2, {.seed = seed}, {.read_path = GetParam().path}, {Rows()});
    cluster.On(0, [&](Session& session) {
      const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t n = 0; n < kRows; ++n) {
          GANNET_RETURN_IF_ERROR(t.Insert(cluster.table(0, "rows"), KeyOf(2 * n).view(), n));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(loaded.ok()) << loaded;
    });
    std::vector<Runtime::Thread*> threads;
    for (const int node : {0, 1, 1}) {
      const uint64_t own = 10 * seed + threads.size();
      threads.push_back(cluster.Start(
          node, [&, node, own](Session& session) { MoveRows(session, cluster.table(node, "rows"), own); }));
    }
    for (Runtime::Thread* thread : threads) cluster.simulation().Join(thread);
    if (HasFailure()) return;
    EXPECT_EQ(cluster.table(0, "rows").local_index().statistics().keys, kRows);
    const Status structure = cluster.table(0, "rows").local_index().CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }
}

INSTANTIATE_TEST_SUITE_P(, DolphinTableTest,
                         testing::Values(Case{index::KeyKind::kInteger, ReadPathPolicy::kOneSided},
                                         Case{index::KeyKind::kInteger, ReadPathPolicy::kCall},
                                         Case{index::KeyKind::kBytes, ReadPathPolicy::kOneSided},
                                         Case{index::KeyKind::kBytes, ReadPathPolicy::kCall}),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(test.param.keys == index::KeyKind::kInteger ? "Integers" : "Bytes") +
                                  (test.param.path == ReadPathPolicy::kOneSided ? "OneSided" : "Call");
                         });

}  // namespace dolphin_table_test
}  // namespace gannet::txn
