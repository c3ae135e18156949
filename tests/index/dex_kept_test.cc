// Kept leaves (index/shared_leaf/claim/claim.h), in simulations: what a holder reads and changes without a verb, what
// the owner's memory has meanwhile, splits, eviction, lost connections and deaths. And that each rule is needed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "tests/index/claim_world.h"

namespace gannet::index {
namespace dex_kept_test {

using namespace claim_world;
using shared_leaf::Keeping;

// The value of the key in the owner's memory, which may be behind. Null: there is none.
rdma::GlobalAddress AtOwner(World* world, uint64_t key) {
  using shared_leaf::IntegerKeys;
  rdma::GlobalAddress value;
  dynamic_cast<shared_leaf::BlockLender&>(world->index()).blocks().ForEach([&](rdma::GlobalAddress at) {
    shared_leaf::LeafImage image;
    std::memcpy(&image, world->node(kOwner)->memory().data() + at.offset(), sizeof(image));
    if (IsAbsent(image.head.state) || image.level() != 0 || !IntegerKeys::CoversKey(image, key)) return;
    const int slot = shared_leaf::FindSlot(image, key);
    if (slot >= 0) value = IntegerKeys::TargetOf(image.entry<IntegerKeys::Entry>(slot), kOwner);
  });
  return value;
}

bool IsKept(const FindResult& found) {
  return found.record.is_null() && shared_leaf::IsKept(found.witness.seen);
}

TEST(DexKept, AKeptLeafIsReadAndChangedWithoutAVerb) {
  World world(1, {.keeping = Keeping::kWriteBack});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    Client second(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    ASSERT_TRUE(second.Find(1).ok());
    EXPECT_GE(world.kept(), 100 / 13u);
    EXPECT_EQ(world.claims(), 0u);
    const rdma::VerbCounters before = client.verbs();
    const rdma::VerbCounters known = second.verbs();
    for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, key + 1).ok());
    ASSERT_TRUE(client.Remove(50, 51).ok());
    ASSERT_TRUE(client.Insert(51, 7).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(client.Insert(51, 8).status()));
    EXPECT_TRUE(absl::IsNotFound(client.Remove(50, 51).status()));
    EXPECT_TRUE(absl::IsNotFound(client.Remove(52, 1).status())) << "the key has another value";
    EXPECT_TRUE(absl::IsNotFound(client.Replace(53, 1)));
    EXPECT_EQ(second.Find(60)->record, Value(61));
    EXPECT_EQ(second.Find(51)->record, Value(7));
    EXPECT_TRUE(second.Find(50)->record.is_null());
    ScanResult rows;
    ASSERT_TRUE(second.Scan(40, 60, &rows).ok());
    EXPECT_EQ(rows.entries.size(), 11u);
    EXPECT_EQ(VerbsIn(client.verbs() - before), 0u);
    EXPECT_EQ(VerbsIn(second.verbs() - known), 0u) << "the copies are those of all clients of the process";
    EXPECT_EQ(AtOwner(&world, 60), Value(0)) << "not written back yet";
    ASSERT_TRUE(client.HandBack().ok());
    EXPECT_EQ(world.kept(), 0u);
    EXPECT_EQ(AtOwner(&world, 60), Value(61));
    EXPECT_EQ(AtOwner(&world, 51), Value(7));
    EXPECT_TRUE(AtOwner(&world, 50).is_null());
    EXPECT_EQ(client.Find(62)->record, Value(63)) << "and it is kept again";
    EXPECT_GT(world.kept(), 0u);
    ASSERT_TRUE(client.HandBack().ok());
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

TEST(DexKept, WriteThroughReachesTheOwnerBeforeItIsDone) {
  World world(1, {.keeping = Keeping::kWriteThrough});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    const size_t kept = world.kept();
    const rdma::VerbCounters before = client.verbs();
    for (uint64_t key = 0; key < 100; key += 2) {
      ASSERT_TRUE(client.Replace(key, key + 1).ok());
      EXPECT_EQ(AtOwner(&world, key), Value(key + 1));
    }
    const rdma::VerbCounters used = client.verbs() - before;
    EXPECT_EQ(used.reads + used.compare_and_swaps + used.calls, 0u);
    EXPECT_EQ(used.writes, 2 * 50u) << "the line, and line 0";
    ASSERT_TRUE(client.Insert(51, 7).ok());
    EXPECT_EQ(AtOwner(&world, 51), Value(7));
    ASSERT_TRUE(client.Remove(52, 53).ok());
    EXPECT_TRUE(AtOwner(&world, 52).is_null());
    EXPECT_EQ(world.kept(), kept) << "a change unlocks nothing";
    ASSERT_TRUE(client.HandBack().ok());
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

// While one writes through, its copy is latched, and the others of its thread must not keep it from going on.
TEST(DexKept, CoroutinesOfOneThreadWriteThroughOneLeaf) {
  World world(1, {.keeping = Keeping::kWriteThrough});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 40; ++key) ASSERT_TRUE(client.Find(key).ok());
    const uint64_t begin = world.simulation().now();
    const Status replaced = client.ReplaceTogether({0, 2, 4, 6, 8, 10}, 7);
    EXPECT_TRUE(replaced.ok()) << replaced;
    EXPECT_LT(world.simulation().now() - begin, 1'000'000u);
    for (uint64_t key = 0; key <= 10; key += 2) EXPECT_EQ(AtOwner(&world, key), Value(7));
  });
}

