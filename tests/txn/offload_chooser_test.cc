#include "txn/path/offload_chooser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::txn {
namespace offload_chooser_test {

using rdma::NodeLoad;

NodeLoad Load(uint32_t number, uint32_t servers, uint32_t link = 0, uint32_t megabytes = 0) {
  return {.number = number, .servers = servers, .link = link, .link_megabytes_per_second = megabytes};
}

TEST(RecentAverageTest, IsOfTheLastFifty) {
  RecentAverage average;
  EXPECT_TRUE(average.empty());
  average.Add(1000);
  EXPECT_EQ(average.average(), 1000);
  for (int i = 0; i < 49; ++i) average.Add(0);
  EXPECT_EQ(average.average(), 20);
  average.Add(50);  // the first one is forgotten
  EXPECT_EQ(average.average(), 1);
  average.Add(1e9);  // counts as eight
  EXPECT_EQ(average.average(), 1 + 8 / 50.0);
  for (int i = 0; i < 50; ++i) average.Add(7);
  EXPECT_EQ(average.average(), 7);
}

TEST(RecentPairsTest, PredictsByTheLine) {
  RecentPairs pairs;
  for (int x = 1; x <= 200; ++x) pairs.Add(x, 500 + 3 * x, 0);
  EXPECT_NEAR(pairs.Predict(10), 530, 1);
  EXPECT_NEAR(pairs.Predict(1000), 3500, 10);
}

TEST(RecentPairsTest, WithoutADifferenceInSizeItPredictsTheAverage) {
  RecentPairs pairs;
  pairs.Add(64, 100, 0);
  pairs.Add(64, 300, 0);
  EXPECT_EQ(pairs.Predict(64), 200);
  EXPECT_EQ(pairs.Predict(10'000), 200);
}

TEST(RecentPairsTest, NeverFallsOrBeginsBelowZero) {
  RecentPairs falling;
  falling.Add(10, 200, 0);
  falling.Add(20, 100, 0);
  EXPECT_EQ(falling.Predict(1000), 150);
  RecentPairs steep;
  steep.Add(10, 10, 0);
  steep.Add(20, 1000, 0);
  EXPECT_GE(steep.Predict(0), 0);
  EXPECT_NEAR(steep.Predict(0), 0, 1e-6);
}

TEST(RecentPairsTest, OldPairsGoIfThereAreEnoughYounger) {
  constexpr uint64_t kOld = RecentPairs::kOldNanos;
  constexpr int kLeast = RecentPairs::kLeast;
  RecentPairs pairs;
  for (int i = 0; i < 60; ++i) pairs.Add(1, 1000, 0);
  EXPECT_EQ(pairs.Predict(1), 1000);
  // Each new pair leaves one old one less.
  for (int i = 1; i <= kLeast; ++i) {
    pairs.Add(1, 0, 2 * kOld);
    EXPECT_EQ(pairs.Predict(1), 1000.0 * (kLeast - i) / kLeast);
  }
  for (int i = 0; i < 100; ++i) pairs.Add(1, 500, 2 * kOld + 1);
  EXPECT_EQ(pairs.ratio(), 500);
}

// Algorithm 1 of Catfish, step by step.
TEST(BackoffTest, GrowsWhileTheOwnerStaysBusyAndEndsWhenItIsNot) {
  Backoff backoff;
  const auto accesses = [&](const NodeLoad& load, int n, uint32_t random) {
    int avoided = 0;
    for (int i = 0; i < n; ++i) avoided += backoff.Next(load, random) ? 1 : 0;
    return avoided;
  };
  EXPECT_EQ(accesses(Load(0, 0), 100, 7), 0);    // nothing announced yet
  EXPECT_EQ(accesses(Load(1, 950), 100, 7), 0);  // T is not passed
  EXPECT_EQ(accesses(Load(2, 951), 100, 5), 5);  // 0..7
  EXPECT_EQ(backoff.busy_rounds(), 1u);
  EXPECT_EQ(accesses(Load(2, 951), 100, 5), 0);         // the same announcement says nothing new
  EXPECT_EQ(accesses(Load(3, 1000), 100, 3), 8 + 3);    // 8..15
  EXPECT_EQ(accesses(Load(4, 1000), 100, 15), 16 + 7);  // 16..23; only random % 8 counts
  EXPECT_EQ(backoff.busy_rounds(), 3u);
  EXPECT_EQ(accesses(Load(5, 500), 100, 7), 0);
  EXPECT_EQ(backoff.busy_rounds(), 0u);
  EXPECT_EQ(accesses(Load(6, 999), 100, 2), 2);  // it begins again
}

TEST(BackoffTest, WhatIsLeftIsUsedUpAfterTheOwnerBecameIdle) {
  Backoff backoff;
  for (uint32_t number = 1; number <= 10; ++number) {
    for (int i = 0; i < 20; ++i) (void)backoff.Next(Load(number, 1000), 7);
  }
  const uint32_t left = backoff.left();
  uint32_t avoided = 0;
  for (int i = 0; i < 1000; ++i) avoided += backoff.Next(Load(11, 100), 7) ? 1 : 0;
  EXPECT_EQ(avoided, left);
}

TEST(BackoffTest, AllAccessesAreAvoidedIfItStaysBusyButNotForLongAfter) {
  Backoff backoff;
  constexpr int kPerRound = 500;
  Random random(1);
  int avoided = 0;
  uint32_t number = 0;
  for (int round = 0; round < 1000; ++round) {
    ++number;
    avoided = 0;
    for (int i = 0; i < kPerRound; ++i) avoided += backoff.Next(Load(number, 1000), static_cast<uint32_t>(random()));
  }
  EXPECT_GE(avoided, kPerRound - 20);
  ++number;
  avoided = 0;
  for (int i = 0; i < 10 * kPerRound; ++i) avoided += backoff.Next(Load(number, 0), 0) ? 1 : 0;
  EXPECT_LE(avoided, kPerRound + 8);
}

// An access by one READ of an index and one of a record, or by a call.
AskedAccess OneGet(double postings = 2) {
  return {
      .kind = AccessKind::kGet, .reads = {.postings = postings, .reads = postings, .bytes = 128}, .answer_bytes = 100};
}

class OffloadChooserTest : public testing::Test {
 protected:
  OffloadChooserTest() { chooser_.Resize(2, 3, ReadPathPolicy::kAdaptive); }

  // Each posting takes `posting` ns, a call `call` ns. Returns how many of `n` accesses were calls.
  int Run(int n, double posting, double call, const NodeLoad& load = {}, AskedAccess asked = OneGet()) {
    int calls = 0;
    for (int i = 0; i < n; ++i) {
      const PathChoice choice = chooser_.Choose(asked, load, random_);
      const bool by_call = choice.path == AccessPath::kCall;
      calls += by_call ? 1 : 0;
      now_ += static_cast<uint64_t>(by_call ? call : posting * asked.reads.postings);
      if (!choice.measured) continue;
      rdma::Activity activity;
      if (by_call) {
        activity.calls = 1;
        chooser_.Record(choice, call, activity, now_);
      } else {
        activity.postings = static_cast<uint64_t>(asked.reads.postings);
        activity.posting_nanos = static_cast<uint64_t>(posting * asked.reads.postings);
        chooser_.Record(choice, posting * asked.reads.postings, activity, now_);
      }
    }
    return calls;
  }

  OffloadChooser chooser_;
  Random random_{7};
  uint64_t now_ = 0;
};

TEST_F(OffloadChooserTest, TheFirstAccessesTakeBothPathsInTurn) {
  EXPECT_EQ(Run(8, 2000, 5000), 4);
}

TEST_F(OffloadChooserTest, TheVeryFirstOfEachPathIsNotMeasured) {
  Run(2, 1e9, 1e9);  // opens connections and caches
  Run(8, 2000, 3000);
  EXPECT_LE(Run(1000, 2000, 3000), 1000);
  EXPECT_GE(Run(1000, 2000, 3000), 950);
}

TEST_F(OffloadChooserTest, TakesTheCheaperAndOneInAHundredOfTheOther) {
  Run(100, 2000, 3000);
  const int calls = Run(100'000, 2000, 3000);
  EXPECT_GT(calls, 98'800);
  EXPECT_LT(calls, 99'200);
  OffloadChooser other;
  other.Resize(1, 1, ReadPathPolicy::kAdaptive);
  chooser_.Resize(1, 1, ReadPathPolicy::kAdaptive);
  Run(100, 1000, 5000);
  const int few = Run(100'000, 1000, 5000);
  EXPECT_GT(few, 800);
  EXPECT_LT(few, 1200);
}

TEST_F(OffloadChooserTest, TablesThatAreCreatedLaterAreCountedToo) {
  EXPECT_EQ(chooser_.tables(), 2u);
  chooser_.Count(AccessKind::kGet, 1, AccessPath::kCall);
  EXPECT_EQ(chooser_.statistics(70, AccessKind::kGet).accesses(), 0u);
  chooser_.Count(AccessKind::kInsert, 70, AccessPath::kOneSided);
  EXPECT_GT(chooser_.tables(), 70u);
  EXPECT_EQ(chooser_.statistics(70, AccessKind::kInsert).one_sided, 1u);
  EXPECT_EQ(chooser_.statistics(1, AccessKind::kGet).calls, 1u) << "what was counted before stays";
}

TEST_F(OffloadChooserTest, ContraryAccessesAreCountedWithTheirCost) {
  Run(100, 2000, 3000);
  const PathStatistics before = chooser_.statistics(0, AccessKind::kGet);
  Run(10'000, 2000, 3000);
  const PathStatistics since = chooser_.statistics(0, AccessKind::kGet).Since(before);
  EXPECT_EQ(since.estimated, 10'000u);
  EXPECT_EQ(since.contrary, since.one_sided);
  EXPECT_NEAR(since.contrary_cost(), 4000 - 3000, 100);
  EXPECT_NEAR(since.one_sided_estimate(), 4000, 100);
  EXPECT_NEAR(since.call_estimate(), 3000, 100);
  EXPECT_EQ(chooser_.statistics(1, AccessKind::kGet).accesses(), 0u);
  EXPECT_EQ(chooser_.statistics(0, AccessKind::kScan).accesses(), 0u);
}

// The operating system may take the CPU away in the middle of an access.
TEST_F(OffloadChooserTest, AFewVeryLongAccessesDecideNothing) {
  Run(100, 2000, 3000);
  const auto run = [&](bool long_calls) {
    int calls = 0;
    for (int i = 0; i < 100; ++i) {
      calls += Run(200, 2000, 3000);
      AskedAccess asked = OneGet();
      PathChoice choice = chooser_.Choose(asked, {}, random_);
      if (!choice.measured || (choice.path == AccessPath::kCall) != long_calls) continue;
      chooser_.Record(choice, 10e6, {.postings = 2, .posting_nanos = 10'000'000}, now_);
    }
    return calls;
  };
  EXPECT_GE(run(true), 19'000);
  EXPECT_GE(run(false), 19'000);
}

TEST_F(OffloadChooserTest, WhatBecomesFarDearerIsNoticedAtOnce) {
  Run(1000, 2000, 3000);
  // A call takes a millisecond. Each measurement counts eightfold at most.
  EXPECT_LE(Run(1000, 2000, 1e6), 100);
}

TEST_F(OffloadChooserTest, SessionsDoNotExploreTogether) {
  // Two choosers with the same history and other random numbers.
  std::array<OffloadChooser, 2> choosers;
  std::array<std::vector<int>, 2> contrary;
  for (size_t s = 0; s < 2; ++s) {
    choosers[s].Resize(1, 1, ReadPathPolicy::kAdaptive);
    Random random(s + 1);
    for (int i = 0; i < 5000; ++i) {
      const PathChoice choice = choosers[s].Choose(OneGet(), {}, random);
      if (choice.contrary) contrary[s].push_back(i);
      if (choice.measured)
        choosers[s].Record(choice, choice.path == AccessPath::kCall ? 3000 : 6000,
                           {.postings = 2, .posting_nanos = 6000}, static_cast<uint64_t>(i));
    }
  }
  ASSERT_GT(contrary[0].size(), 20u);
  ASSERT_GT(contrary[1].size(), 20u);
  std::vector<int> common;
  std::ranges::set_intersection(contrary[0], contrary[1], std::back_inserter(common));
  EXPECT_LE(common.size(), 5u);
}

TEST_F(OffloadChooserTest, NoticesWhenTheOtherPathBecomesCheaper) {
  Run(1000, 2000, 3000);
  EXPECT_GE(Run(1000, 2000, 3000), 900);
  Run(1000, 2000, 10'000);  // the owner becomes busy: its calls are measured all the time
  EXPECT_LE(Run(1000, 2000, 10'000), 100);
  Run(10'000, 2000, 3000);  // it becomes idle: found out by contrary accesses
  EXPECT_GE(Run(1000, 2000, 3000), 900);
}

TEST_F(OffloadChooserTest, OldCallsDoNotHideThatTheyBecameCheap) {
  Run(10'000, 2000, 30'000);
  EXPECT_LE(Run(1000, 2000, 30'000), 20);
  // Eight calls are enough, and come once in 500 accesses or more often.
  Run(8000, 2000, 3000);
  EXPECT_GE(Run(1000, 2000, 3000), 900);
}

TEST_F(OffloadChooserTest, TryingAMuchDearerPathCostsLittle) {
  Run(100, 2000, 400'000);
  int calls = 0;
  for (int i = 0; i < 100; ++i) calls += Run(1000, 2000, 400'000);
  EXPECT_GT(calls, 10);
  EXPECT_LT(calls * 400'000.0, 0.03 * 100'000 * 4000);
}

TEST_F(OffloadChooserTest, KnowsTheCachesByTheEstimate) {
  for (int i = 0; i < 500; ++i) {
    Run(1, 2000, 5000, {}, OneGet(1));
    Run(1, 2000, 5000, {}, OneGet(4));
  }
  EXPECT_LE(Run(1000, 2000, 5000, {}, OneGet(1)), 50);   // 2,000 against 5,000
  EXPECT_GE(Run(1000, 2000, 5000, {}, OneGet(4)), 950);  // 8,000 against 5,000
}

// Without that, a client with empty caches makes calls, and its caches stay empty.
TEST_F(OffloadChooserTest, AnAccessThatFillsACacheCountsItsShareOfThat) {
  AskedAccess kept = OneGet(3);
  kept.reads.lasting_postings = 2;
  for (int i = 0; i < 500; ++i) {
    Run(1, 2000, 5000, {}, OneGet(3));
    Run(1, 2000, 5000, {}, kept);
  }
  EXPECT_GE(Run(1000, 2000, 5000, {}, OneGet(3)), 950);  // 6,000 against 5,000
  EXPECT_LE(Run(1000, 2000, 5000, {}, kept), 50);        // 2,500 against 5,000
  // What such accesses take is compared with the whole formula, so others do not look dearer.
  EXPECT_NEAR(chooser_.OneSidedCost(OneGet(3), {}), 6000, 200);
  EXPECT_NEAR(chooser_.OneSidedCost(kept, {}), 2500, 100);
  AskedAccess renewal = OneGet(1);
  const double known = chooser_.OneSidedCost(renewal, {});
  renewal.reads.calls = renewal.reads.lasting_calls = 1;
  const double renewed = chooser_.OneSidedCost(renewal, {});
  renewal.reads.lasting_calls = 0;
  EXPECT_NEAR((renewed - known) * 8, chooser_.OneSidedCost(renewal, {}) - known, 1);
}

TEST_F(OffloadChooserTest, RepeatedReadsCountAsACost) {
  // The estimate says one posting; records are found locked, and READ four times.
  for (int i = 0; i < 400; ++i) {
    const PathChoice choice = chooser_.Choose(OneGet(1), {}, random_);
    if (!choice.measured) continue;
    const bool by_call = choice.path == AccessPath::kCall;
    chooser_.Record(choice, by_call ? 5000 : 8000,
                    {.postings = by_call ? 0u : 4u, .posting_nanos = by_call ? 0u : 8000u}, static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(chooser_.OneSidedCost(OneGet(1), {}), 8000, 500);
  EXPECT_NEAR(chooser_.CallCost(OneGet(1), {}), 5000, 1);
}

// Short accesses that wait for locks do not make long ones look dear, which wait no longer.
TEST_F(OffloadChooserTest, AWaitCountsOnceAndNotInProportion) {
  constexpr double kWait = 6000;
  AskedAccess many = OneGet(10);
  for (int i = 0; i < 2000; ++i) {
    const AskedAccess asked = i % 4 == 0 ? many : OneGet(1);
    const PathChoice choice = chooser_.Choose(asked, {}, random_);
    if (!choice.measured || choice.path == AccessPath::kCall) continue;
    const double nanos = 2000 * asked.reads.postings + kWait;
    chooser_.Record(choice, nanos,
                    {.postings = static_cast<uint64_t>(asked.reads.postings),
                     .posting_nanos = static_cast<uint64_t>(2000 * asked.reads.postings)},
                    static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(chooser_.OneSidedCost(OneGet(1), {}), 8000, 800);
  EXPECT_NEAR(chooser_.OneSidedCost(many, {}), 26'000, 2600);
}

// A call of a busy owner costs others their time.
TEST_F(OffloadChooserTest, CallsOfABusyOwnerHaveAPrice) {
  Run(500, 2000, 3000);
  const double idle = chooser_.CallCost(OneGet(), {});
  EXPECT_NEAR(chooser_.CallCost(OneGet(), {.servers = 500}), idle * 1.05, 1);
  EXPECT_NEAR(chooser_.CallCost(OneGet(), {.servers = 800}), idle * 1.08, 1);
  EXPECT_NEAR(chooser_.CallCost(OneGet(), {.servers = 1000}), idle * 1.25, 1);
}

TEST_F(OffloadChooserTest, LargerAnswersTakeLonger) {
  AskedAccess few{.kind = AccessKind::kScan, .reads = {.postings = 2, .reads = 3, .bytes = 1000}, .answer_bytes = 200};
  AskedAccess many = few;
  many.reads.reads = 100;
  many.answer_bytes = 20'000;
  for (int i = 0; i < 200; ++i) {
    Run(1, 2000, 4000, {}, few);
    Run(1, 2000, 24'000, {}, many);
  }
  EXPECT_NEAR(chooser_.CallCost(few, {}), 4000, 200);
  EXPECT_NEAR(chooser_.CallCost(many, {}), 24'000, 500);
}

TEST_F(OffloadChooserTest, OwnersAndKindsAreMeasuredApart) {
  AskedAccess other = OneGet();
  other.owner = 1;
  Run(500, 2000, 3000);
  Run(500, 1000, 9000, {}, other);
  EXPECT_GE(Run(1000, 2000, 3000), 950);
  EXPECT_LE(Run(1000, 1000, 9000, {}, other), 50);
}

// Bytes: 100 KB take 8 us of an idle link of 12.5 GB/s.
TEST_F(OffloadChooserTest, WhereTheLinkIsFullThePathWithFewerBytesWins) {
  AskedAccess asked{
      .kind = AccessKind::kScan, .reads = {.postings = 1, .reads = 1, .bytes = 100'000}, .answer_bytes = 5'000};
  const NodeLoad idle = Load(1, 100, 100, 12'500);
  const NodeLoad full = Load(2, 100, 970, 12'500);
  Run(500, 10'000, 15'000, idle, asked);
  EXPECT_LE(Run(1000, 10'000, 15'000, idle, asked), 50);
  EXPECT_GE(Run(1000, 10'000, 15'000, full, asked), 950);
}

// 20 READs take 0.5 us of an engine that serves 40 M/s: nothing while it is idle, and more than a call when it is full.
TEST_F(OffloadChooserTest, WhereTheNicsEngineIsFullThePathWithFewerVerbsWins) {
  AskedAccess asked{.kind = AccessKind::kGetMany, .reads = {.postings = 1, .reads = 20}};
  const NodeLoad idle{.number = 1, .engine = 100, .verb_picos = 25'000};
  const NodeLoad full{.number = 2, .engine = 970, .verb_picos = 25'000};
  Run(500, 4'000, 6'000, idle, asked);
  EXPECT_LE(Run(1000, 4'000, 6'000, idle, asked), 50);
  EXPECT_GE(Run(1000, 4'000, 6'000, full, asked), 950);
}

TEST_F(OffloadChooserTest, ABusyOwnerIsRelievedUnlessItsLinkIsFullToo) {
  const auto one_sided_of = [&](uint32_t link, double posting) {
    chooser_.Resize(1, 1, ReadPathPolicy::kAdaptive);
    for (uint32_t round = 1; round <= 40; ++round) Run(100, posting, 3000, Load(round, 1000, link));
    return 100 - Run(100, posting, 3000, Load(41, 1000, link));
  };
  EXPECT_GE(one_sided_of(0, 2000), 80);
  EXPECT_LE(one_sided_of(960, 2000), 10);
  EXPECT_LE(one_sided_of(0, 20'000), 10);  // READs would cost far more
}

TEST_F(OffloadChooserTest, AFixedPolicyNeverExploresAndIsCounted) {
  chooser_.Resize(2, 3, ReadPathPolicy::kCall);
  for (int i = 0; i < 1000; ++i) {
    const PathChoice choice = chooser_.Fixed(AccessKind::kGetMany, 1, 2, chooser_.FixedPath({}));
    EXPECT_EQ(choice.path, AccessPath::kCall);
    EXPECT_FALSE(choice.measured);
  }
  const PathStatistics counted = chooser_.statistics(1, AccessKind::kGetMany);
  EXPECT_EQ(counted.calls, 1000u);
  EXPECT_EQ(counted.one_sided, 0u);
  EXPECT_EQ(counted.estimated, 0u);
}

TEST_F(OffloadChooserTest, FixedPoliciesMayDependOnTheIndex) {
  const auto path = [this](ReadPathPolicy policy, bool ordered) {
    chooser_.Resize(1, 1, policy);
    return chooser_.FixedPath({.ordered = ordered});
  };
  EXPECT_EQ(path(ReadPathPolicy::kOneSided, true), AccessPath::kOneSided);
  EXPECT_EQ(path(ReadPathPolicy::kCall, false), AccessPath::kCall);
  EXPECT_EQ(path(ReadPathPolicy::kOrderedByCall, false), AccessPath::kOneSided);
  EXPECT_EQ(path(ReadPathPolicy::kOrderedByCall, true), AccessPath::kCall);
}

TEST_F(OffloadChooserTest, InsertsAreCallsUnlessClientsMayMakeThem) {
  const rdma::NodeLoad busy{.number = 1, .servers = 900};
  const rdma::NodeLoad idle{.number = 1, .servers = 100};
  const index::IndexTraits tree{.ordered = true, .client_writes = true};
  const auto path = [this](ReadPathPolicy policy, const index::IndexTraits& traits, const rdma::NodeLoad& load) {
    chooser_.Resize(1, 1, policy);
    return chooser_.PathOfInsert(traits, load);
  };
  for (const auto policy : {ReadPathPolicy::kAdaptive, ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    EXPECT_EQ(path(policy, {.ordered = true}, busy), AccessPath::kCall);
  }
  EXPECT_EQ(path(ReadPathPolicy::kOneSided, tree, idle), AccessPath::kOneSided);
  EXPECT_EQ(path(ReadPathPolicy::kCall, tree, busy), AccessPath::kCall);
  EXPECT_EQ(path(ReadPathPolicy::kOrderedByCall, tree, busy), AccessPath::kCall);
  EXPECT_EQ(path(ReadPathPolicy::kAdaptive, tree, busy), AccessPath::kOneSided);
  EXPECT_EQ(path(ReadPathPolicy::kAdaptive, tree, idle), AccessPath::kCall);
  EXPECT_EQ(path(ReadPathPolicy::kAdaptive, tree, {}), AccessPath::kCall) << "nothing was announced";
}

// A closed loop: sessions that do one access after the other against one owner. Calls queue for its threads, of which
// other work takes a share; READs take a constant time.
class ClosedLoop {
 public:
  struct Options {
    int sessions = 32;
    int threads = 2;
    double service_nanos = 1500;  // of a call, by a thread
    double wire_nanos = 2000;     // of a call, besides
    double posting_nanos = 2500;
    double postings = 2;
  };

  ClosedLoop(const Options& options, ReadPathPolicy policy) : options_(options), threads_free_at_(options.threads) {
    sessions_.resize(static_cast<size_t>(options.sessions));
    for (size_t i = 0; i < sessions_.size(); ++i) {
      sessions_[i].chooser.Resize(1, 1, policy);
      sessions_[i].random = Random(i + 1);
      events_.push({static_cast<double>(i) * 10, i});
    }
  }

  // The share of the threads' time that other work takes from now on.
  void SetOtherWork(double share) { other_work_ = share; }

  struct Phase {
    double per_second = 0;
    double call_share = 0;
  };
  // Runs for this long, and counts what ended in it.
  Phase RunFor(double nanos) {
    const double end = now_ + nanos;
    uint64_t done = 0, calls = 0;
    while (!events_.empty() && events_.top().at < end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Announce();
      Session& session = sessions_[event.session];
      const PathChoice choice = session.chooser.adaptive()
                                    ? session.chooser.Choose(Asked(), load_, session.random)
                                    : session.chooser.Fixed(AccessKind::kGet, 0, 0, session.chooser.FixedPath({}));
      const bool by_call = choice.path == AccessPath::kCall;
      const double took = by_call ? Call() : options_.postings * options_.posting_nanos;
      if (choice.measured) {
        rdma::Activity activity;
        if (!by_call) {
          activity.postings = static_cast<uint64_t>(options_.postings);
          activity.posting_nanos = static_cast<uint64_t>(took);
        }
        session.chooser.Record(choice, took, activity, static_cast<uint64_t>(now_ + took));
      }
      ++done;
      calls += by_call ? 1 : 0;
      events_.push({now_ + took, event.session});
    }
    now_ = end;
    return {static_cast<double>(done) / (nanos * 1e-9), static_cast<double>(calls) / static_cast<double>(done)};
  }

 private:
  struct Session {
    OffloadChooser chooser;
    Random random{1};
  };
  struct Event {
    double at;
    size_t session;
    bool operator<(const Event& other) const { return at > other.at; }
  };

  AskedAccess Asked() const {
    return {.kind = AccessKind::kGet,
            .reads = {.postings = options_.postings, .reads = options_.postings, .bytes = 128},
            .answer_bytes = 100};
  }
  double Call() {
    auto first = std::ranges::min_element(threads_free_at_);
    const double service = options_.service_nanos / (1 - other_work_);
    *first = std::max(*first, now_ + options_.wire_nanos / 2) + service;
    busy_ += service;
    return *first + options_.wire_nanos / 2 - now_;
  }
  void Announce() {
    constexpr double kEvery = 5e6;
    if (now_ - announced_at_ < kEvery) return;
    const double share = busy_ / ((now_ - announced_at_) * options_.threads);
    load_.number = load_.number % 4095 + 1;
    load_.servers = static_cast<uint32_t>(1000 * std::min(1.0, share));
    busy_ = 0;
    announced_at_ = now_;
  }

  const Options options_;
  std::vector<double> threads_free_at_;
  std::deque<Session> sessions_;
  std::priority_queue<Event> events_;
  double now_ = 0;
  double other_work_ = 0;
  double busy_ = 0;
  double announced_at_ = 0;
  NodeLoad load_;
};

double FixedRate(const ClosedLoop::Options& options, ReadPathPolicy policy, double other_work) {
  ClosedLoop loop(options, policy);
  loop.SetOtherWork(other_work);
  loop.RunFor(20e6);
  return loop.RunFor(50e6).per_second;
}

// At every number of server threads the chooser reaches at least 0.95 of the better fixed path.
TEST(OffloadChooserLoopTest, IsNearTheBetterFixedPath) {
  for (const int threads : {1, 2, 4, 6, 8, 12}) {
    ClosedLoop::Options options;
    options.threads = threads;
    ClosedLoop loop(options, ReadPathPolicy::kAdaptive);
    loop.RunFor(50e6);
    const double adaptive = loop.RunFor(100e6).per_second;
    const double better =
        std::max(FixedRate(options, ReadPathPolicy::kOneSided, 0), FixedRate(options, ReadPathPolicy::kCall, 0));
    EXPECT_GE(adaptive, 0.95 * better) << threads << " threads";
  }
}

// The load steps up and down. 50 ms after each step the rate is near the better fixed path's, and stays there: no
// swing.
TEST(OffloadChooserLoopTest, FollowsStepsOfLoadWithoutSwinging) {
  const ClosedLoop::Options options{.threads = 8};
  ClosedLoop loop(options, ReadPathPolicy::kAdaptive);
  for (const double other_work : {0.0, 0.9, 0.0, 0.5, 0.95, 0.0}) {
    loop.SetOtherWork(other_work);
    loop.RunFor(50e6);
    const double better = std::max(FixedRate(options, ReadPathPolicy::kOneSided, other_work),
                                   FixedRate(options, ReadPathPolicy::kCall, other_work));
    std::vector<double> shares;
    for (int i = 0; i < 10; ++i) {
      const ClosedLoop::Phase phase = loop.RunFor(10e6);
      EXPECT_GE(phase.per_second, 0.95 * better) << "other work " << other_work << ", interval " << i;
      shares.push_back(phase.call_share);
    }
    const auto [least, most] = std::ranges::minmax(shares);
    EXPECT_LE(most - least, 0.2) << "other work " << other_work;
  }
}

}  // namespace offload_chooser_test
}  // namespace gannet::txn
