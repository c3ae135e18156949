#include "lab/scenario/check/list_append.h"

#include <map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::scenario {
namespace list_append_test {

class Lists {
 public:
  OperationId Ok(uint64_t from, uint64_t to, std::vector<MicroOp> micro_ops, std::vector<List> reads) {
    return Add(from, to, Outcome::kOk, std::move(micro_ops), std::move(reads));
  }
  OperationId Append(uint64_t from, uint64_t to, uint64_t key, uint64_t value, Outcome outcome = Outcome::kOk) {
    return Add(from, to, outcome, {MicroOp::Append(key, value)}, {{}});
  }
  OperationId Read(uint64_t from, uint64_t to, uint64_t key, List list) {
    return Add(from, to, Outcome::kOk, {MicroOp::Read(key)}, {std::move(list)});
  }
  Report Check() const { return CheckListAppend(history_); }

 private:
  OperationId Add(uint64_t from, uint64_t to, Outcome outcome, std::vector<MicroOp> micro_ops,
                  std::vector<List> reads) {
    const OperationId op = history_.Invoke(clients_++, from, std::move(micro_ops));
    history_.Complete(op, to, outcome, std::move(reads));
    return op;
  }
  AppendHistory history_;
  uint32_t clients_ = 0;
};

void ExpectValid(const Lists& lists) {
  const Report report = lists.Check();
  EXPECT_EQ(report.verdict, Verdict::kSerializable) << report.ToString();
}

void ExpectInvalid(const Lists& lists, AnomalyKind kind) {
  const Report report = lists.Check();
  EXPECT_EQ(report.verdict, Verdict::kViolated) << report.ToString();
  EXPECT_TRUE(report.Has(kind)) << "expected " << NameOf(kind) << "\n" << report.ToString();
}

TEST(ListAppend, PrefixesAreAnOrder) {
  for (const bool right : {true, false}) {
    Lists lists;
    lists.Append(0, 9, 1, 10);
    lists.Append(0, 9, 1, 11);
    lists.Read(0, 9, 1, right ? List{11} : List{10});
    lists.Read(10, 11, 1, {11, 10});
    right ? ExpectValid(lists) : ExpectInvalid(lists, AnomalyKind::kIncompatibleOrder);
  }
}

TEST(ListAppend, WhatIsInAListWasAppendedOnce) {
  Lists nobody;
  nobody.Read(0, 1, 1, {5});
  ExpectInvalid(nobody, AnomalyKind::kUnwrittenRead);
  Lists twice;
  twice.Append(0, 1, 1, 5);
  twice.Read(2, 3, 1, {5, 5});
  ExpectInvalid(twice, AnomalyKind::kIncompatibleOrder);
  Lists workload;
  workload.Append(0, 1, 1, 5);
  workload.Append(2, 3, 1, 5);
  ExpectInvalid(workload, AnomalyKind::kDuplicateWrite);
}

TEST(ListAppend, FailedAndUnknownAppends) {
  for (const Outcome outcome : {Outcome::kFail, Outcome::kInfo}) {
    Lists lists;
    lists.Append(0, 1, 1, 5, outcome);
    lists.Append(2, 3, 1, 6);
    lists.Read(4, 5, 1, {6, 5});
    outcome == Outcome::kInfo ? ExpectValid(lists) : ExpectInvalid(lists, AnomalyKind::kAbortedRead);
  }
}

TEST(ListAppend, AppendsOfOneTransactionStayTogether) {
  for (const bool together : {true, false}) {
    Lists lists;
    lists.Ok(0, 9, {MicroOp::Append(1, 5), MicroOp::Append(1, 6)}, {{}, {}});
    lists.Append(0, 9, 1, 7);
    lists.Read(10, 11, 1, together ? List{5, 6, 7} : List{5, 7, 6});
    together ? ExpectValid(lists) : ExpectInvalid(lists, AnomalyKind::kIntermediateRead);
  }
}

TEST(ListAppend, IntermediateRead) {
  Lists lists;
  lists.Ok(0, 9, {MicroOp::Append(1, 5), MicroOp::Append(1, 6)}, {{}, {}});
  lists.Read(0, 9, 1, {5});
  lists.Read(10, 11, 1, {5, 6});
  ExpectInvalid(lists, AnomalyKind::kIntermediateRead);
}

TEST(ListAppend, AnAppendThatIsNeverSeen) {
  for (const uint64_t invoked : {5, 3}) {
    Lists lists;
    lists.Append(0, 1, 1, 5);
    lists.Append(2, 4, 1, 6);
    lists.Append(2, 4, 1, 7);
    lists.Read(invoked, 9, 1, {5});
    invoked == 3 ? ExpectValid(lists) : ExpectInvalid(lists, AnomalyKind::kLostWrite);
  }
}

TEST(ListAppend, WriteSkew) {
  for (const List& seen : {List{}, List{5}}) {
    Lists lists;
    lists.Ok(0, 9, {MicroOp::Append(1, 5), MicroOp::Read(2)}, {{}, {}});
    lists.Ok(0, 9, {MicroOp::Append(2, 6), MicroOp::Read(1)}, {{}, seen});
    lists.Read(10, 11, 1, {5});
    lists.Read(10, 11, 2, {6});
    seen.empty() ? ExpectInvalid(lists, AnomalyKind::kPhantom) : ExpectValid(lists);
  }
}

TEST(ListAppend, ReadsOfOwnAppends) {
  for (const bool seen : {true, false}) {
    Lists lists;
    lists.Append(0, 1, 1, 5);
    lists.Ok(2, 3, {MicroOp::Read(1), MicroOp::Append(1, 6), MicroOp::Read(1)}, {{5}, {}, seen ? List{5, 6} : List{5}});
    seen ? ExpectValid(lists) : ExpectInvalid(lists, AnomalyKind::kInternal);
  }
}

// A store that runs one transaction after the other; at the end an old state of a list is returned.
TEST(ListAppend, RandomHistories) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const bool stale : {false, true}) {
      Random random(seed);
      Lists lists;
      std::map<uint64_t, List> store;
      List old;
      for (uint64_t i = 0; i < 300; ++i) {
        std::vector<MicroOp> micro_ops;
        std::vector<List> reads;
        for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
          const uint64_t key = random.Below(5);
          micro_ops.push_back(random.OneIn(2) ? MicroOp::Read(key) : MicroOp::Append(key, 10 * i + n));
          if (micro_ops.back().append) store[key].push_back(micro_ops.back().value);
          reads.push_back(micro_ops.back().append ? List{} : store[key]);
        }
        const uint64_t now = 1'000 + 10 * i;
        lists.Ok(now - random.Below(100), now + random.Below(100), std::move(micro_ops), std::move(reads));
        if (i == 200) old = store[0];
      }
      lists.Read(10'000, 10'001, 0, stale ? old : store[0]);
      EXPECT_EQ(lists.Check().verdict, stale ? Verdict::kViolated : Verdict::kSerializable) << "seed " << seed;
    }
  }
}

}  // namespace list_append_test
}  // namespace gannet::scenario
