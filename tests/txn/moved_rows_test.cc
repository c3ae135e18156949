// Transactions of two nodes move rows of a table to other keys, by verbs or by calls. Every scan finds all rows, each
// once: no scan sees a phantom.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/txn/simulated_cluster.h"

namespace gannet::txn {
namespace moved_rows_test {

constexpr uint64_t kKeys = 90;
constexpr size_t kRows = 45;  // in several leaves

using Case = std::tuple<IndexKind, index::KeyKind, ReadPathPolicy>;

class MovedRowsTest : public testing::TestWithParam<Case> {
 protected:
  static index::KeyKind keys() { return std::get<index::KeyKind>(GetParam()); }
  static index::OwnedKey KeyOf(uint64_t n) {
    if (keys() == index::KeyKind::kInteger) return index::OwnedKey(Key(n * 1'000'003));
    std::array<char, 16> name;
    std::snprintf(name.data(), name.size(), "name %06u", static_cast<unsigned>(n * 1009));
    return index::OwnedKey(Key(std::string_view(name.data())));
  }
  static TableOptions Rows() {
    const bool bytes = keys() == index::KeyKind::kBytes;
    return {.name = "rows",
            .key_kind = keys(),
            .max_key_bytes = bytes ? size_t{24} : index::kIntegerKeyBytes,
            .index = std::get<IndexKind>(GetParam()),
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

TEST_P(MovedRowsTest, ScansOfTwoNodesSeeNoPhantoms) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SimulatedCluster cluster(2, {.seed = seed}, {.read_path = std::get<ReadPathPolicy>(GetParam())}, {Rows()});
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

std::string NameOfCase(const testing::TestParamInfo<Case>& test) {
  const auto& [kind, keys, path] = test.param;
  return index::EntryOf(kind).name + (keys == index::KeyKind::kInteger ? "Integers" : "Bytes") +
         (path == ReadPathPolicy::kOneSided ? "OneSided" : "Call");
}

INSTANTIATE_TEST_SUITE_P(Kinds, MovedRowsTest,
                         testing::Combine(testing::ValuesIn(index::KindsThatClientsChange()),
                                          testing::Values(index::KeyKind::kInteger, index::KeyKind::kBytes),
                                          testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall)),
                         NameOfCase);

}  // namespace moved_rows_test
}  // namespace gannet::txn
