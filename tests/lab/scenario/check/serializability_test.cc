// Each anomaly by hand, together with a correct history that differs in one detail.
#include "lab/scenario/check/serializability.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lab/scenario/check/script.h"

namespace gannet::scenario {
namespace serializability_test {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// X and Y are present as writes 1 and 2.
Script Loaded() {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Insert(kY, 2);
  });
  return script;
}

TEST(Serializability, NothingIsSerializable) {
  const Report report = CheckSerializability(History());
  EXPECT_EQ(report.verdict, Verdict::kSerializable);
  EXPECT_EQ(report.operations, 0u);
}

TEST(Serializability, AChainOfUpdates) {
  Script script = Loaded();
  script.Ok(2, 3, [](Draft& d) { Modify(d, kX, 1, 11); });
  script.Ok(4, 5, [](Draft& d) { Modify(d, kX, 11, 12); });
  script.Ok(6, 7, [](Draft& d) { d.Read(kX, 12); });
  ExpectOk(script);
  const Report report = CheckSerializability(script.history);
  EXPECT_EQ(report.operations, 4u);
  EXPECT_EQ(report.committed, 4u);
}

TEST(Serializability, AbortedRead) {
  for (const bool seen : {true, false}) {
    Script script = Loaded();
    script.Fail(2, 8, [](Draft& d) { Modify(d, kX, 1, 11); });
    script.Ok(3, 9, [&](Draft& d) { d.Read(kX, seen ? 11 : 1); });
    seen ? ExpectViolated(script, AnomalyKind::kAbortedRead) : ExpectOk(script);
  }
}

TEST(Serializability, ReadOfAnAttemptThatWasRolledBack) {
  for (const bool seen : {true, false}) {
    Script script = Loaded();
    const OperationId op = script.history.Invoke(100, 2);
    Modify(script.history.BeginAttempt(op, 2), kX, 1, 11);
    Modify(script.history.BeginAttempt(op, 4), kX, 1, 12);
    script.history.Complete(op, 5, Outcome::kOk);
    script.Ok(3, 9, [&](Draft& d) { d.Read(kX, seen ? 11 : 12); });
    seen ? ExpectViolated(script, AnomalyKind::kAbortedRead) : ExpectOk(script);
  }
}

TEST(Serializability, IntermediateRead) {
  for (const bool seen : {true, false}) {
    Script script = Loaded();
    script.Ok(2, 8, [](Draft& d) {
      Modify(d, kX, 1, 11);
      d.Write(kX, 12);
    });
    script.Ok(3, 9, [&](Draft& d) { d.Read(kX, seen ? 11 : 12); });
    seen ? ExpectViolated(script, AnomalyKind::kIntermediateRead) : ExpectOk(script);
  }
}

TEST(Serializability, ReadOfWhatNobodyWrote) {
  Script unknown = Loaded();
  unknown.Ok(2, 3, [](Draft& d) { d.Read(kX, 77); });
  ExpectViolated(unknown, AnomalyKind::kUnwrittenRead);
  Script of_another_key = Loaded();
  of_another_key.Ok(2, 3, [](Draft& d) { d.Read(kX, 2); });
  ExpectViolated(of_another_key, AnomalyKind::kUnwrittenRead);
  Script of_a_removal = Loaded();
  of_a_removal.Ok(2, 3, [](Draft& d) { RemoveSeen(d, kX, 1, 3); });
  of_a_removal.Ok(4, 5, [](Draft& d) { d.Read(kX, 3); });
  ExpectViolated(of_a_removal, AnomalyKind::kUnwrittenRead);
}

TEST(Serializability, OwnWrites) {
  for (const WriteId seen : {11, 1}) {
    Script script = Loaded();
    script.Ok(2, 3, [&](Draft& d) {
      Modify(d, kX, 1, 11);
      d.Read(kX, seen);
    });
    seen == 1 ? ExpectViolated(script, AnomalyKind::kInternal) : ExpectOk(script);
  }
  for (const bool scanned : {true, false}) {
    Script script = Loaded();
    script.Ok(2, 3, [&](Draft& d) {
      RemoveSeen(d, kX, 1, 11);
      d.Insert(kZ, 12);
      scanned ? ScanAll(d, {{kY, 2}, {kZ, 12}}) : ScanAll(d, {{kY, 2}});
    });
    scanned ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kInternal);
  }
}

