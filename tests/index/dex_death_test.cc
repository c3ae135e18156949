// A node dies when any of its verbs has left it: while it claims, keeps, changes or hands back leaves, or takes over
// those of another node. What was acknowledged is there, nothing stays locked, and all is served within 50 ms.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "tests/index/claim_world.h"

namespace gannet::index {
namespace dex_death_test {

using namespace claim_world;
using shared_leaf::Keeping;

constexpr uint64_t kFirstKey = 100;
constexpr uint64_t kHot = 40;
constexpr uint64_t kServedWithinNanos = 50'000'000;

struct Death {
  Keeping keeping = Keeping::kNone;
  bool both_claim = false;  // each of the two nodes believes that all keys are its own
  rdma::NodeId node = kHolder;
  uint64_t verbs = 1;
};

class DeathRun {
 public:
  DeathRun(uint64_t seed, const Death& death)
      : death_(death),
        survivor_(death.node == kHolder ? kOther : kHolder),
        seed_(seed),
        world_(seed, {.keeping = death.keeping,
                      .cache_bytes = size_t{6} << 10,
                      .other_claims = death.both_claim,
                      .patience = absl::Milliseconds(60)}) {}

  // Whether the node died. *wrong: what is wrong, or nothing.
  bool Run(std::string* wrong) {
    world_.fabric().KillAfterVerbs(death_.node, death_.verbs);
    constexpr std::array<rdma::NodeId, 3> kRoles = {kHolder, kHolder, kOther};
    std::vector<Runtime::Thread*> threads;
    for (uint64_t i = 0; i < kRoles.size(); ++i) {
      threads.push_back(world_.simulation().StartOn(kRoles[i], "work", [this, node = kRoles[i], i] { Work(node, i); }));
    }
    Runtime::Thread* const repair = world_.simulation().StartOn(kOwner, "repair", [this] { Repair(); });
    for (Runtime::Thread* const thread : threads) world_.simulation().Join(thread);
    const bool has_died = !world_.fabric().Runs(death_.node);
    if (has_died) Serve();
    is_over_ = true;
    world_.simulation().Join(repair);
    if (has_died) Check();
    *wrong = wrong_;
    return has_died;
  }

 private:
  void Note(const std::string& what) {
    if (wrong_.empty()) {
      wrong_ = absl::StrCat("seed ", seed_, ", keeping ", static_cast<int>(death_.keeping), ", node ", death_.node,
                            ", verb ", death_.verbs, death_.both_claim ? ", both claim: " : ": ", what);
    }
  }
  // With write-back, a holder's changes may be lost with it.
  bool LosesChanges() const { return death_.keeping == Keeping::kWriteBack && death_.node == kHolder; }

  void Work(rdma::NodeId node, uint64_t number) {
    Random random(seed_ * 16 + number);
    Client client(&world_, node);
    std::array<bool, 4> there{};
    for (int i = 0; i < (node == kHolder ? 60 : 30); ++i) {
      const uint64_t key = kFirstKey + 2 * random.Below(kHot);
      const uint64_t what = random.Below(8);
      if (what < 4) {
        Write(&client, key);
      } else if (what < 6) {
        const uint64_t own = random.Below(there.size());
        const uint64_t odd = kFirstKey + 1 + 2 * (own * 8 + number);
        if (there[own] ? client.Remove(odd, 0).ok() : client.Insert(odd, 0).ok()) there[own] = !there[own];
      } else {
        Read(&client, key);
      }
    }
    if (node == kHolder && --holders_ == 0) static_cast<void>(client.HandBack());
  }
  // One writer at a time. A write without an answer may have been made, so nobody writes the key again.
  void Write(Client* client, uint64_t key) {
    if (std::exchange(taken_[key], true)) return;
    const size_t written = history_.Begin(key);
    if (!client->Replace(key, written).ok()) return;
    history_.End(key, written);
    taken_[key] = false;
  }
  void Read(Client* client, uint64_t key) {
    const uint64_t begin = history_.Tick();
    const StatusOr<FindResult> found = client->Find(key);
    if (found.ok()) Judge(key, found->record, begin);
  }
  void Judge(uint64_t key, rdma::GlobalAddress value, uint64_t begin) {
    const std::string judged =
        value.is_null() ? "no value" : history_.Judge(key, NumberOf(value), begin, history_.Tick());
    if (!judged.empty() && !(LosesChanges() && died_ != 0 && !value.is_null())) {
      Note(absl::StrCat("key ", key, ": ", judged));
    }
  }