TEST(DexKept, OthersWaitUntilALeafIsHandedBack) {
  World world(1, {.keeping = Keeping::kWriteBack});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    ASSERT_TRUE(client.Replace(60, 5).ok());
    ASSERT_TRUE(client.Replace(60, 6).ok());
  });
  ASSERT_GT(world.kept(), 0u);
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    const Status waited = other.Find(60).status();
    EXPECT_TRUE(absl::IsUnavailable(waited)) << waited;
    EXPECT_NE(waited.message().find("locked by node 1"), std::string::npos) << waited;
  });
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    ASSERT_TRUE(client.HandBack().ok());
  });
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    EXPECT_EQ(other.Find(60)->record, Value(6));
    EXPECT_TRUE(other.Replace(60, 7).ok());
  });
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    EXPECT_EQ(client.Find(60)->record, Value(7));
  });
}

// The owner's threads serve calls, and the holder unlocks nothing for them.
TEST(DexKept, TheOwnerDoesNotWaitForAKeptLeaf) {
  World world(1, {.keeping = Keeping::kWriteBack});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Replace(key, key + 1).ok() == (key % 2 == 0));
  });
  On(&world, kOwner, [&] {
    const uint64_t begin = NowNanos();
    EXPECT_TRUE(IsKept(world.index().Find(Key(60))));
    EXPECT_TRUE(IsKept(world.index().Find(Key(61)))) << "whether it has the key, only its holder knows";
    const Status replaced = world.index().Replace(Key(60), Value(0), Value(5));
    EXPECT_TRUE(shared_leaf::IsLeafKept(replaced)) << replaced;
    EXPECT_NE(replaced.message().find("node 1 keeps the leaf at"), std::string::npos) << replaced;
    IndexService::Guard guard(&world.service());
    const Status inserted = world.index().Insert(guard.context(), Key(61), Value(0), nullptr).status();
    EXPECT_TRUE(shared_leaf::IsLeafKept(inserted)) << inserted;
    const Status removed = world.index().Remove(guard.context(), Key(62), Value(0)).status();
    EXPECT_TRUE(shared_leaf::IsLeafKept(removed)) << removed;
    ScanResult rows;
    const Status scanned = world.index().Scan({.from = Key(40), .to = Key(60)}, &rows);
    EXPECT_TRUE(shared_leaf::IsLeafKept(scanned)) << scanned;
    EXPECT_LT(NowNanos() - begin, 100'000u);
    EXPECT_EQ(world.index().Find(Key(700)).record, Value(0)) << "nobody keeps this one";
    EXPECT_TRUE(world.index().Replace(Key(700), Value(0), Value(8)).ok());
  });
  EXPECT_FALSE(world.index().CheckStructure().ok()) << "a kept leaf is a locked one";
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    EXPECT_EQ(client.Find(700)->record, Value(8));
    ASSERT_TRUE(client.HandBack().ok());
  });
  On(&world, kOwner, [&] {
    EXPECT_EQ(world.index().Find(Key(60)).record, Value(61));
    EXPECT_TRUE(world.index().Replace(Key(60), Value(61), Value(5)).ok());
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

TEST(DexKept, ALeaseThatHasEndedTakesOneLookAtALeaf) {
  World world(1, {.keeping = Keeping::kWriteBack});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(client.Find(key).ok());
    for (const bool by_change : {false, true}) {
      SleepForNanos(2 * NanosOf(kClaimLease));
      const rdma::VerbCounters before = client.verbs();
      if (by_change) {
        ASSERT_TRUE(client.Replace(10, 3).ok());
      } else {
        ASSERT_TRUE(client.Find(10).ok());
      }
      for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 4).ok());
      const rdma::VerbCounters used = client.verbs() - before;
      EXPECT_EQ(VerbsIn(used), 1u) << "one READ renews the lease of all";
      EXPECT_EQ(used.bytes_in, kWordBytes);
    }
  });
}

