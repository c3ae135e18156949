// Deliberate mistakes (base/mutant.h) in the changes and the repair of shared leaves (index/shared_leaf/leaf/leaf.h),
// and that the deaths of clients show them. docs/simulation.md has the list.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "base/mutant.h"
#include "gtest/gtest.h"
#include "index/registry.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/leaf_repair.h"
#include "tests/lab/scenario/leaf_death.h"

namespace gannet::scenario {
namespace leaf_mutants_test {

// A client dies at each verb of a change of shared leaves, in turn (leaf_death.h). Returns the number of the verb after
// which its death leaves something wrong; 0: none does.
uint64_t VerbsUntilWrong(Mutant mutant, const LeafDeathCase& test, std::string* wrong) {
  uint64_t found = 0;
  active_mutant = mutant;
  for (uint64_t verbs = 1; found == 0; ++verbs) {
    LeafDeath death(test);
    if (!death.DieAfter(verbs)) break;
    *wrong = death.WhatIsWrong();
    if (!wrong->empty()) found = verbs;
  }
  active_mutant = Mutant::kNone;
  return found;
}

TEST(LeafMutantsTest, MistakesInChangesOfSharedLeavesAreFoundWhenClientsDie) {
  struct Mistake {
    Mutant mutant;
    const char* name;
    LeafChange change;
  };
  for (const txn::IndexKind kind : {txn::HastyBlink(), txn::HastyRolex(), txn::HastyDex(), txn::HastyDolphin()}) {
    for (const Mistake& mistake : {Mistake{Mutant::kLineZeroFirst, "LineZeroFirst", LeafChange::kInsert},
                                   Mistake{Mutant::kNamelessLock, "NamelessLock", LeafChange::kInsert},
                                   Mistake{Mutant::kNoSweep, "NoSweep", LeafChange::kSplit}}) {
      // The leaf and the lock of Dolphin are others, and have mistakes of their own (tests/index/dolphin_leaf_test.cc).
      if (kind == txn::HastyDolphin() && mistake.mutant != Mutant::kNoSweep) continue;
      const LeafDeathCase test{.kind = kind, .change = mistake.change};
      std::string wrong;
      const uint64_t verbs = VerbsUntilWrong(mistake.mutant, test, &wrong);
      EXPECT_NE(verbs, 0u) << mistake.name;
      std::printf("%s of %s: found after verb %d: %s\n", mistake.name, index::EntryOf(kind).name.c_str(),
                  static_cast<int>(verbs), wrong.c_str());
      EXPECT_EQ(VerbsUntilWrong(Mutant::kNone, test, &wrong), 0u) << wrong;
    }
  }
}

// A client died after it had written a line, and before it wrote line 0. The next change of the repaired leaf must not
// give the line the version that it has: a READ that met the old line, and line 0 later, would take them for one state.
TEST(LeafMutantsTest, ARepairWithoutANewStampShowsAnEntryThatWasNeverThere) {
  using index::shared_leaf::FindSlot;
  using index::shared_leaf::IntegerEntry;
  using index::shared_leaf::kLeafBytes;
  using index::shared_leaf::LeafDraft;
  using index::shared_leaf::LeafImage;
  using index::shared_leaf::LeafLook;
  using index::shared_leaf::LookAtLeaf;
  using index::shared_leaf::Posting;
  using index::shared_leaf::ReadOwnLeaf;
  using index::shared_leaf::RepairLeaf;
  using index::shared_leaf::StoreLeaf;
  const auto look = [](Mutant mutant) {
    active_mutant = mutant;
    alignas(kLineBytes) std::array<std::byte, kLeafBytes> memory{};
    const rdma::GlobalAddress address(0, kLineBytes);
    const auto carry_out = [&](const rdma::Operation& write) {
      for (size_t at = 0; at < write.size; at += kWordBytes) {
        uint64_t word;
        std::memcpy(&word, static_cast<const std::byte*>(write.local) + at, kWordBytes);
        StoreWord(memory.data() + (write.remote.offset() - address.offset()) + at, word);
      }
    };
    LeafDraft fresh(address, index::kAbsentBit, 0, index::OwnerBits(0, 1));
    fresh.set_low(0);
    fresh.set_high(UINT64_MAX);
    fresh.Add(IntegerEntry{1, 64});
    Posting made;
    fresh.AppendNew(&made);
    LeafImage image = fresh.image();
    image.head.state = fresh.unlocked();
    StoreLeaf(image, memory.data());

    // The victim inserts key 2, and dies after the WRITE of the slot's line.
    EXPECT_EQ(ReadOwnLeaf(memory.data(), &image), LeafLook::kWhole);
    LeafDraft victim(address, image, index::OwnerBits(1, 1));
    StoreWord(memory.data(), index::Locked(image.head.state, index::OwnerBits(1, 1)));
    victim.Add(IntegerEntry{2, 128});
    Posting half;
    victim.AppendChange(&half);
    carry_out(half.operations()[0]);
    // The lines of a slow READ, but line 0.
    LeafImage slow;
    std::memcpy(&slow, memory.data(), sizeof(slow));
    RepairLeaf(memory.data(), /*is_linked=*/true);

    // Another client inserts key 3 instead.
    EXPECT_EQ(ReadOwnLeaf(memory.data(), &image), LeafLook::kWhole);
    LeafDraft next(address, image, index::OwnerBits(2, 1));
    next.Add(IntegerEntry{3, 192});
    Posting whole;
    next.AppendChange(&whole);
    for (const rdma::Operation& write : whole.operations()) carry_out(write);
    // Line 0 of the slow READ.
    std::memcpy(&slow.head, memory.data(), sizeof(slow.head));
    active_mutant = Mutant::kNone;
    return std::pair(LookAtLeaf(slow), FindSlot(slow, 2));
  };
  const auto [wrong, slot] = look(Mutant::kOldStamp);
  EXPECT_EQ(wrong, LeafLook::kWhole);
  EXPECT_GE(slot, 0) << "key 2 was never in the index";
  EXPECT_EQ(look(Mutant::kNone).first, LeafLook::kTorn);
}

}  // namespace leaf_mutants_test
}  // namespace gannet::scenario
