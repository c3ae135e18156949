// Clients of an index of shared leaves that die at any verb of any change: the owner's repair leaves nothing locked,
// lost, doubled or leaked.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/rolex/synonyms.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "tests/index/insert_together.h"
#include "tests/index/mortal_channel.h"
#include "tests/index/shared_leaf_world.h"

namespace gannet::index {
namespace client_death_test {

class ClientDeathTest : public ::testing::TestWithParam<std::tuple<SharedLeafCase, uint64_t>>,
                        protected SharedLeafWorld {
 protected:
  ClientDeathTest() : SharedLeafWorld(std::get<0>(GetParam()), Seed()) { Revive(); }
  ~ClientDeathTest() override { Disconnect(); }

  static uint64_t Seed() { return std::get<1>(GetParam()); }

  void Revive() {
    Disconnect();
    channel_ = std::make_unique<MortalChannel>(thread_->channel(), ++seed_);
    Connect(channel_.get());
  }

  uint64_t seed_ = Seed() * 1'000'000;
  std::unique_ptr<MortalChannel> channel_;
};

TEST_P(ClientDeathTest, NothingIsLockedLostDoubledOrLeaked) {
  Model model;
  int deaths = 0;
  int undone = 0;
  int done = 0;
  uint64_t most_nodes = 0;
  for (int round = 0; round < 6000; ++round) {
    // Waves of inserts and removals, so that leaves split and merge; ascending keys at times.
    const bool grows = round / 1500 % 2 == 0;
    if (round % 1500 == 0) most_nodes = std::max(most_nodes, index_->statistics().nodes);
    const bool ascends = round / 500 % 3 == 2;
    const uint64_t key = ascends ? 1'000'000 + static_cast<uint64_t>(round) : random_.Below(3000);
    uint64_t victim = key;
    if (!grows && !model.empty()) {
      auto at = model.lower_bound(random_.Below(3000));
      if (at == model.end()) at = model.begin();
      victim = at->first;
    }
    if (random_.OneIn(3)) channel_->DieAfter(1 + random_.Below(grows ? kind_.insert_verbs : 24));
    const bool inserts = grows && !model.contains(key);
    if (!inserts && !model.contains(victim)) continue;
    Status status;
    if (inserts) {
      status = thread_->Await(remote_->Insert(KeyOf(key).view(), RecordOf(key))).status();
    } else {
      status = thread_->Await(remote_->Remove(KeyOf(victim).view(), model.at(victim))).status();
    }
    if (!status.ok()) {
      ASSERT_TRUE(channel_->is_dead()) << status;
    }
    if (!channel_->is_dead()) {
      if (inserts) {
        model[key] = RecordOf(key);
      } else {
        model.erase(victim);
      }
      channel_->DieAfter(SIZE_MAX);
      continue;
    }
    ++deaths;
    index_->RepairAfter(1);
    const uint64_t which = inserts ? key : victim;
    const bool is_there = !index_->Find(KeyOf(which).view()).record.is_null();
    (is_there == inserts ? done : undone) += 1;
    if (is_there) {
      model[which] = RecordOf(which);
    } else {
      model.erase(which);
    }
    ExpectContent(model);
    if (HasFatalFailure()) return;
    if (random_.OneIn(5)) {
      kind_.tidy(index_.get());
      ExpectContent(model);
    }
    ExpectAllBlocksCounted();
    if (HasFatalFailure()) return;
    Revive();
  }
  EXPECT_GT(deaths, 100);
  EXPECT_GT(undone, 10);
  EXPECT_GT(done, 10);
  ExpectContent(model);
  EXPECT_LT(2 * index_->statistics().nodes, most_nodes) << "nodes do not merge";
}

// The test above for the inserts of a transaction, several of which may come into one leaf, and split it.
TEST_P(ClientDeathTest, InsertsOfATransactionLeaveNothingBehind) {
  Model model;
  int deaths = 0;
  int halfway = 0;  // between the changes of several leaves
  uint64_t by_verbs = 0;
  for (uint64_t round = 0; round < 2000; ++round) {
    const uint64_t first = random_.OneIn(2) ? 1'000'000 + 20 * round : random_.Below(3000);
    std::map<uint64_t, OwnedKey> keys;
    for (uint64_t i = 1 + random_.Below(12); i > 0; --i) {
      const uint64_t key = first + (random_.OneIn(4) ? random_.Below(1000) : i);
      if (!model.contains(key)) keys.try_emplace(key, KeyOf(key));
    }
    std::vector<Insertion> insertions;
    for (const auto& [key, owned] : keys) insertions.push_back({.key = owned.view(), .record = RecordOf(key)});
    if (random_.OneIn(3)) channel_->DieAfter(1 + random_.Below(40));
    const Status status = thread_->Await(InsertTogether(channel_.get(), remote_.get(), insertions));
    if (!channel_->is_dead()) {
      ASSERT_TRUE(status.ok()) << status;
      channel_->DieAfter(SIZE_MAX);
      for (const Insertion& one : insertions) {
        if (one.outcome == Insertion::Outcome::kDone) {
          ++by_verbs;
          continue;
        }
        ASSERT_EQ(one.outcome, Insertion::Outcome::kRefused);
        ASSERT_TRUE(thread_->Await(remote_->Insert(one.key, one.record)).ok());
      }
      for (const auto& [key, owned] : keys) model[key] = RecordOf(key);
      continue;
    }
    ++deaths;
    index_->RepairAfter(1);
    size_t there = 0;
    for (const auto& [key, owned] : keys) {
      if (index_->Find(owned.view()).record.is_null()) continue;
      model[key] = RecordOf(key);
      ++there;
    }
    if (there > 0 && there < keys.size()) ++halfway;
    ExpectContent(model);
    ExpectAllBlocksCounted();
    if (HasFatalFailure()) return;
    if (random_.OneIn(5)) kind_.tidy(index_.get());
    Revive();
  }
  EXPECT_GT(deaths, 30);
  EXPECT_GT(halfway, 3);
  EXPECT_GT(by_verbs, 2000u);
  ExpectContent(model);
}

// The owner's threads and another client go on while a client dies again and again.
TEST_P(ClientDeathTest, OthersGoOn) {
  constexpr uint64_t kKeysEach = 400;
  for (uint64_t n = 0; n < 3 * kKeysEach; ++n) RecordOf(n);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::vector<Model> models(3);
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([this, t, &stop, &models] {
      OwnerThread owner(&cluster_);
      Random random(Seed() * 10 + t);
      auto& model = models[t];
      while (!stop) {
        EpochGuard guard(owner.epoch());
        const uint64_t key = 3 * random.Below(kKeysEach) + t;
        if (model.contains(key)) {
          ASSERT_EQ(index_->Find(KeyOf(key).view()).record, model.at(key));
          const auto removed = index_->Remove(owner.context(), KeyOf(key).view(), model.at(key));
          ASSERT_TRUE(removed.ok()) << removed.status();
          model.erase(key);
        } else {
          ASSERT_TRUE(index_->Find(KeyOf(key).view()).record.is_null());
          const auto inserted = index_->Insert(owner.context(), KeyOf(key).view(), records_.at(key), nullptr);
          ASSERT_TRUE(inserted.ok()) << inserted.status();
          model[key] = records_.at(key);
        }
      }
    });
  }
  threads.emplace_back([this, &stop] {
    while (!stop && kind_.learned) kind_.tidy(index_.get());
  });
  auto& model = models[2];
  for (int round = 0; round < 1500; ++round) {
    const uint64_t key = 3 * random_.Below(kKeysEach) + 2;
    const bool inserts = !model.contains(key);
    if (random_.OneIn(4)) channel_->DieAfter(1 + random_.Below(kind_.insert_verbs));
    const Status status = inserts ? thread_->Await(remote_->Insert(KeyOf(key).view(), RecordOf(key))).status()
                                  : thread_->Await(remote_->Remove(KeyOf(key).view(), model.at(key))).status();
    bool is_there = inserts;
    if (channel_->is_dead()) {
      EpochGuard guard(owner_->epoch());
      index_->RepairAfter(1);
      is_there = !index_->Find(KeyOf(key).view()).record.is_null();
      Revive();
    } else {
      EXPECT_TRUE(status.ok()) << status;
      channel_->DieAfter(SIZE_MAX);
    }
    if (is_there) {
      model[key] = RecordOf(key);
    } else {
      model.erase(key);
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  Model all;
  for (const auto& part : models) all.insert(part.begin(), part.end());
  index_->RepairAfter(1);
  ExpectContent(all);
}

INSTANTIATE_TEST_SUITE_P(Cases, ClientDeathTest,
                         ::testing::Combine(AllSharedLeafCases(), ::testing::Range(uint64_t{1}, uint64_t{4})),
                         [](const auto& test) { return NameOfSeed(test); });

// A client that told no board writes that it keeps a leaf, or an inner node, which nobody can keep. The owner's changes
// fail meanwhile, and its repair takes the word for a lock.
TEST_P(ClientDeathTest, AWordThatSaysANodeIsKept) {
  Model model;
  uint64_t key = 0;
  const auto insert = [&] {
    return index_->Insert(owner_->context(), KeyOf(key).view(), RecordOf(key), nullptr).status();
  };
  for (; key < 400; ++key) {
    ASSERT_TRUE(insert().ok());
    model[key] = RecordOf(key);
  }
  const auto keep = [this](bool inner) {
    int kept = 0;
    blocks().ForEach([&](rdma::GlobalAddress at) {
      shared_leaf::LeafHead head;
      std::memcpy(&head, cluster_.At(at), sizeof(head));
      if (IsAbsent(head.state) || (shared_leaf::LeafSlots::Unpack(head.slots).level > 0) != inner) return;
      StoreWord(cluster_.At(at), shared_leaf::KeptOf(head.state, /*node=*/1));
      ++kept;
    });
    return kept;
  };
  for (const bool inner : {false, true}) {
    if (keep(inner) == 0) continue;  // rolex has no inner nodes
    for (const uint64_t end = key + 40; key < end; ++key) {
      if (insert().ok()) model[key] = RecordOf(key);
    }
    index_->RepairAfter(1);
    ExpectContent(model);
    ASSERT_TRUE(insert().ok());
    model[key] = RecordOf(key);
    ++key;
  }
}

class RolexDeathTest : public ClientDeathTest {
 protected:
  const rolex::RolexIndex& rolex() const { return dynamic_cast<rolex::RolexIndex&>(*index_); }

  // Slots of the synonym tables: all that were taken, and those whose synonym was never written.
  struct Slots {
    uint64_t taken = 0;
    uint64_t empty = 0;
  };
  Slots CountSlots() const {
    Slots slots;
    for (const std::byte* const table : rolex().synonym_tables()) {
      const uint64_t used = LoadWord(table + rolex::kUsedOffset);
      slots.taken += rolex::UsedSlots(used);
      for (uint64_t slot = 0; slot < std::min(rolex::UsedSlots(used), rolex::kSynonyms); ++slot) {
        slots.empty += LoadWord(table + rolex::SynonymOffset(slot) + kWordBytes) == 0 ? 1 : 0;
      }
    }
    return slots;
  }
};

// The client dies before the split, after it and before the slot of its synonym is taken, before the synonym is
// written, and after.
TEST_P(RolexDeathTest, AtEveryVerbOfASplit) {
  Model model;
  int unknown = 0;
  int unwritten = 0;
  int whole = 0;
  uint64_t key = 1'000'000;
  size_t verbs = 0;
  for (bool died = true; died;) {
    ++verbs;
    died = false;
    for (int inserts = 0; inserts < 60 && !died; ++inserts, ++key) {
      const Slots before = CountSlots();
      const uint64_t leaves = index_->statistics().nodes;
      RecordOf(key);
      channel_->DieAfter(verbs);
      const Status status = thread_->Await(remote_->Insert(KeyOf(key).view(), RecordOf(key))).status();
      died = channel_->is_dead();
      if (!died) {
        ASSERT_TRUE(status.ok()) << status;
        model[key] = RecordOf(key);
        continue;
      }
      index_->RepairAfter(1);
      if (!index_->Find(KeyOf(key).view()).record.is_null()) model[key] = RecordOf(key);
      ExpectContent(model);
      if (HasFatalFailure()) return;
      if (index_->statistics().nodes > leaves) {
        const Slots after = CountSlots();
        (after.taken == before.taken ? unknown : after.empty > before.empty ? unwritten : whole) += 1;
      }
      Revive();
    }
  }
  EXPECT_GT(verbs, 12u);
  EXPECT_GT(unknown, 0);
  EXPECT_GT(unwritten, 0);
  EXPECT_GT(whole, 0);
  // A client that comes later finds all.
  for (const auto& [number, record] : model) {
    const auto found = thread_->Await(remote_->Find(KeyOf(number).view()));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, record);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RolexDeathTest,
                         ::testing::Combine(::testing::Values(SharedLeafCase(&kRolex, KeyKind::kInteger),
                                                              SharedLeafCase(&kRolex, KeyKind::kBytes)),
                                            ::testing::Range(uint64_t{1}, uint64_t{4})),
                         [](const auto& test) { return NameOfSeed(test); });

}  // namespace client_death_test
}  // namespace gannet::index
