// Claims of leaves (index/shared_leaf/claim/claim.h), in simulations: what a holder reads without a verb, how the owner
// and others change what is claimed, lost connections and deaths. And that each rule is needed: deliberate mistakes
// (base/mutant.h) show.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/shared_leaf/change/change_calls.h"
#include "tests/index/claim_world.h"

namespace gannet::index {
namespace dex_claim_test {

using namespace claim_world;

TEST(DexClaim, AClaimedLeafTakesNoVerb) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    EXPECT_GE(world.claims(), 100 / 13u);
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 200; ++key) {
      const StatusOr<FindResult> found = client.Find(key);
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->record, key % 2 == 0 ? Value(0) : rdma::GlobalAddress());
      EXPECT_EQ(found->witness.word.is_null(), key % 2 == 0);
    }
    ScanResult rows;
    ASSERT_TRUE(client.Scan(10, 150, &rows).ok());
    EXPECT_EQ(rows.entries.size(), 71u);
    EXPECT_EQ(VerbsIn(client.verbs() - before), 0u);
    Client second(&world, kHolder);
    ASSERT_TRUE(second.Find(1).ok());
    const rdma::VerbCounters known = second.verbs();
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(second.Find(key).ok());
    EXPECT_EQ(VerbsIn(second.verbs() - known), 0u) << "the copies are those of all clients of the process";
  });
}

// The leaves below one inner node come by one posting.
TEST(DexClaim, AScanOfAHundredKeysTakesThreeRoundTrips) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 2 * kKeys; ++key) ASSERT_TRUE(client.Find(key).ok());
    for (uint64_t key = 101; key < 320; key += 8) world.Insert(key, 1);  // so none of these leaves is claimed any more
    const rdma::VerbCounters before = client.verbs();
    ScanResult rows;
    ASSERT_TRUE(client.Scan(102, 280, &rows).ok());
    EXPECT_GE(rows.entries.size(), 100u);
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_GE(used.reads, 5u);
    EXPECT_LE(used.round_trips, 3u);
  });
}

TEST(DexClaim, ALeaseThatHasEndedTakesOneLookAtALeaf) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    SleepForNanos(2 * NanosOf(kClaimLease));
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_EQ(VerbsIn(used), 1u) << "one READ renews the lease of all";
    EXPECT_EQ(used.bytes_in, kWordBytes);
  });
}

TEST(DexClaim, AChangeByAnybodyShows) {
  World world(1);
  On(&world, kHolder, [&] {
    Client holder(&world, kHolder);
    Client other(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(holder.Find(key).ok());
    // The owner.
    world.Insert(11, 7);
    EXPECT_EQ(holder.Find(11)->record, Value(7));
    EXPECT_GT(world.service().boards().ended(), 0u);
    // Another thread of the holder, and itself.
    const uint64_t ended = world.service().boards().ended();
    ASSERT_TRUE(other.Replace(60, 3).ok());
    ASSERT_TRUE(holder.Replace(62, 4).ok());
    ASSERT_TRUE(holder.Insert(63, 5).ok());
    ASSERT_TRUE(holder.Remove(64, 0).ok());
    const rdma::VerbCounters before = holder.verbs();
    EXPECT_EQ(holder.Find(60)->record, Value(3));
    EXPECT_EQ(holder.Find(62)->record, Value(4));
    EXPECT_EQ(holder.Find(63)->record, Value(5));
    EXPECT_TRUE(holder.Find(64)->record.is_null());
    EXPECT_EQ(VerbsIn(holder.verbs() - before), 0u) << "changes by the holder go into its copies";
    EXPECT_EQ(world.service().boards().ended(), ended);
  });
  // Another node calls the owner.
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    ASSERT_TRUE(other.Find(80).ok());
    const rdma::VerbCounters before = other.verbs();
    ASSERT_TRUE(other.Replace(80, 9).ok());
    ASSERT_TRUE(other.Insert(81, 10).ok());
    ASSERT_TRUE(other.Remove(82, 0).ok());
    const rdma::VerbCounters used = other.verbs() - before;
    EXPECT_GE(used.calls, 1u);
  });
  On(&world, kHolder, [&] {
    Client holder(&world, kHolder);
    EXPECT_EQ(holder.Find(80)->record, Value(9));
    EXPECT_EQ(holder.Find(81)->record, Value(10));
    EXPECT_TRUE(holder.Find(82)->record.is_null());
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

TEST(DexClaim, AChangeByTheHolderTakesTwoRoundTrips) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 100; key += 2) ASSERT_TRUE(client.Replace(key, key).ok());
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_EQ(used.reads, 0u) << "the leaf is in the cache";
    EXPECT_EQ(used.compare_and_swaps, 50u) << "the lock";
    EXPECT_EQ(used.calls, 0u);
  });
}

