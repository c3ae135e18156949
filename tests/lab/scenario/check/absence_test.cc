// Phantoms: scans and missed Gets of absent keys.
#include "lab/scenario/check/absence.h"

#include "gtest/gtest.h"
#include "lab/scenario/check/serializability.h"
#include "tests/lab/scenario/check/script.h"

namespace gannet::scenario {
namespace absence_test {

// Two transactions each look for the other's key and insert their own.
TEST(Absence, WriteSkewOfScans) {
  for (const bool seen : {false, true}) {
    Script script;
    script.Ok(2, 8, [](Draft& d) {
      ScanAll(d, {});
      d.Insert(kX, 1);
    });
    script.Ok(3, 9, [&](Draft& d) {
      seen ? ScanAll(d, {{kX, 1}}) : ScanAll(d, {});
      d.Insert(kY, 2);
    });
    seen ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kPhantom);
  }
}

TEST(Absence, WriteSkewOfMissedGets) {
  for (const WriteId seen : {kAbsent, WriteId{1}}) {
    Script script;
    script.Ok(2, 8, [](Draft& d) {
      d.Read(kY, kAbsent);
      d.Insert(kX, 1);
    });
    script.Ok(3, 9, [&](Draft& d) {
      d.Read(kX, seen);
      d.Insert(kY, 2);
    });
    seen != kAbsent ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kPhantom);
  }
}

TEST(Absence, AScanMissesAKeyThatIsThere) {
  for (const bool seen : {false, true}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
    script.Ok(2, 3, [](Draft& d) { d.Insert(kY, 2); });
    script.Ok(4, 5, [&](Draft& d) { seen ? ScanAll(d, {{kX, 1}, {kY, 2}}) : ScanAll(d, {{kX, 1}}); });
    script.Ok(6, 7, [](Draft& d) { d.Read(kY, 2); });
    seen ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kPhantom);
  }
}

TEST(Absence, AScanReturnsAKeyThatIsGone) {
  for (const bool seen : {true, false}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
    script.Ok(2, 3, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
    script.Ok(4, 5, [&](Draft& d) { seen ? ScanAll(d, {{kX, 1}}) : ScanAll(d, {}); });
    // Because no one saw the removal, it is a lost write.
    seen ? ExpectViolated(script, AnomalyKind::kLostWrite) : ExpectOk(script);
  }
}

TEST(Absence, WhatTheLimitCutOffIsNotRead) {
  for (const bool reverse : {false, true}) {
    for (const size_t limit : {size_t{1}, size_t{2}}) {
      Script script;
      script.Ok(0, 1, [](Draft& d) {
        d.Insert(kX, 1);
        d.Insert(kY, 2);
        d.Insert(kZ, 3);
      });
      script.Ok(4, 5, [&](Draft& d) {
        d.BeginScan({.reverse = reverse, .limit = limit});
        d.Row(reverse ? kZ.key : kX.key, reverse ? 3 : 1);
        d.EndScan();
      });
      limit == 1 ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kPhantom);
    }
  }
}

TEST(Absence, OnlyTheRangeAndTheTableCount) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert({0, 10}, 1);
    d.Insert({0, 20}, 2);
    d.Insert({1, 15}, 3);
  });
  script.Ok(4, 5, [](Draft& d) {
    d.BeginScan({.from = 11, .to = 19});
    d.EndScan();
  });
  ExpectOk(script);
  script.Ok(6, 7, [](Draft& d) {
    d.BeginScan({.table = 1, .from = 15, .to = 15});
    d.EndScan();
  });
  ExpectViolated(script, AnomalyKind::kLostWrite);
}

TEST(Absence, AScanThatDidNotEndSaysNothing) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Ok(2, 3, [](Draft& d) { d.BeginScan({}); });
  ExpectOk(script);
}

// X is inserted and removed three times while the reader runs; Y determines the gap.
TEST(Absence, TheGapIsFoundAmongMany) {
  for (const bool fits : {true, false}) {
    Script script;
    for (uint64_t i = 0; i < 3; ++i) {
      script.Ok(10 + 20 * i, 11 + 20 * i, [&](Draft& d) { d.Insert(kX, 100 + 2 * i); });
      script.Ok(20 + 20 * i, 21 + 20 * i, [&](Draft& d) { RemoveSeen(d, kX, 100 + 2 * i, 101 + 2 * i); });
    }
    // X is present for the second time then, or has just been removed.
    const uint64_t at = fits ? 43 : 35;
    script.Ok(at, at + 1, [](Draft& d) { d.Insert(kY, 1); });
    script.Ok(at + 2, at + 3, [](Draft& d) { Modify(d, kY, 1, 2); });
    script.Ok(5, 90, [](Draft& d) {
      d.Read(kX, kAbsent);
      d.Read(kY, 1);
    });
    fits ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kPhantom);
  }
}

// Long concurrent transactions without an order in real time: only what they read determines their order.
TEST(Absence, ConcurrentInsertsAndRemovals) {
  Script script;
  script.Ok(0, 1000, [](Draft& d) { d.Insert(kX, 1); });
  script.Ok(0, 1000, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
  script.Ok(0, 1000, [](Draft& d) { d.Insert(kX, 3); });
  script.Ok(0, 1000, [](Draft& d) { RemoveSeen(d, kX, 3, 4); });
  script.Ok(0, 1000, [](Draft& d) { d.Insert(kX, 5); });
  script.Ok(1001, 1002, [](Draft& d) { d.Read(kX, 5); });
  ExpectOk(script);
}

TEST(Absence, InsertAndRemovalInOneTransaction) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Remove(kX, 2);
  });
  script.Ok(2, 3, [](Draft& d) { ScanAll(d, {}); });
  ExpectOk(script);
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 1); });
  ExpectViolated(script, AnomalyKind::kIntermediateRead);
}

TEST(Absence, EngineVersionsOrderRemovals) {
  for (const uint64_t version : {3, 5}) {
    Script script;
    script.Ok(0, 9, [](Draft& d) { d.Write(kX, 1, 1); });
    script.Ok(0, 9, [](Draft& d) { d.Remove(kX, 2, 2); });
    script.Ok(0, 9, [&](Draft& d) { d.Write(kX, 3, version); });
    script.Ok(0, 9, [](Draft& d) { d.Remove(kX, 4, 4); });
    script.Ok(10, 11, [](Draft& d) { d.Read(kX, kAbsent); });
    version == 3 ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kLostWrite);
  }
}

}  // namespace absence_test
}  // namespace gannet::scenario