// An inner node above a kept leaf was split, and then its copy was evicted: the one above leads to the wrong half.
TEST(DexKept, AKeptLeafIsFoundThoughTheWayIsBehind) {
  World world(1, {.keeping = Keeping::kWriteBack});
  for (uint64_t key = 2 * kKeys; key < 8000; ++key) world.Insert(key, 0);
  const auto inner_nodes = [&world] {
    std::vector<rdma::GlobalAddress> nodes;
    dynamic_cast<shared_leaf::BlockLender&>(world.index()).blocks().ForEach([&](rdma::GlobalAddress at) {
      shared_leaf::LeafImage image;
      std::memcpy(&image, world.node(kOwner)->memory().data() + at.offset(), sizeof(image));
      if (image.level() == 1) nodes.push_back(at);
    });
    return nodes;
  };
  const size_t inner_before = inner_nodes().size();
  ASSERT_GT(inner_before, 10u) << "there are nodes above them";
  const std::array<uint64_t, 4> keys = {100, 300, 500, 700};
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (const uint64_t key : keys) ASSERT_TRUE(client.Find(key).ok());
    for (uint64_t key = 1; key < 2 * kKeys; key += 2) {
      if (key % 200 < 50 || key % 200 > 150) world.Insert(key, 0);
    }
    ASSERT_GT(inner_nodes().size(), inner_before);
    ASSERT_EQ(world.kept(), keys.size());
    const auto forget = [&] {
      dex::PageCache::User user(world.pages()->cache());
      for (const rdma::GlobalAddress node : inner_nodes()) world.pages()->cache()->Drop(&user, node);
    };
    uint64_t most_reads = 0;
    for (const uint64_t key : keys) {
      forget();
      const rdma::VerbCounters before = client.verbs();
      EXPECT_EQ(client.Find(key)->record, Value(0));
      most_reads = std::max(most_reads, (client.verbs() - before).reads);
    }
    EXPECT_EQ(most_reads, 4u) << "both halves of the inner node, and the leaf twice, because it is locked";
    for (const uint64_t key : keys) {
      forget();
      SleepForNanos(2 * NanosOf(kClaimLease));
      ASSERT_TRUE(client.Find(key).ok());
      forget();
      ASSERT_TRUE(client.Replace(key, 1).ok());
      forget();
      ScanResult rows;
      ASSERT_TRUE(client.Scan(key, key, &rows).ok());
      ASSERT_EQ(rows.entries.size(), 1u);
      EXPECT_EQ(rows.entries[0].record, Value(1));
    }
    for (const uint64_t key : keys) ASSERT_TRUE(client.Find(key).ok());
    const rdma::VerbCounters before = client.verbs();
    for (const uint64_t key : keys) EXPECT_EQ(client.Find(key)->record, Value(1));
    EXPECT_EQ(VerbsIn(client.verbs() - before), 0u) << "the ways are known again";
    EXPECT_EQ(world.kept(), keys.size());
  });
}

// A full leaf is handed back, and split as any.
TEST(DexKept, FullLeavesAreSplit) {
  for (const Keeping keeping : {Keeping::kWriteThrough, Keeping::kWriteBack}) {
    World world(1, {.keeping = keeping});
    On(&world, kHolder, [&] {
      Client client(&world, kHolder);
      Client second(&world, kHolder);
      for (uint64_t key = 1; key < 2 * kKeys; key += 2) {
        Client& one = key % 3 == 0 ? second : client;
        ASSERT_TRUE(one.Insert(key, key).ok());
        ASSERT_EQ(client.Find(key)->record, Value(key));
        ASSERT_EQ(second.Find(key - 1)->record, Value(0));
      }
      ASSERT_TRUE(client.HandBack().ok());
    });
    EXPECT_EQ(world.kept(), 0u);
    EXPECT_TRUE(world.index().CheckStructure().ok());
    EXPECT_EQ(world.index().statistics().keys, 2 * kKeys);
  }
}

