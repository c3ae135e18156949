// The checkers are tested with deliberate mistakes (mutants): each must be found within a stated number of seeds, and
// none of these seeds fails without a mutant. docs/simulation.md has the list.
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/mutant.h"
#include "gtest/gtest.h"
#include "lab/scenario/scenario.h"
#include "lab/scenario/sweep.h"
#include "tests/txn/snapshot_race.h"

namespace gannet::scenario {
namespace mutants_test {

struct Case {
  Mutant mutant;
  const char* name;
  uint64_t within;  // seeds
  bool durable = false;
  bool deaths = false;
  const char* workload = "registers";
  const char* ordered_index = "xstore";  // another one: two nodes, and one-sided paths
  int nodes = 0;                         // 0: as the seed says
};

Case Rectangles(Mutant mutant, const char* name, uint64_t within) {
  return {mutant, name, within, false, false, "rectangles"};
}

// Inserts at other nodes by verbs, with a log.
Case InsertsByVerbs(Mutant mutant, const char* name, uint64_t within) {
  Case test{mutant, name, within, /*durable=*/true};
  test.ordered_index = "rolex";
  return test;
}

Case OfThreeNodes(Mutant mutant, const char* name, uint64_t within) {
  Case test{mutant, name, within};
  test.nodes = 3;
  return test;
}

// Few keys, and threads that lose their cores at critical moments.
ScenarioOptions Hostile(bool durable, bool deaths, const char* workload = "registers") {
  ScenarioOptions options;
  options.workload = workload;
  options.keys = 8;
  options.faulty_nanos = 5'000'000;
  options.settle_nanos = 30'000'000;
  options.durability = durable ? "sync" : "none";
  options.power_cuts = durable ? 2 : 0;
  options.client = deaths;
  options.deaths = deaths ? 8 : 0;
  options.checks = 0;
  if (deaths) options.nodes = 3;
  // The values of most seeds, so that finding a mistake does not depend on rare ones.
  options.server_threads = 1;
  options.read_path = "adaptive";
  options.call_timeout_nanos = 10'000'000;
  options.durable_within_nanos = 10'000'000'000;
  options.log_segment_bytes = uint64_t{256} << 10;
  options.log_buffer_bytes = uint64_t{64} << 10;
  options.precedence_after_nanos = 100'000'000;
  options.precedence_limit_nanos = 10'000'000'000;
  options.session_nanos = kWholeRun;
  options.row_words = 40;
  options.ordered_index = "xstore";
  options.rest_nanos = 1;
  options.faults = rdma::sim::Faults{};
  options.faults->preempt = 0.01;
  options.faults->scatter_lines = 0.2;
  options.faults->slow_completion = 0.01;
  return options;
}

// Number of seeds, from 1 on, until one failed; 0: none failed.
uint64_t SeedsUntilCaught(const Case& test, uint64_t within, std::string* verdict) {
  active_mutant = test.mutant;  // the children inherit it
  SweepOptions sweep;
  sweep.seeds = within;
  sweep.jobs = 1;
  sweep.limit_seconds = 300;  // generous, for a busy machine
  sweep.scenario = Hostile(test.durable, test.deaths, test.workload);
  sweep.scenario.ordered_index = test.ordered_index;
  if (test.ordered_index != std::string("xstore")) {
    sweep.scenario.nodes = 2;
    sweep.scenario.read_path = "one_sided";
  }
  if (test.nodes > 0) sweep.scenario.nodes = test.nodes;
  uint64_t run = 0;
  uint64_t caught = 0;
  const Status status = RunSweep(sweep, [&](const ScenarioReport& report) {
    ++run;
    if (report.passed) return true;
    caught = run;
    *verdict = report.verdict;
    return false;
  });
  active_mutant = Mutant::kNone;
  EXPECT_TRUE(status.ok()) << status;
  return caught;
}

class MutantsTest : public ::testing::TestWithParam<Case> {};

TEST_P(MutantsTest, IsCaught) {
  std::string verdict;
  const uint64_t caught = SeedsUntilCaught(GetParam(), GetParam().within, &verdict);
  EXPECT_NE(caught, 0u) << "not caught within " << GetParam().within << " seeds";
  RecordProperty("seeds", static_cast<int>(caught));
  std::printf("%s: caught by seed %d: %s\n", GetParam().name, static_cast<int>(caught), verdict.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    All, MutantsTest,
    ::testing::Values(
        Case{Mutant::kSkipValidation, "SkipValidation", 10}, Case{Mutant::kValidateEarly, "ValidateEarly", 20},
        OfThreeNodes(Mutant::kValidateBesideLocks, "ValidateBesideLocks", 100),
        Case{Mutant::kSkipWitness, "SkipWitness", 10}, Case{Mutant::kUnlockBeforeInstall, "UnlockBeforeInstall", 10},
        Case{Mutant::kLoseSecondLine, "LoseSecondLine", 10}, Case{Mutant::kReuseWithoutGrace, "ReuseWithoutGrace", 40},
        Case{Mutant::kAcknowledgeEarly, "AcknowledgeEarly", 20, true},
        Case{Mutant::kTellErrorsEarly, "TellErrorsEarly", 40, true}, Case{Mutant::kBelieveErrors, "BelieveErrors", 20},
        Case{Mutant::kKeepStalePatches, "KeepStalePatches", 10}, Case{Mutant::kForgetFailure, "ForgetFailure", 20},
        Case{Mutant::kSkipDecision, "SkipDecision", 40, false, true},
        Case{Mutant::kSkipRepair, "SkipRepair", 10, false, true},
        Case{Mutant::kRepairUndecided, "RepairUndecided", 40, false, true},
        InsertsByVerbs(Mutant::kForgetRemovals, "ForgetRemovals", 100),
        Rectangles(Mutant::kSilentInnerNode, "SilentInnerNode", 20), Rectangles(Mutant::kSilentLeaf, "SilentLeaf", 20),
        Rectangles(Mutant::kLeafWitnesses, "LeafWitnesses", 40),
        Rectangles(Mutant::kSkipWitness, "SkipWitnessOfWindows", 20)),
    [](const auto& test) { return std::string(test.param.name); });

// Links are cut for longer than a call may take. What a session still owes then may also keep others from their work,
// and that may be noticed first. So this goes on until a seed names the pending operation.
TEST(MutantsTest, APendingOperationThatIsNotTriedAgainLeavesALock) {
  const auto run = [](Mutant mutant, uint64_t seed) {
    active_mutant = mutant;
    ScenarioOptions options = Hostile(/*durable=*/false, /*deaths=*/false);
    options.seed = seed;
    options.nodes = 3;
    options.client = false;
    options.call_timeout_nanos = 200'000;
    options.rest_nanos = 3'000'000;
    options.faults->cut_every = 2'000'000;
    options.faults->cut_nanos = 1'000'000;
    ScenarioReport report = RunScenario(Drawn(options));
    active_mutant = Mutant::kNone;
    return report;
  };
  bool caught = false;
  for (uint64_t seed = 1; seed <= 40 && !caught; ++seed) {
    const ScenarioReport with = run(Mutant::kPendingRest, seed);
    if (with.passed) continue;
    caught = with.verdict.find("still owes") != std::string::npos;
    const ScenarioReport without = run(Mutant::kNone, seed);
    EXPECT_TRUE(without.passed) << "seed " << seed << ": " << without.verdict;
  }
  EXPECT_TRUE(caught);
}

TEST(MutantsTest, AnswersThatAreCalledSnapshotsUnseenAreWrong) {
  active_mutant = Mutant::kConfirmUnseen;
  for (const auto kind : {txn::SnapshotKind::kGetMany, txn::SnapshotKind::kScan, txn::SnapshotKind::kSearch}) {
    EXPECT_GT(txn::SnapshotRaceRun(kind, /*seed=*/1).Run(20'000'000).wrong, 0u) << static_cast<int>(kind);
  }
  active_mutant = Mutant::kNone;
}

// A list is read in two steps, so a transaction may see a torn list that never existed; that is no error, because its
// reads are invalid. Where reads are not validated, or a list is really torn, the run must end.
TEST(MutantsTest, ATornListThatIsBelievedBreaksTheRun) {
  const auto run = [](Mutant mutant, uint64_t seeds) {
    active_mutant = mutant;
    SweepOptions sweep;
    sweep.seeds = seeds;
    sweep.jobs = 1;
    sweep.limit_seconds = 300;
    sweep.scenario = Hostile(/*durable=*/false, /*deaths=*/false);
    sweep.scenario.workload = "append";
    sweep.scenario.keys = 4;
    uint64_t torn = 0;
    uint64_t failed = 0;
    const Status status = RunSweep(sweep, [&](const ScenarioReport& report) {
      torn += report.verdict.find("torn list") != std::string::npos ? 1 : 0;
      failed += report.passed ? 0 : 1;
      return mutant == Mutant::kNone || torn == 0;
    });
    active_mutant = Mutant::kNone;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(failed == 0, mutant == Mutant::kNone);
    return torn;
  };
  EXPECT_GT(run(Mutant::kSkipValidation, 20), 0u);
  EXPECT_EQ(run(Mutant::kNone, 10), 0u);
}

TEST(MutantsTest, WithoutAMistakeTheSameSeedsPass) {
  for (const Case& test : {Case{Mutant::kNone, "", 5, false, false}, Case{Mutant::kNone, "", 5, true, false},
                           Case{Mutant::kNone, "", 5, false, true}, InsertsByVerbs(Mutant::kNone, "", 10),
                           Rectangles(Mutant::kNone, "", 10)}) {
    std::string verdict;
    EXPECT_EQ(SeedsUntilCaught(test, test.within, &verdict), 0u) << verdict;
  }
}

}  // namespace mutants_test
}  // namespace gannet::scenario