TEST(DexClaim, ANodeWhoseClaimWasEndedWaitsBeforeItClaimsAgain) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    ASSERT_TRUE(client.Find(20).ok());
    const size_t claims = world.claims();
    ASSERT_GT(claims, 0u);
    world.Insert(21, 1);
    EXPECT_EQ(world.claims(), claims - 1);
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(world.claims(), claims - 1) << "it would disturb the owner";
    SleepForNanos(1'100'000);
    EXPECT_EQ(client.Find(21)->record, Value(1));
    EXPECT_EQ(world.claims(), claims);
    active_mutant = Mutant::kGreedy;
    world.Insert(23, 1);
    EXPECT_EQ(client.Find(23)->record, Value(1));
    EXPECT_EQ(world.claims(), claims) << "it did not wait";
    active_mutant = Mutant::kNone;
  });
}

// Leaves share the words of a board, so the end of one claim ends others. These are made again.
TEST(DexClaim, AClaimThatAnotherLeafEndedIsMadeAgain) {
  constexpr uint64_t kAbsent = 61;
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const rdma::GlobalAddress leaf = client.Find(kAbsent)->witness.word;
    On(&world, kOwner, [&] {
      const std::unique_ptr<rdma::Channel> channel = Must(world.node(kOwner)->OpenChannel());
      coro::Worker worker;
      worker.AddPoller([&] { return channel->Poll(); });
      // Any leaf of this word.
      const Status ended = worker.BlockOn(world.service().boards().End(channel.get(), kHolder, leaf));
      EXPECT_TRUE(ended.ok()) << ended;
    });
    const auto verbs_of_a_look = [&] {
      const rdma::VerbCounters before = client.verbs();
      EXPECT_TRUE(client.Find(kAbsent).ok());
      return VerbsIn(client.verbs() - before);
    };
    EXPECT_GT(verbs_of_a_look(), 0u);
    for (int look = 0; look < 3; ++look) {
      SleepForNanos(10'000'000);
      verbs_of_a_look();
    }
    EXPECT_EQ(verbs_of_a_look(), 0u);
  });
}

TEST(DexClaim, AnOwnerThatHasLostTheHolderWaitsForItsLease) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
  });
  ASSERT_GT(world.claims(), 0u);
  world.fabric().Kill(kHolder);
  const uint64_t killed = world.simulation().now();
  bool is_over = false;
  Thread repair("repair", [&] {
    while (!is_over) {
      world.RepairIfLost();
      SleepForNanos(100'000);
    }
  });
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    // The leaf is served, and can be changed when the lease has ended for sure.
    EXPECT_EQ(other.Find(60)->record, Value(0));
    ASSERT_TRUE(other.Replace(60, 1).ok());
    EXPECT_EQ(other.Find(60)->record, Value(1));
  });
  EXPECT_LT(world.simulation().now() - killed, 50'000'000u);
  is_over = true;
  repair.join();
  EXPECT_EQ(world.claims(), 0u);
  // The next process of the node claims again.
  world.Attach(kHolder);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
  });
  EXPECT_GT(world.claims(), 0u);
}