// A leaf with keys of two nodes is kept by none.
TEST(DexKept, ALeafOfTwoRangesStaysEverybodys) {
  World world(1, {.keeping = Keeping::kWriteBack, .holder_until = 401});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key <= 400; key += 2) ASSERT_TRUE(client.Replace(key, 1).ok());
    for (uint64_t key = 0; key <= 400; key += 2) ASSERT_TRUE(client.Replace(key, 2).ok());
  });
  ASSERT_GT(world.kept(), 10u);
  On(&world, kOther, [&] {
    Client other(&world, kOther);
    for (uint64_t key = 402; key < 2 * kKeys; key += 2) ASSERT_TRUE(other.Replace(key, 3).ok());
  });
}

TEST(DexKept, WhatWasWrittenThroughSurvivesTheHolder) {
  for (const Keeping keeping : {Keeping::kWriteThrough, Keeping::kWriteBack}) {
    World world(1, {.keeping = keeping});
    On(&world, kHolder, [&] {
      Client client(&world, kHolder);
      for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 1).ok());
      for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 2).ok());
    });
    ASSERT_GT(world.kept(), 0u);
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
      for (uint64_t key = 0; key < 200; key += 2) {
        const StatusOr<FindResult> found = other.Find(key);
        ASSERT_TRUE(found.ok()) << found.status();
        if (keeping == Keeping::kWriteThrough) {
          ASSERT_EQ(found->record, Value(2));
        } else {
          ASSERT_LE(NumberOf(found->record), 2u);
        }
        ASSERT_TRUE(other.Replace(key, 3).ok());
      }
    });
    EXPECT_LT(world.simulation().now() - killed, 50'000'000u);
    is_over = true;
    repair.join();
    EXPECT_EQ(world.kept(), 0u);
    EXPECT_TRUE(world.index().CheckStructure().ok());
  }
}

// The holder lives, and finds that it has lost its leaves.
TEST(DexKept, AConnectionThatEndsTakesTheLeavesWithIt) {
  World world(1, {.keeping = Keeping::kWriteBack});
  On(&world, kHolder, [&] {
    Client client(&world, kHolder);
    for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 1).ok());
    for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 2).ok());
    Link& link = world.link();
    link.carries = false;
    link.seen = {0, 0};
    SleepForNanos(1'000'000);
    EXPECT_EQ(client.Find(60)->record, Value(2)) << "the lease lasts";
    SleepForNanos(NanosOf(kClaimLease));
    EXPECT_FALSE(client.Find(60).ok());
    EXPECT_FALSE(client.Replace(60, 3).ok());
    Runtime::Thread* const repair =
        world.simulation().StartOn(kOwner, "repair", [&] { EXPECT_TRUE(world.RepairIfLost()); });
    world.simulation().Join(repair);
    EXPECT_EQ(world.kept(), 0u);
    ++link.connection;
    link.seen = {link.connection, link.connection};
    link.carries = true;
    for (uint64_t key = 0; key < 200; key += 2) {
      const StatusOr<FindResult> found = client.Find(key);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, AtOwner(&world, key));
    }
    for (uint64_t key = 0; key < 200; key += 2) ASSERT_TRUE(client.Replace(key, 4).ok());
    ASSERT_TRUE(client.HandBack().ok());
    for (uint64_t key = 0; key < 200; key += 2) ASSERT_EQ(AtOwner(&world, key), Value(4));
    EXPECT_GT(world.pages()->cache()->statistics().lost, 0u);
  });
  EXPECT_TRUE(world.index().CheckStructure().ok());
}

// --- histories ---

struct RaceOptions {
  Keeping keeping = Keeping::kWriteBack;
  bool cuts = false;  // of the holder's connection; with write-through, which must lose nothing
};