TEST(Serializability, AReadOfAWriteStillToCome) {
  Script script = Loaded();
  script.Ok(2, 3, [](Draft& d) { Modify(d, kX, 11, 11); });
  ExpectViolated(script, AnomalyKind::kInternal);
}

TEST(Serializability, TwoVersionsOfOneKeyInOneTransaction) {
  Script script = Loaded();
  script.Ok(2, 9, [](Draft& d) { Modify(d, kX, 1, 11); });
  script.Ok(3, 8, [](Draft& d) {
    d.Read(kX, 1);
    d.Read(kX, 11);
  });
  ExpectViolated(script, AnomalyKind::kInternal);
}

TEST(Serializability, MalformedScans) {
  Script twice = Loaded();
  twice.Ok(2, 3, [](Draft& d) { ScanAll(d, {{kX, 1}, {kX, 1}, {kY, 2}}); });
  ExpectViolated(twice, AnomalyKind::kMalformedScan);
  Script out_of_order = Loaded();
  out_of_order.Ok(2, 3, [](Draft& d) { d.Insert(kZ, 3); });
  out_of_order.Ok(4, 5, [](Draft& d) { ScanAll(d, {{kX, 1}, {kZ, 3}, {kY, 2}}); });
  ExpectViolated(out_of_order, AnomalyKind::kMalformedScan);
  Script outside = Loaded();
  outside.Ok(2, 3, [](Draft& d) {
    d.BeginScan({.from = 10, .to = 15});
    d.Row(10, 1);
    d.Row(20, 2);
    d.EndScan();
  });
  ExpectViolated(outside, AnomalyKind::kMalformedScan);
  Script down = Loaded();
  down.Ok(2, 3, [](Draft& d) { ScanAll(d, {{kY, 2}, {kX, 1}}); });
  ExpectOk(down);
}

TEST(Serializability, LostUpdate) {
  for (const WriteId seen : {1, 11}) {
    Script script = Loaded();
    script.Ok(2, 8, [](Draft& d) { Modify(d, kX, 1, 11); });
    script.Ok(3, 9, [&](Draft& d) { Modify(d, kX, seen, 12); });
    seen == 1 ? ExpectViolated(script, AnomalyKind::kLostUpdate) : ExpectOk(script);
  }
}

TEST(Serializability, TwoInsertsOfOneKey) {
  for (const bool removed : {false, true}) {
    Script script;
    script.Ok(2, 8, [](Draft& d) { d.Insert(kX, 1); });
    if (removed) script.Ok(2, 8, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
    script.Ok(3, 9, [](Draft& d) { d.Insert(kX, 3); });
    removed ? ExpectOk(script) : ExpectViolated(script, AnomalyKind::kLostUpdate);
  }
}

TEST(Serializability, WriteSkew) {
  for (const WriteId seen : {1, 11}) {
    Script script = Loaded();
    script.Ok(2, 8, [](Draft& d) {
      d.Read(kY, 2);
      Modify(d, kX, 1, 11);
    });
    script.Ok(3, 9, [&](Draft& d) {
      d.Read(kX, seen);
      Modify(d, kY, 2, 12);
    });
    if (seen == 11) {
      ExpectOk(script);
      continue;
    }
    const Report report = ExpectViolated(script, AnomalyKind::kWriteSkew);
    ASSERT_EQ(report.anomalies.size(), 1u);
    EXPECT_THAT(report.anomalies[0].operations, UnorderedElementsAre(1, 2));
    EXPECT_THAT(report.anomalies[0].text, HasSubstr("T1 -rw-> T2: T1 read key 0:20 as it was before T2 overwrote it"));
    EXPECT_THAT(report.anomalies[0].text, HasSubstr("T1 (client 1, 2 ns to 8 ns)"));
  }
}

TEST(Serializability, ReadSkew) {
  for (const WriteId seen : {2, 12}) {
    Script script = Loaded();
    script.Ok(2, 8, [](Draft& d) {
      Modify(d, kX, 1, 11);
      Modify(d, kY, 2, 12);
    });
    script.Ok(3, 9, [&](Draft& d) {
      d.Read(kX, 11);
      d.Read(kY, seen);
    });
    seen == 2 ? ExpectViolated(script, AnomalyKind::kReadSkew) : ExpectOk(script);
  }
}

TEST(Serializability, CircularInformationFlow) {
  for (const WriteId seen : {12, 2}) {
    Script script = Loaded();
    script.Ok(2, 8, [&](Draft& d) {
      Modify(d, kX, 1, 11);
      d.Read(kY, seen);
    });
    script.Ok(3, 9, [](Draft& d) {
      Modify(d, kY, 2, 12);
      d.Read(kX, 11);
    });
    seen == 12 ? ExpectViolated(script, AnomalyKind::kCircularInformationFlow) : ExpectOk(script);
  }
}

TEST(Serializability, DirtyWrite) {
  for (const uint64_t version : {2, 4}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) {
      d.Write(kX, 1, 1);
      d.Write(kY, 2, 1);
    });
    script.Ok(2, 8, [](Draft& d) {
      d.Write(kX, 11, 2);
      d.Write(kY, 12, 3);
    });
    script.Ok(3, 9, [&](Draft& d) {
      d.Write(kX, 21, 3);
      d.Write(kY, 22, version);
    });
    version == 2 ? ExpectViolated(script, AnomalyKind::kDirtyWrite) : ExpectOk(script);
  }
}

