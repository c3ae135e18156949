// Random histories of a serial store are accepted; modified ones are judged as an exhaustive search over all orders
// does.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "lab/scenario/check/serializability.h"
#include "tests/lab/scenario/check/serial_store.h"

namespace gannet::scenario {
namespace random_history_test {

// True if some order of all kOk and any kInfo transactions explains all reads and respects real time.
class AllOrders {
 public:
  explicit AllOrders(const std::vector<Transaction>& transactions) : transactions_(transactions) {}
  bool Exists() { return Extend(0, {}); }

 private:
  using State = std::map<uint64_t, WriteId>;

  bool Extend(uint32_t done, const State& state) {
    if (!tried_.emplace(done, state).second) return false;
    bool all = true;
    for (uint32_t i = 0; i < transactions_.size(); ++i) {
      if (done >> i & 1) continue;
      if (transactions_[i].outcome == Outcome::kOk) all = false;
      if (!MayBeNext(i, done)) continue;
      State next = state;
      if (Explains(transactions_[i], &next) && Extend(done | 1u << i, next)) return true;
    }
    return all;
  }

  bool MayBeNext(uint32_t next, uint32_t done) const {
    for (uint32_t i = 0; i < transactions_.size(); ++i) {
      if (i == next || (done >> i & 1) || transactions_[i].outcome != Outcome::kOk) continue;
      if (transactions_[i].completed < transactions_[next].invoked) return false;
    }
    return true;
  }

  static bool Explains(const Transaction& transaction, State* state) {
    return std::ranges::all_of(transaction.steps, [&](const Step& step) {
      if (step.kind == Step::Kind::kScan) return step.rows == Scan(step.query, *state);
      const auto found = state->find(step.row.key);
      if ((found == state->end() ? kAbsent : found->second) != step.seen) return false;
      if (step.kind == Step::Kind::kUpdate || step.kind == Step::Kind::kInsert) (*state)[step.row.key] = step.id;
      if (step.kind == Step::Kind::kRemove) state->erase(step.row.key);
      return true;
    });
  }

  static std::vector<std::pair<uint64_t, WriteId>> Scan(const ScanQuery& query, const State& state) {
    std::vector<std::pair<uint64_t, WriteId>> rows(state.lower_bound(query.from), state.upper_bound(query.to));
    if (query.reverse) std::ranges::reverse(rows);
    if (rows.size() > query.limit) rows.resize(query.limit);
    return rows;
  }