  void Repair() {
    bool is_repaired = false;  // locks; a node that has claimed nothing is not lost to the boards
    while (!is_over_) {
      if (died_ == 0 && !world_.fabric().Runs(death_.node)) died_ = world_.simulation().now();
      if (died_ != 0 && world_.node(kOwner)->ConnectionTo(death_.node) == 0 && !std::exchange(is_repaired, true)) {
        world_.index().RepairAfter(death_.node);
      }
      world_.RepairIfLost(kHolder);
      world_.RepairIfLost(kOther);
      SleepForNanos(100'000);
    }
  }

  // The node that lives reads all keys and changes them.
  void Serve() {
    const uint64_t begin = world_.simulation().now();
    On(&world_, survivor_, [this] {
      Client client(&world_, survivor_);
      for (uint64_t key = kFirstKey; key < kFirstKey + 2 * kHot; key += 2) {
        const uint64_t now = history_.Tick();
        const StatusOr<FindResult> found = client.Find(key);
        if (!found.ok()) return Note(found.status().ToString());
        Judge(key, found->record, now);
        const Status replaced = client.Replace(key, 0);
        if (!replaced.ok()) return Note(replaced.ToString());
      }
      const Status handed = client.HandBack();
      if (!handed.ok()) Note(handed.ToString());
    });
    if (world_.simulation().now() - begin > kServedWithinNanos) Note("it took too long");
  }

  void Check() {
    const Status structure = world_.index().CheckStructure();
    if (!structure.ok()) Note(structure.ToString());
    dynamic_cast<shared_leaf::BlockLender&>(world_.index()).blocks().ForEach([&](rdma::GlobalAddress at) {
      const uint64_t word = world_.StateOf(at);
      if (IsLocked(word) && !IsAbsent(word)) Note(absl::StrCat("the leaf at ", at.ToString(), " is locked"));
      if (shared_leaf::IsClaimedBy(death_.node, word)) Note(absl::StrCat("the leaf at ", at.ToString(), " is claimed"));
    });
  }

  const Death death_;
  const rdma::NodeId survivor_;
  const uint64_t seed_;
  World world_;
  History history_;
  std::array<bool, 2 * kKeys> taken_{};
  int holders_ = 2;  // threads
  bool is_over_ = false;
  uint64_t died_ = 0;
  std::string wrong_;
};

// A node dies at every fifth verb. By hand, with GANNET_CLAIM_SEEDS: at every verb, so many times.
TEST(DexDeath, AtEveryVerb) {
  constexpr uint64_t kVerbs = 140;
  const uint64_t rounds = Seeds(0);
  uint64_t deaths = 0;
  std::vector<Death> kinds;
  for (const Keeping keeping : {Keeping::kNone, Keeping::kWriteThrough, Keeping::kWriteBack}) {
    for (const rdma::NodeId node : {kHolder, kOther}) kinds.push_back({.keeping = keeping, .node = node});
  }
  for (const rdma::NodeId node : {kHolder, kOther}) kinds.push_back({.both_claim = true, .node = node});
  for (uint64_t round = 0; round < std::max<uint64_t>(rounds, 1); ++round) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      Death death = kinds[kind];
      for (death.verbs = 1 + (rounds == 0 ? kind % 5 : 0); death.verbs <= kVerbs; death.verbs += rounds == 0 ? 5 : 1) {
        std::string wrong;
        deaths += DeathRun((round * kinds.size() + kind) * 1000 + death.verbs, death).Run(&wrong) ? 1 : 0;
        ASSERT_EQ(wrong, "");
      }
    }
  }
  std::printf("%lu deaths\n", static_cast<unsigned long>(deaths));
  EXPECT_GE(deaths, 150u);
}

}  // namespace dex_death_test
}  // namespace gannet::index
