// Transactions with unknown outcomes.
#include "gtest/gtest.h"
#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/serializability.h"
#include "tests/lab/scenario/check/script.h"

namespace gannet::scenario {
namespace info_test {

Report Check(const Script& script, Verdict expected) {
  Report report = CheckSerializability(script.history);
  EXPECT_EQ(report.verdict, expected) << report.ToString();
  return report;
}

TEST(Info, CountsIfItWasSeen) {
  for (const bool seen : {true, false}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
    script.Info(2, 3, [](Draft& d) { Modify(d, kX, 1, 2); });
    script.Ok(4, 5, [&](Draft& d) { d.Read(kX, seen ? 2 : 1); });
    const Report report = Check(script, Verdict::kSerializable);
    EXPECT_EQ(report.info_committed, seen ? 1u : 0u);
    EXPECT_EQ(report.committed, seen ? 3u : 2u);
  }
}

TEST(Info, MayTakeEffectLate) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Info(2, 3, [](Draft& d) { Modify(d, kX, 1, 2); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 1); });
  script.Ok(6, 7, [](Draft& d) { d.Read(kX, 2); });
  Check(script, Verdict::kSerializable);
  script.Ok(8, 9, [](Draft& d) { d.Read(kX, 1); });
  Check(script, Verdict::kViolated);
}

TEST(Info, NotBeforeItWasInvoked) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 2); });
  script.Info(6, 7, [](Draft& d) { Modify(d, kX, 1, 2); });
  Check(script, Verdict::kViolated);
}

TEST(Info, AllOfItOrNothing) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Insert(kY, 2);
  });
  script.Dead(2, [](Draft& d) {
    Modify(d, kX, 1, 11);
    Modify(d, kY, 2, 12);
  });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 11); });
  Check(script, Verdict::kSerializable);
  script.Ok(6, 7, [](Draft& d) { d.Read(kY, 2); });
  Check(script, Verdict::kViolated);
}

TEST(Info, SeenOnlyByOneThatWasSeen) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Dead(2, [](Draft& d) { Modify(d, kX, 1, 2); });
  script.Dead(2, [](Draft& d) { Modify(d, kX, 2, 3); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 3); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 2u);
}

TEST(Info, ARemovalThatExplainsAnAbsence) {
  for (const bool removal : {true, false}) {
    Script script;
    script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
    if (removal) script.Dead(2, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
    script.Ok(4, 5, [](Draft& d) { d.Read(kX, kAbsent); });
    const Report report = Check(script, removal ? Verdict::kSerializable : Verdict::kViolated);
    EXPECT_EQ(report.info_committed, removal ? 1u : 0u);
  }
}

TEST(Info, ARemovalThatExplainsASecondInsert) {
  Script script;
  script.Ok(0, 10, [](Draft& d) { d.Insert(kX, 1); });
  script.Dead(2, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
  script.Ok(4, 12, [](Draft& d) { d.Insert(kX, 3); });
  script.Ok(13, 14, [](Draft& d) { d.Read(kX, 3); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 1u);
}

// The reader overlaps the last update of the key, but not its insert.
TEST(Info, ARemovalAfterAnUpdateThatIsStillRunning) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Ok(2, 30, [](Draft& d) { Modify(d, kX, 1, 2); });
  script.Dead(3, [](Draft& d) { RemoveSeen(d, kX, 2, 3); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, kAbsent); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 1u);
}

// Both the update and the removal have unknown outcomes; the absence proves both.
TEST(Info, ARemovalOfWhatMayNotHaveBeenWritten) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Dead(2, [](Draft& d) { Modify(d, kX, 1, 2); });
  script.Dead(3, [](Draft& d) { RemoveSeen(d, kX, 2, 3); });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, kAbsent); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 2u);
}

TEST(Info, ARemovalThatDidNotHappen) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Dead(2, [](Draft& d) { RemoveSeen(d, kX, 1, 2); });
  script.Ok(4, 5, [](Draft& d) { Modify(d, kX, 1, 3); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 0u);
}

// One of two removals happened; the other write of one of them was not seen where it should have been.
TEST(Info, TheRemovalThatFitsIsFound) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Insert(kY, 2);
  });
  script.Dead(2, [](Draft& d) {
    RemoveSeen(d, kX, 1, 3);
    Modify(d, kY, 2, 4);
  });
  script.Dead(3, [](Draft& d) { RemoveSeen(d, kX, 1, 5); });
  script.Ok(6, 7, [](Draft& d) {
    d.Read(kX, kAbsent);
    d.Read(kY, 2);
  });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 1u);
}

// Two transactions may have removed kX. The first one that is tried cannot be right, because it read a value that was
// already overwritten; so the other one was it. A conclusion from the wrong guess (that kZ was removed, too) is a guess
// as well.
TEST(Info, WhatFollowsFromAWrongGuessIsOne) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Insert(kY, 2);
    d.Insert(kZ, 3);
  });
  script.Dead(2, [](Draft& d) { Modify(d, kZ, 3, 13); });
  script.Dead(3, [](Draft& d) {
    RemoveSeen(d, kZ, 13, 23);
    Modify(d, kY, 2, 12);
  });
  script.Dead(4, [](Draft& d) {
    d.Read(kZ, 13);
    RemoveSeen(d, kX, 1, 21);
  });
  script.Dead(10, [](Draft& d) { RemoveSeen(d, kX, 1, 31); });
  script.Ok(11, 12, [](Draft& d) { d.Read(kX, kAbsent); });
  script.Ok(13, 14, [](Draft& d) { Modify(d, kY, 2, 32); });
  script.Ok(15, 16, [](Draft& d) { Modify(d, kZ, 3, 33); });
  script.Ok(17, 18, [](Draft& d) { RemoveSeen(d, kZ, 33, 43); });
  script.Ok(19, 20, [](Draft& d) { d.Read(kZ, kAbsent); });
  Check(script, Verdict::kSerializable);
}

TEST(Info, ARemovalThatCannotHaveCommitted) {
  Script script;
  script.Ok(0, 1, [](Draft& d) {
    d.Insert(kX, 1);
    d.Write(kX, 2);
  });
  script.Dead(2, [](Draft& d) { RemoveSeen(d, kX, 1, 3); });
  script.Dead(3, [](Draft& d) { RemoveSeen(d, kX, 2, 4); });
  script.Ok(5, 6, [](Draft& d) { d.Read(kX, kAbsent); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).info_committed, 1u);
}

TEST(Info, AFailedTransactionNeverCounts) {
  Script script;
  script.Ok(0, 1, [](Draft& d) { d.Insert(kX, 1); });
  script.Fail(2, 3, [](Draft& d) {
    d.Read(kY, 99);  // what it read is meaningless
    Modify(d, kX, 1, 2);
  });
  script.Ok(4, 5, [](Draft& d) { d.Read(kX, 1); });
  EXPECT_EQ(Check(script, Verdict::kSerializable).committed, 2u);
}

}  // namespace info_test
}  // namespace gannet::scenario