  const std::vector<Transaction>& transactions_;
  std::set<std::pair<uint32_t, State>> tried_;
};

// Another version of the key, or its absence.
WriteId AnotherVersion(const std::vector<Transaction>& transactions, RowKey row, Random* random) {
  std::vector<WriteId> versions{kAbsent};
  for (const Transaction& transaction : transactions) {
    for (const Step& step : transaction.steps) {
      const bool present = step.kind == Step::Kind::kUpdate || step.kind == Step::Kind::kInsert;
      if (present && step.row == row) versions.push_back(step.id);
    }
  }
  return versions[random->Below(versions.size())];
}

void ChangeOneRead(std::vector<Transaction>* transactions, Random* random) {
  Transaction& transaction = (*transactions)[random->Below(transactions->size())];
  Step& step = transaction.steps[random->Below(transaction.steps.size())];
  if (step.kind == Step::Kind::kGet) {
    step.seen = AnotherVersion(*transactions, step.row, random);
  } else if (step.kind == Step::Kind::kUpdate || step.kind == Step::Kind::kRemove) {
    const WriteId seen = AnotherVersion(*transactions, step.row, random);
    if (seen != kAbsent) step.seen = seen;
  } else if (step.kind == Step::Kind::kScan && !step.rows.empty()) {
    const auto row = step.rows.begin() + static_cast<ptrdiff_t>(random->Below(step.rows.size()));
    const WriteId seen = AnotherVersion(*transactions, {0, row->first}, random);
    row->second = seen;
    if (seen == kAbsent) step.rows.erase(row);
  }
}

struct Tally {
  size_t serializable = 0;
  size_t violated = 0;
  size_t unknown = 0;
};

Tally Compare(const WorkloadOptions& base, int rounds) {
  Tally tally;
  for (int round = 0; round < rounds; ++round) {
    WorkloadOptions options = base;
    options.seed = static_cast<uint64_t>(round);
    std::vector<Transaction> transactions = RunSerially(options);
    Random random(options.seed);
    for (uint64_t i = random.Below(3); i > 0; --i) ChangeOneRead(&transactions, &random);
    const bool expected = AllOrders(transactions).Exists();
    const Report report = CheckSerializability(Record(transactions));
    EXPECT_NE(report.verdict, expected ? Verdict::kViolated : Verdict::kSerializable) << "seed " << options.seed << "\n"
                                                                                      << report.ToString();
    EXPECT_EQ(report.verdict == Verdict::kSerializable, report.anomalies.empty()) << "seed " << options.seed;
    (expected ? tally.serializable : tally.violated)++;
    if (report.verdict == Verdict::kUnknown) ++tally.unknown;
  }
  return tally;
}

// Judges 6'000 histories. Enough are serializable, enough are not, and fewer than `unknown` remain undecided.
void ExpectJudgedAsByTryingAllOrders(const WorkloadOptions& options, size_t unknown) {
  const Tally tally = Compare(options, 6'000);
  EXPECT_GT(tally.serializable, 1'000u);
  EXPECT_GT(tally.violated, 1'000u);
  EXPECT_LT(tally.unknown, unknown);
}

TEST(RandomHistory, JudgedAsByTryingAllOrders) {
  ExpectJudgedAsByTryingAllOrders({.transactions = 7, .keys = 3, .max_steps = 3, .overlap = 4, .remove_percent = 20},
                                  60);
}

TEST(RandomHistory, JudgedAsByTryingAllOrdersWithMuchOverlapAndManyRemovals) {
  ExpectJudgedAsByTryingAllOrders(
      {.transactions = 8, .keys = 2, .max_steps = 2, .overlap = 12, .remove_percent = 60, .scan_percent = 25}, 600);
}

TEST(RandomHistory, JudgedAsByTryingAllOrdersWithUnknownOutcomes) {
  ExpectJudgedAsByTryingAllOrders(
      {.transactions = 7, .keys = 3, .max_steps = 3, .overlap = 5, .info_percent = 30, .remove_percent = 30}, 300);
}

TEST(RandomHistory, JudgedAsByTryingAllOrdersWithOneKeyThatComesAndGoes) {
  ExpectJudgedAsByTryingAllOrders(
      {.transactions = 9, .keys = 1, .max_steps = 2, .overlap = 8, .info_percent = 50, .remove_percent = 60}, 300);
}

TEST(RandomHistory, JudgedAsByTryingAllOrdersWithManyScans) {
  ExpectJudgedAsByTryingAllOrders({.transactions = 8,
                                   .keys = 4,
                                   .max_steps = 5,
                                   .overlap = 6,
                                   .info_percent = 10,
                                   .remove_percent = 40,
                                   .scan_percent = 30},
                                  100);
}

void ExpectSerializable(const WorkloadOptions& options) {
  const Report report = CheckSerializability(Record(RunSerially(options)));
  EXPECT_EQ(report.verdict, Verdict::kSerializable) << "seed " << options.seed << "\n" << report.ToString();
  EXPECT_EQ(report.operations, options.transactions);
}

TEST(RandomHistory, SerialHistoriesAreAccepted) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    ExpectSerializable({.seed = seed, .transactions = 1'000, .keys = 5 + seed, .info_percent = 0});
    ExpectSerializable({.seed = seed, .transactions = 1'000, .keys = 20 + seed, .info_percent = 3});
    ExpectSerializable({.seed = seed, .transactions = 1'000, .keys = 20, .overlap = 10, .versions = true});
  }
}

TEST(RandomHistory, AHistoryOf200000Transactions) {
  ExpectSerializable({.transactions = 200'000, .keys = 20'000, .scan_percent = 2});
}

// In a long history one read is changed to a version that was overwritten long before.
TEST(RandomHistory, OneOldVersionInALongHistoryIsFound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Transaction> transactions = RunSerially({.seed = seed, .transactions = 5'000, .keys = 50});
    std::map<uint64_t, std::vector<WriteId>> written;  // at least 1000 transactions earlier
    Random random(seed);
    const size_t target = 2'000 + random.Below(2'000);
    for (size_t i = 0; i < target - 1'000; ++i) {
      for (const Step& step : transactions[i].steps) {
        if (step.kind == Step::Kind::kUpdate) written[step.row.key].push_back(step.id);
      }
    }
    Step stale{.kind = Step::Kind::kGet, .row = {0, random.Below(50)}};
    const std::vector<WriteId>& versions = written[stale.row.key];
    ASSERT_GT(versions.size(), 10u);
    stale.seen = versions[versions.size() - 10];
    transactions[target].steps = {stale};
    EXPECT_EQ(CheckSerializability(Record(transactions)).verdict, Verdict::kViolated) << "seed " << seed;
  }
}

}  // namespace random_history_test
}  // namespace gannet::scenario