uint64_t repairs = 0;
uint64_t taken_frames = 0;  // of kept leaves
uint64_t others = 0;        // operations by another node that have succeeded
uint64_t pushed_down = 0;   // operations by the owner that have
uint64_t refused = 0;       // and those that have not, because the leaf was kept

// Threads of the holder, of another node and of the owner, as calls have them do it, read and write a few leaves, with
// a cache that has not room for all.
std::string Race(uint64_t seed, const RaceOptions& options) {
  constexpr uint64_t kHot = 120;
  World world(seed, {.faults = RaceFaults(),
                     .keeping = options.keeping,
                     .cache_bytes = options.cuts ? size_t{1} << 20 : size_t{6} << 10,
                     .patience = absl::Microseconds(200)});
  History history;
  std::array<bool, 2 * kKeys> taken{};
  std::string wrong;
  int running = 0;
  const auto note = [&wrong, seed](const std::string& what) {
    if (wrong.empty()) wrong = "seed " + std::to_string(seed) + ": " + what;
  };
  const auto work = [&](rdma::NodeId node, uint64_t number) {
    Random random(seed * 16 + number);
    Client client(&world, node);
    std::array<bool, 8> there{};
    for (int i = 0; i < (node == kHolder ? 250 : 40) && wrong.empty(); ++i) {
      const uint64_t key = 100 + 2 * random.Below(kHot);
      const uint64_t what = random.Below(16);
      bool done = false;
      if (what < 7) {
        if (std::exchange(taken[key], true)) continue;
        const size_t written = history.Begin(key);
        done = client.Replace(key, written).ok();
        if (done) {
          history.End(key, written);
          taken[key] = false;
        }
      } else if (what < 9) {
        const uint64_t own = random.Below(8);
        const uint64_t odd = 101 + 32 * own % (2 * kHot) + 2 * number;
        done = there[own] ? client.Remove(odd, 0).ok() : client.Insert(odd, 0).ok();
        if (done) there[own] = !there[own];
      } else if (what < 10) {
        const uint64_t begin = history.Tick();
        ScanResult rows;
        done = client.Scan(key, key + 30, &rows).ok();
        const uint64_t end = history.Tick();
        for (const Entry& row : rows.entries) {
          if (!done || row.key.integer() % 2 != 0) continue;
          const std::string judged = history.Judge(row.key.integer(), NumberOf(row.record), begin, end);
          if (!judged.empty()) note("scanned " + std::to_string(row.key.integer()) + ": " + judged);
        }
      } else {
        const uint64_t begin = history.Tick();
        const StatusOr<FindResult> found = client.Find(key);
        done = found.ok();
        const std::string judged = !done ? ""
                                   : found->record.is_null()
                                       ? "no value"
                                       : history.Judge(key, NumberOf(found->record), begin, history.Tick());
        if (!judged.empty()) note("key " + std::to_string(key) + ": " + judged);
      }
      if (node != kHolder && done) ++others;
      if (random.OneIn(options.cuts ? 8 : 64)) SleepForNanos(random.Below(4'000'000));
    }
    --running;
  };
  const auto serve = [&](uint64_t number) {
    Random random(seed * 16 + number);
    for (int i = 0; i < 250 && wrong.empty(); ++i) {
      const uint64_t key = 100 + 2 * random.Below(kHot);
      const bool is_change = random.OneIn(2) && !std::exchange(taken[key], true);
      const uint64_t begin = history.Tick();
      const FindResult found = world.index().Find(Key(key));
      bool is_kept = IsKept(found);
      if (!is_kept) {
        const std::string judged =
            found.record.is_null() ? "no value" : history.Judge(key, NumberOf(found.record), begin, history.Tick());
        if (!judged.empty()) note("the owner found key " + std::to_string(key) + ": " + judged);
      }
      if (is_change && !is_kept) {
        const size_t written = history.Begin(key);
        const Status done = world.index().Replace(Key(key), found.record, Value(written));
        is_kept = shared_leaf::IsLeafKept(done);
        if (done.ok()) history.End(key, written);
        if (done.ok() || is_kept) taken[key] = false;
      } else if (is_change) {
        taken[key] = false;
      }
      ++(is_kept ? refused : pushed_down);
      SleepForNanos(random.Below(20'000));
    }
    --running;
  };
  std::vector<Runtime::Thread*> threads;
  const std::array<rdma::NodeId, 5> roles = {kHolder, kHolder, kHolder, kOther, kOther};
  running = static_cast<int>(roles.size()) + 1;
  threads.push_back(world.simulation().StartOn(kOwner, "serve", [&] { serve(roles.size()); }));
  for (uint64_t i = 0; i < roles.size(); ++i) {
    threads.push_back(world.simulation().StartOn(roles[i], "worker", [&work, node = roles[i], i] { work(node, i); }));
  }
  threads.push_back(world.simulation().StartOn(kOwner, "repair", [&] {
    while (running > 0) {
      repairs += world.RepairIfLost() ? 1 : 0;
      SleepForNanos(200'000);
    }
  }));
  if (options.cuts) {
    threads.push_back(world.simulation().StartOn(
        kOther, "cuts", [&] { CutLinks(&world, seed + 1, &running, /*joins_after_repair=*/true); }));
  }
  for (Runtime::Thread* const thread : threads) world.simulation().Join(thread);
  taken_frames += world.pages()->cache()->statistics().kept;
  if (!options.cuts) {
    On(&world, kHolder, [&] {
      Client client(&world, kHolder);
      const Status handed = client.HandBack();
      if (!handed.ok()) note(handed.ToString());
    });
    const Status structure = world.index().CheckStructure();
    if (!structure.ok()) note(structure.ToString());
    for (uint64_t key = 100; key < 100 + 2 * kHot; key += 2) {
      const uint64_t now = history.Tick();
      const rdma::GlobalAddress value = AtOwner(&world, key);
      const std::string judged = value.is_null() ? "no value" : history.Judge(key, NumberOf(value), now, now);
      if (!judged.empty()) note("at the owner, key " + std::to_string(key) + ": " + judged);
    }
  }
  return wrong;
}

TEST(DexKept, WhatIsReadWasThere) {
  taken_frames = others = pushed_down = refused = 0;
  for (const Keeping keeping : {Keeping::kWriteThrough, Keeping::kWriteBack}) {
    for (uint64_t seed = 1; seed <= Seeds(150); ++seed) ASSERT_EQ(Race(seed, {.keeping = keeping}), "");
  }
  EXPECT_GT(taken_frames, 3000u) << "leaves are evicted";
  EXPECT_GT(others, 1000u) << "and then others come to them";
  EXPECT_GT(pushed_down, 1000u) << "or the owner";
  EXPECT_GT(refused, 1000u);
}

TEST(DexKept, NothingIsLostWhenConnectionsEnd) {
  repairs = 0;
  for (uint64_t seed = 1; seed <= Seeds(40); ++seed) {
    ASSERT_EQ(Race(seed, {.keeping = Keeping::kWriteThrough, .cuts = true}), "");
  }
  EXPECT_GT(repairs, 40u);
}

TEST(DexKept, EachRuleIsNeeded) {
  struct Mistake {
    Mutant mutant;
    const char* name;
    Keeping keeping;
    bool cuts;
    uint64_t first = 1;  // seed that is tried
  };
  for (const Mistake& mistake :
       {Mistake{Mutant::kLeaseUnseen, "LeaseUnseen", Keeping::kWriteThrough, true, 41},
        Mistake{Mutant::kNoClaimTerm, "NoClaimTerm", Keeping::kWriteThrough, true, 9},
        Mistake{Mutant::kKeptRepairedAtOnce, "KeptRepairedAtOnce", Keeping::kWriteThrough, true, 9},
        Mistake{Mutant::kUnlockedFirst, "UnlockedFirst", Keeping::kWriteBack, false},
        Mistake{Mutant::kKeptForgotten, "KeptForgotten", Keeping::kWriteBack, false},
        Mistake{Mutant::kKeptReadByOwner, "KeptReadByOwner", Keeping::kWriteBack, false}}) {
    active_mutant = mistake.mutant;
    std::string wrong;
    for (uint64_t seed = mistake.first; wrong.empty() && seed < mistake.first + 400; ++seed) {
      wrong = Race(seed, {.keeping = mistake.keeping, .cuts = mistake.cuts});
    }
    active_mutant = Mutant::kNone;
    EXPECT_NE(wrong, "") << mistake.name;
    std::printf("%s: %s\n", mistake.name, wrong.c_str());
  }
}

}  // namespace dex_kept_test
}  // namespace gannet::index