TEST(Serializability, DivergentVersions) {
  for (const uint64_t version : {2, 3}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) { d.Write(kX, 1, 1); });
    script.Ok(2, 8, [](Draft& d) { d.Write(kX, 2, 2); });
    script.Ok(3, 9, [&](Draft& d) { d.Write(kX, 3, version); });
    version == 2 ? ExpectViolated(script, AnomalyKind::kDivergentVersions) : ExpectOk(script);
  }
}

TEST(Serializability, AWriteIdTwice) {
  Script script = Loaded();
  script.Ok(2, 8, [](Draft& d) { Modify(d, kX, 1, 2); });
  ExpectViolated(script, AnomalyKind::kDuplicateWrite);
}

TEST(Serializability, StaleRead) {
  for (const uint64_t invoked : {4, 3}) {
    Script script = Loaded();
    script.Ok(2, 3, [](Draft& d) { Modify(d, kX, 1, 11); });
    script.Ok(invoked, 9, [](Draft& d) { d.Read(kX, 1); });
    script.Ok(10, 11, [](Draft& d) { d.Read(kX, 11); });
    invoked == 4 ? ExpectViolated(script, AnomalyKind::kStaleRead) : ExpectOk(script);
  }
}

TEST(Serializability, AClientSeesItsOwnPast) {
  for (const uint32_t reader : {7, 8}) {
    Script script = Loaded();
    const OperationId write = script.history.Invoke(7, 2);
    Modify(script.history.draft(write), kX, 1, 11);
    script.history.Complete(write, 3, Outcome::kOk);
    const OperationId read = script.history.Invoke(reader, 3);
    script.history.draft(read).Read(kX, 1);
    script.history.Complete(read, 4, Outcome::kOk);
    script.Ok(10, 11, [](Draft& d) { d.Read(kX, 11); });
    reader == 7 ? ExpectViolated(script, AnomalyKind::kStaleRead) : ExpectOk(script);
  }
}

TEST(Serializability, LostWrite) {
  Script script = Loaded();
  script.Ok(2, 3, [](Draft& d) { Modify(d, kX, 1, 11); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 1); });
  ExpectViolated(script, AnomalyKind::kLostWrite);
  Script insert = Loaded();
  insert.Ok(2, 3, [](Draft& d) { d.Insert(kZ, 11); });
  insert.Ok(4, 5, [](Draft& d) { ScanAll(d, {{kX, 1}, {kY, 2}}); });
  ExpectViolated(insert, AnomalyKind::kLostWrite);
}