// The thread that repairs may itself change a leaf that another lost node has claimed, or wait for one that does.
TEST(DexClaim, AnOwnerWaitsForTheLeaseAndForNoRepair) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
  });
  const size_t claims = world.claims();
  world.fabric().Kill(kHolder);
  const uint64_t killed = world.simulation().now();
  On(&world, kOwner, [&] {
    const Status replaced = world.index().Replace(Key(60), Value(0), Value(1));
    EXPECT_TRUE(replaced.ok()) << replaced;
  });
  const uint64_t took = world.simulation().now() - killed;
  EXPECT_GT(took, NanosOf(kClaimTerm)) << "the holder might use its copies";
  EXPECT_LT(took, 50'000'000u);
  EXPECT_EQ(world.claims(), claims - 1);
}

// Any node may call kEndClaims.
TEST(DexClaim, OnlyClaimsAreEndedByCall) {
  World world(1);
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    std::vector<WordChange> claims;
    dynamic_cast<shared_leaf::BlockLender&>(world.index()).blocks().ForEach([&](rdma::GlobalAddress at) {
      const uint64_t word = world.StateOf(at);
      if (shared_leaf::IsClaimedBy(kHolder, word)) claims.push_back({.word = at, .before = word});
    });
    ASSERT_GE(claims.size(), 5u);
    std::vector<WordChange> asked(claims.begin(), claims.begin() + 3);
    asked[1].before = shared_leaf::ClaimOf(asked[1].before, kHolder);  // a later claim
    On(&world, kOther, [&] {
      const std::unique_ptr<rdma::Channel> channel = Must(world.node(kOther)->OpenChannel());
      coro::Worker worker;
      worker.AddPoller([&] { return channel->Poll(); });
      shared_leaf::ChangeCalls calls(channel.get(), kOwner, kId, absl::Milliseconds(100));
      const Status ended = worker.BlockOn(calls.EndClaims(asked));
      EXPECT_TRUE(ended.ok()) << ended;
      for (const WordChange& wrong :
           {WordChange{.word = claims[3].word, .before = VersionOf(claims[3].before)},
            WordChange{.word = claims[3].word + kWordBytes, .before = claims[3].before},
            WordChange{.word = {kHolder, claims[3].word.offset()}, .before = claims[3].before},
            WordChange{.word = {kOwner, UINT64_MAX}, .before = claims[3].before}}) {
        std::vector<WordChange> both = {claims[4], wrong};
        EXPECT_TRUE(absl::IsInvalidArgument(worker.BlockOn(calls.EndClaims(both))));
      }
      std::array<std::byte, 5> torn{};
      torn[0] = static_cast<std::byte>(kId);
      const Status answered = worker.BlockOn([](rdma::Channel* through, auto request) -> coro::Task<Status> {
        const StatusOr<size_t> bytes = co_await through->Call(kOwner, shared_leaf::kEndClaims, request, {});
        co_return bytes.status();
      }(channel.get(), std::span<const std::byte>(torn)));
      EXPECT_TRUE(absl::IsInvalidArgument(answered)) << answered;
    });
    for (const size_t i : {0u, 2u}) {
      EXPECT_EQ(asked[i].after, NextState(claims[i].before, false));
      EXPECT_EQ(world.StateOf(claims[i].word), asked[i].after);
    }
    EXPECT_EQ(asked[1].after, asked[1].before);
    for (const size_t i : {1u, 3u, 4u}) EXPECT_EQ(world.StateOf(claims[i].word), claims[i].before);
    for (uint64_t key = 0; key < 200; key += 2) EXPECT_EQ(client.Find(key)->record, Value(0));
  });
}

// --- histories ---

struct RaceOptions {
  // The holder's connection to the owner is cut, too. Then the holder changes nothing: that it may do so again only
  // after the repair of its locks is the business of transactions (txn/peer/peers.h).
  bool cuts = false;
  bool stalls = false;  // threads stand still for longer than a lease
  int operations = 250;
};

// Ends of claims of a lost holder, and merges of leaves, in all races.
uint64_t repairs = 0;
uint64_t merges = 0;