TEST(Serializability, ReadFromTheFuture) {
  Script script = Loaded();
  script.Ok(2, 3, [](Draft& d) { d.Read(kX, 11); });
  script.Ok(4, 5, [](Draft& d) { Modify(d, kX, 1, 11); });
  ExpectViolated(script, AnomalyKind::kRealTime);
}

TEST(Serializability, RealTimeThroughAThirdTransaction) {
  // T1 overlaps both; T2 sees it; T3 begins after T2 was complete and does not see it.
  for (const WriteId seen : {1, 11}) {
    Script script = Loaded();
    script.Ok(2, 100, [](Draft& d) { Modify(d, kX, 1, 11); });
    script.Ok(3, 4, [](Draft& d) { d.Read(kX, 11); });
    script.Ok(5, 6, [&](Draft& d) { d.Read(kX, seen); });
    if (seen == 11) {
      ExpectOk(script);
      continue;
    }
    const Report report = ExpectViolated(script, AnomalyKind::kRealTime);
    EXPECT_EQ(report.anomalies[0].operations.size(), 3u);
    EXPECT_THAT(report.anomalies[0].text, HasSubstr("T2 -rt-> T3: T2 was complete at 4 ns, T3 was invoked at 5 ns"));
  }
}

TEST(Serializability, TheShortestCycleIsNamed) {
  // A cycle of five through rw edges, and a shorter one of three within it.
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    for (uint64_t k = 0; k < 5; ++k) d.Insert({0, k}, k + 1);
  });
  for (uint64_t k = 0; k < 5; ++k) {
    script.Ok(10 + k, 100, [&](Draft& d) {
      d.Read({0, (k + 1) % 5}, (k + 1) % 5 + 1);
      if (k == 2) d.Read({0, 0}, 1);
      Modify(d, {0, k}, k + 1, k + 11);
    });
  }
  const Report report = ExpectViolated(script, AnomalyKind::kWriteSkew);
  ASSERT_EQ(report.anomalies.size(), 1u);
  EXPECT_THAT(report.anomalies[0].operations, UnorderedElementsAre(1, 2, 3));
}

TEST(Serializability, SeparateCyclesAreAllNamed) {
  Script script = Loaded();
  script.Ok(2, 8, [](Draft& d) { Modify(d, kX, 1, 11); });
  script.Ok(9, 10, [](Draft& d) { d.Read(kX, 1); });
  script.Ok(12, 18, [](Draft& d) { Modify(d, kY, 2, 12); });
  script.Ok(19, 20, [](Draft& d) { d.Read(kY, 2); });
  const Report report = ExpectViolated(script, AnomalyKind::kLostWrite);
  EXPECT_EQ(report.anomalies.size(), 2u);
  EXPECT_EQ(CheckSerializability(script.history, {.max_anomalies = 1}).anomalies.size(), 1u);
}

TEST(Serializability, BlindWritesMayBeInAnyOrder) {
  // Only later reads show which of two concurrent blind writes was first.
  for (const WriteId last : {11, 12}) {
    Script script = Loaded();
    script.Ok(2, 8, [](Draft& d) { d.Write(kX, 11); });
    script.Ok(2, 8, [](Draft& d) { d.Write(kX, 12); });
    script.Ok(10, 11, [&](Draft& d) { d.Read(kX, last); });
    ExpectOk(script);
  }
}

TEST(Serializability, BlindWritesThatFitNoOrder) {
  Script script = Loaded();
  script.Ok(2, 8, [](Draft& d) { d.Write(kX, 11); });
  script.Ok(2, 8, [](Draft& d) { d.Write(kX, 12); });
  script.Ok(10, 11, [](Draft& d) { d.Read(kX, 11); });
  script.Ok(12, 13, [](Draft& d) { d.Read(kX, 12); });
  EXPECT_EQ(ExpectViolated(script, AnomalyKind::kStaleRead).tries, 2);
  const Report report = CheckSerializability(script.history, {.max_tries = 1});
  EXPECT_EQ(report.verdict, Verdict::kUnknown) << report.ToString();
  EXPECT_THAT(report.ToString(), HasSubstr("undecided"));
}

}  // namespace serializability_test
}  // namespace gannet::scenario