// Threads of all nodes read and write a few leaves. Returns what is wrong, or nothing.
std::string Race(uint64_t seed, const RaceOptions& options) {
  constexpr uint64_t kHot = 40;  // keys, in three or four leaves
  rdma::sim::Faults faults = RaceFaults();
  if (options.stalls) faults.preempt_nanos = 2 * NanosOf(kClaimTerm);
  World world(seed, {.faults = faults});
  History history;
  std::array<bool, 2 * kKeys> taken{};  // by a writer
  std::string wrong;
  int running = 0;
  const auto note = [&wrong, seed](const std::string& what) {
    if (wrong.empty()) wrong = "seed " + std::to_string(seed) + ": " + what;
  };
  const auto read = [&](Client* client, uint64_t key) {
    const uint64_t begin = history.Tick();
    const StatusOr<FindResult> found = client->Find(key);
    if (!found.ok()) return;  // of a cut link
    const std::string judged =
        found->record.is_null() ? "no value" : history.Judge(key, NumberOf(found->record), begin, history.Tick());
    if (!judged.empty()) note("key " + std::to_string(key) + ": " + judged);
  };
  const auto scan = [&](Client* client, uint64_t key) {
    const uint64_t begin = history.Tick();
    ScanResult rows;
    if (!client->Scan(key, key + 30, &rows).ok()) return;
    const uint64_t end = history.Tick();
    for (const Entry& row : rows.entries) {
      if (row.key.integer() % 2 != 0) continue;  // of the churn
      const std::string judged = history.Judge(row.key.integer(), NumberOf(row.record), begin, end);
      if (!judged.empty()) note("scanned " + std::to_string(row.key.integer()) + ": " + judged);
    }
  };
  // A write whose outcome is unknown may take effect later: the key is left alone from then on.
  const auto write = [&](Client* client, uint64_t key) {
    if (std::exchange(taken[key], true)) return;
    const size_t number = history.Begin(key);
    Status done;
    if (client != nullptr) {
      done = client->Replace(key, number);
    } else {
      done = world.index().Replace(Key(key), Value(number - 1), Value(number));
    }
    if (!done.ok()) return;
    history.End(key, number);
    taken[key] = false;
  };
  const auto churn = [&](Client* client, uint64_t key, bool* is_there) {
    if (client != nullptr) {
      const Status done = *is_there ? client->Remove(key, 0).status() : client->Insert(key, 0).status();
      if (done.ok()) *is_there = !*is_there;
      return;
    }
    IndexService::Guard guard(&world.service());
    const Status done = *is_there ? world.index().Remove(guard.context(), Key(key), Value(0)).status()
                                  : world.index().Insert(guard.context(), Key(key), Value(0), nullptr).status();
    if (done.ok()) *is_there = !*is_there;
  };
  // `node` nullopt: the owner's CPU. `writes` of 16 operations.
  const auto work = [&](std::optional<rdma::NodeId> node, uint64_t number, uint64_t writes) {
    Random random(seed * 16 + number);
    std::unique_ptr<Client> client;
    if (node.has_value()) client = std::make_unique<Client>(&world, *node);
    std::array<bool, 8> there{};
    for (int i = 0; i < options.operations && wrong.empty(); ++i) {
      const uint64_t key = 100 + 2 * random.Below(kHot);
      const uint64_t what = random.Below(16);
      if (what < writes) {
        write(client.get(), key);
      } else if (what < writes + 1 && writes > 0) {
        const uint64_t own = random.Below(8);
        churn(client.get(), 101 + 16 * own % (2 * kHot) + 2 * number, &there[own]);
      } else if (client == nullptr) {
        SleepForNanos(random.Below(20'000));
      } else if (random.OneIn(6)) {
        scan(client.get(), key);
      } else {
        read(client.get(), key);
      }
      if (random.OneIn(options.cuts ? 8 : 64)) SleepForNanos(random.Below(4'000'000));
    }
    --running;
  };
  // Removes the keys behind the hot ones, so that leaves merge, and puts them back.
  const rdma::NodeId thinner = options.cuts ? kOther : kHolder;
  const auto thin = [&] {
    Client client(&world, thinner);
    std::array<bool, kHot> there;
    there.fill(true);
    while (running > 0) {
      const uint64_t leaves = world.index().statistics().nodes;
      for (const bool removes : {true, false}) {
        for (uint64_t i = 0; i < kHot && running > 0; ++i) {
          if (there[i] == removes) churn(&client, 100 + 2 * (kHot + i), &there[i]);
        }
        if (removes) merges += world.index().statistics().nodes < leaves ? 1 : 0;
      }
    }
  };
  struct Role {
    std::optional<rdma::NodeId> node;
    uint64_t writes;
  };
  std::vector<Runtime::Thread*> threads;
  const std::array<Role, 6> roles = {Role{kHolder, 0}, Role{kHolder, 0},      Role{kHolder, 3},
                                     Role{kHolder, 3}, Role{std::nullopt, 5}, Role{kOther, 2}};
  running = static_cast<int>(roles.size());
  for (uint64_t i = 0; i < roles.size(); ++i) {
    Role role = roles[i];
    if (options.cuts && role.node == kHolder) role.writes = 0;
    threads.push_back(world.simulation().StartOn(role.node.value_or(kOwner), "worker",
                                                 [&work, role, i] { work(role.node, i, role.writes); }));
  }
  threads.push_back(world.simulation().StartOn(thinner, "thins", thin));
  threads.push_back(world.simulation().StartOn(kOwner, "repair", [&] {
    Random random(seed);
    while (running > 0) {
      repairs += world.RepairIfLost() ? 1 : 0;
      SleepForNanos(200'000);
    }
  }));
  if (options.cuts) {
    threads.push_back(world.simulation().StartOn(
        kOther, "cuts", [&] { CutLinks(&world, seed + 1, &running, /*joins_after_repair=*/false); }));
  }
  for (Runtime::Thread* const thread : threads) world.simulation().Join(thread);
  const Status structure = world.index().CheckStructure();
  if (!structure.ok()) note(structure.ToString());
  return wrong;
}

TEST(DexClaim, WhatIsReadWasThere) {
  merges = 0;
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) ASSERT_EQ(Race(seed, {}), "");
  EXPECT_GT(merges, 100u);
}

TEST(DexClaim, WhatIsReadWasThereWhenConnectionsEnd) {
  repairs = 0;
  for (uint64_t seed = 1; seed <= Seeds(40); ++seed) ASSERT_EQ(Race(seed, {.cuts = true}), "");
  EXPECT_GT(repairs, 40u);
}

TEST(DexClaim, EachRuleIsNeeded) {
  struct Mistake {
    Mutant mutant;
    const char* name;
    bool cuts = false;
    bool stalls = false;
    uint64_t first = 1;  // seed that is tried
  };
  for (const Mistake& mistake :
       {Mistake{Mutant::kClaimNotEnded, "ClaimNotEnded"}, Mistake{Mutant::kBoardUnseen, "BoardUnseen"},
        Mistake{Mutant::kLeaseUnseen, "LeaseUnseen", true},
        Mistake{.mutant = Mutant::kClaimSameVersion, .name = "ClaimSameVersion", .first = 290},
        Mistake{Mutant::kClaimBeforeFrame, "ClaimBeforeFrame"}, Mistake{Mutant::kCopyStaysGood, "CopyStaysGood"},
        Mistake{Mutant::kUnmarkedChange, "UnmarkedChange"}, Mistake{Mutant::kNoClaimTerm, "NoClaimTerm", true},
        Mistake{Mutant::kBoardAfter, "BoardAfter"}, Mistake{Mutant::kClockAtRead, "ClockAtRead", true, true},
        Mistake{Mutant::kOldConnection, "OldConnection", true}, Mistake{Mutant::kClaimedUnlocked, "ClaimedUnlocked"},
        Mistake{Mutant::kNoFences, "NoFences"}}) {
    active_mutant = mistake.mutant;
    std::string wrong;
    for (uint64_t seed = mistake.first; wrong.empty() && seed < mistake.first + 2000; ++seed) {
      wrong = Race(seed, {.cuts = mistake.cuts, .stalls = mistake.stalls});
    }
    active_mutant = Mutant::kNone;
    EXPECT_NE(wrong, "") << mistake.name;
    std::printf("%s: %s\n", mistake.name, wrong.c_str());
  }
}

}  // namespace dex_claim_test
}  // namespace gannet::index
