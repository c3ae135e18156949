// The shared leaf (index/remote/leaf.h): every change, stopped after any of its WRITEs and in the middle of them, and
// then repaired; and readers whose lines are from different moments.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/remote/leaf.h"
#include "index/remote/leaf_draft.h"
#include "index/remote/leaf_repair.h"
#include "index/remote/leaf_split.h"

namespace gannet::index::remote {
namespace {

using rdma::GlobalAddress;
using rdma::Operation;
using Content = std::map<uint64_t, uint64_t>;  // key -> target

constexpr rdma::NodeId kOwner = 3;
constexpr uint64_t kClient = OwnerBits(5, 17);
constexpr size_t kBlocks = 4;
constexpr uint64_t kBase = 4096;  // offset of the first block

GlobalAddress BlockAt(size_t block) {
  return {kOwner, kBase + block * kLeafBytes};
}

// The owner's memory. Verbs take effect on it line by line.
struct Memory {
  alignas(kLineBytes) std::array<std::array<std::byte, kLeafBytes>, kBlocks> blocks{};

  Memory() {
    for (size_t b = 0; b < kBlocks; ++b) {
      for (size_t line = 0; line < kLeafLines; ++line) StoreWord(blocks[b].data() + line * kLineBytes, kAbsentBit);
    }
  }
  std::byte* At(GlobalAddress address) { return blocks[0].data() + (address.offset() - kBase); }
  LeafImage Image(GlobalAddress block) {
    LeafImage image;
    std::memcpy(&image, At(block), kLeafBytes);
    return image;
  }
};

// A WRITE as its lines: each takes effect at one moment, in any order. A CAS is one, if it finds what it expects.
struct LineWrite {
  GlobalAddress to;
  std::vector<std::byte> data;
  std::optional<uint64_t> expected{};
};

std::vector<LineWrite> LinesOf(const Operation& write) {
  std::vector<LineWrite> lines;
  if (write.verb == rdma::Verb::kCompareAndSwap) {
    const auto* word = reinterpret_cast<const std::byte*>(&write.operand);
    return {{.to = write.remote, .data = {word, word + kWordBytes}, .expected = write.expected}};
  }
  EXPECT_EQ(write.verb, rdma::Verb::kWrite);
  const auto* from = static_cast<const std::byte*>(write.local);
  for (uint32_t at = 0; at < write.size; at += kLineBytes) {
    const uint32_t size = std::min<uint32_t>(kLineBytes, write.size - at);
    lines.push_back({.to = write.remote + at, .data = {from + at, from + at + size}});
  }
  return lines;
}

// Everything that the chain from block 0 has. Fails the test if a leaf in it is not whole, or does not fit.
Content Read(Memory& memory, std::set<uint64_t>* reached = nullptr) {
  Content content;
  uint64_t low = 0;
  for (GlobalAddress at = BlockAt(0); !at.is_null();) {
    const LeafImage leaf = memory.Image(at);
    EXPECT_EQ(LookAtLeaf(leaf), LeafLook::kWhole);
    EXPECT_EQ(leaf.head.low, low);
    for (int slot = 0; slot < IntegerEntry::kSlots; ++slot) {
      if ((leaf.used<IntegerEntry>() >> slot & 1) == 0) continue;
      const auto entry = leaf.entry<IntegerEntry>(slot);
      EXPECT_TRUE(leaf.Covers(entry.key));
      EXPECT_TRUE(content.emplace(entry.key, entry.target).second) << entry.key << " twice";
    }
    if (reached != nullptr) reached->insert(at.offset());
    if (leaf.right().is_null()) {
      EXPECT_EQ(leaf.head.high, UINT64_MAX);
      break;
    }
    low = leaf.head.high + 1;
    at = leaf.right();
  }
  return content;
}

std::set<uint64_t> Reached(Memory& memory) {
  std::set<uint64_t> reached;
  for (GlobalAddress at = BlockAt(0); !at.is_null();) {
    reached.insert(at.offset());
    LeafHead head;
    std::memcpy(&head, memory.At(at), sizeof(head));
    at = GlobalAddress::FromBits(head.right);
  }
  return reached;
}

void Repair(Memory& memory) {
  const std::set<uint64_t> reached = Reached(memory);
  for (size_t b = 0; b < kBlocks; ++b) {
    std::byte* leaf = memory.At(BlockAt(b));
    const uint64_t state = LoadWord(leaf);
    if (!IsLocked(state)) continue;
    EXPECT_EQ(state & OwnerBits(0x7fff, 0x7f), kClient);
    RepairLeaf(leaf, reached.contains(BlockAt(b).offset()));
  }
}

// One change of an index that has some leaves: its locks, its verbs, and what the index has before and after it.
struct Change {
  Memory before;
  std::vector<GlobalAddress> locked;
  Posting posting;
  Content content_before;
  Content content_after;
};

class RemoteLeafTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  uint64_t Draw(uint64_t below) { return random_.Below(below); }

  // Posts at once, all of it.
  static void Apply(Memory& memory, Posting& posting) {
    for (const Operation& operation : posting.operations()) {
      for (const LineWrite& line : LinesOf(operation)) Store(memory, line);
    }
    posting.Clear();
  }
  static void Store(Memory& memory, const LineWrite& line) {
    if (line.expected.has_value()) {
      ASSERT_EQ(LoadWord(memory.At(line.to)), *line.expected);
    }
    std::memcpy(memory.At(line.to), line.data.data(), line.data.size());
  }
  static void Lock(Memory& memory, const LeafDraft& draft) {
    const Operation cas = draft.Lock();
    ASSERT_EQ(LoadWord(memory.At(cas.remote)), cas.expected);
    StoreWord(memory.At(cas.remote), cas.operand);
  }

  // An index of one or two leaves with random entries, made by changes. Keys are even.
  void Make(Memory& memory, size_t entries) {
    LeafDraft root(BlockAt(0), kAbsentBit, 0, kClient);
    root.set_low(0);
    root.set_high(UINT64_MAX);
    Posting posting;
    root.AppendNew(&posting);
    root.AppendUnlock(&posting);
    Apply(memory, posting);
    std::set<uint64_t> keys;
    while (keys.size() < entries) keys.insert(2 * Draw(1000));
    for (const uint64_t key : keys) {
      LeafDraft leaf(BlockAt(0), memory.Image(BlockAt(0)), kClient);
      Lock(memory, leaf);
      ASSERT_GE(leaf.Add(IntegerEntry{key, key + 7}), 0);
      leaf.AppendChange(&posting);
      Apply(memory, posting);
    }
    // Removals leave entries behind that do not count.
    for (size_t n = Draw(3); n > 0 && entries < IntegerEntry::kSlots; --n) {
      LeafDraft leaf(BlockAt(0), memory.Image(BlockAt(0)), kClient);
      Lock(memory, leaf);
      const uint64_t used = leaf.image().used<IntegerEntry>();
      if (used != 0) leaf.Remove(std::countr_zero(used));
      leaf.AppendChange(&posting);
      Apply(memory, posting);
    }
  }

  // Checks `change`, which has taken its locks: a death after any of its line WRITEs, and readers of all moments.
  void Check(Change& change) {
    // Moments: the memory after each line WRITE. A WRITE's lines take effect in a random order.
    std::vector<Memory> moments = {change.before};
    for (const Operation& operation : change.posting.operations()) {
      std::vector<LineWrite> lines = LinesOf(operation);
      for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[Draw(i)]);
      for (const LineWrite& line : lines) {
        moments.push_back(moments.back());
        const uint64_t first_word = LoadWord(moments.back().At(line.to));
        Store(moments.back(), line);
        EXPECT_NE(LoadWord(moments.back().At(line.to)), first_word) << "a line's first word did not change";
      }
    }
    EXPECT_EQ(Read(moments.back()), change.content_after);

    bool committed = false;
    for (size_t moment = 0; moment < moments.size(); ++moment) {
      Memory memory = moments[moment];
      Repair(memory);
      std::set<uint64_t> reached;
      const Content content = Read(memory, &reached);
      if (content == change.content_after) {
        committed = true;
      } else {
        EXPECT_EQ(content, change.content_before) << "after " << moment << " of " << moments.size() - 1;
        EXPECT_FALSE(committed) << "undone after " << moment;
      }
      for (size_t b = 0; b < kBlocks; ++b) {
        if (!reached.contains(BlockAt(b).offset())) {
          EXPECT_EQ(LookAtLeaf(memory.Image(BlockAt(b))), LeafLook::kDead);
        }
        // No version returns, and the next change gives no line a version that it had.
        for (size_t line = 0; line < kLeafLines; ++line) {
          const GlobalAddress at = BlockAt(b) + line * kLineBytes;
          const uint64_t repaired = VersionOf(LoadWord(memory.At(at)));
          EXPECT_GE(repaired, VersionOf(LoadWord(moments[moment].At(at))));
          if (reached.contains(BlockAt(b).offset())) {
            EXPECT_LE(repaired, VersionOf(LoadWord(memory.At(BlockAt(b)))));
          }
        }
      }
      ReadMixed(moments, memory, moment);
    }
    EXPECT_TRUE(committed);
  }

  // READs of every block whose lines are from different moments up to `death`, or from after the repair.
  void ReadMixed(std::vector<Memory>& moments, Memory& repaired, size_t death) {
    for (size_t b = 0; b < kBlocks; ++b) {
      for (int n = 0; n < 10; ++n) {
        LeafImage mixed;
        Memory* of_head = nullptr;
        for (size_t line = 0; line < kLeafLines; ++line) {
          const size_t moment = Draw(death + 2);
          Memory& memory = moment == death + 1 ? repaired : moments[moment];
          std::memcpy(reinterpret_cast<std::byte*>(&mixed) + line * kLineBytes,
                      memory.At(BlockAt(b)) + line * kLineBytes, kLineBytes);
          if (line == 0) of_head = &memory;
        }
        if (LookAtLeaf(mixed) != LeafLook::kWhole) continue;
        // What it counts is what the leaf had when line 0 was seen.
        const LeafImage then = of_head->Image(BlockAt(b));
        ASSERT_EQ(mixed.head, then.head);
        for (int slot = 0; slot < IntegerEntry::kSlots; ++slot) {
          if ((mixed.used<IntegerEntry>() >> slot & 1) == 0) continue;
          EXPECT_EQ(mixed.entry<IntegerEntry>(slot), then.entry<IntegerEntry>(slot));
        }
        ++whole_reads_;
      }
    }
  }

  std::vector<IntegerEntry> NewEntries(const Content& present, size_t n) {
    std::set<uint64_t> keys;
    while (keys.size() < n) {
      const uint64_t key = Draw(4) == 0 ? Draw(1'000'000) : Draw(2000);
      if (!present.contains(key)) keys.insert(key);
    }
    std::vector<IntegerEntry> entries;
    for (const uint64_t key : keys) entries.push_back({key, key + 9});
    return entries;
  }

  Random random_{GetParam()};
  int whole_reads_ = 0;
};

TEST_P(RemoteLeafTest, InsertsAreWholeWhereverTheirClientDies) {
  for (size_t entries = 0; entries < 18; ++entries) {
    Change change;
    Make(change.before, entries);
    change.content_before = Read(change.before);
    LeafDraft leaf(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
    Lock(change.before, leaf);
    change.content_after = change.content_before;
    const size_t room = IntegerEntry::kSlots - change.content_before.size();
    for (const IntegerEntry& entry : NewEntries(change.content_before, 1 + Draw(room))) {
      ASSERT_GE(leaf.Add(entry), 0);
      change.content_after[entry.key] = entry.target;
    }
    leaf.AppendChange(&change.posting);
    Check(change);
  }
  EXPECT_GT(whole_reads_, 0);
}

TEST_P(RemoteLeafTest, RemovalsAreWholeWhereverTheirClientDies) {
  for (size_t entries = 3; entries <= 18; ++entries) {
    Change change;
    Make(change.before, entries);
    change.content_before = Read(change.before);
    if (change.content_before.empty()) continue;
    LeafDraft leaf(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
    Lock(change.before, leaf);
    const auto victim =
        std::next(change.content_before.begin(), static_cast<ptrdiff_t>(Draw(change.content_before.size())));
    leaf.Remove(FindSlot(leaf.image(), victim->first));
    leaf.AppendChange(&change.posting);
    EXPECT_EQ(change.posting.operations().size(), 1u);
    change.content_after = change.content_before;
    change.content_after.erase(victim->first);
    Check(change);
  }
}

TEST_P(RemoteLeafTest, ReplacementsAreWholeWhereverTheirClientDies) {
  for (size_t entries = 3; entries <= 18; ++entries) {
    Change change;
    Make(change.before, entries);
    change.content_before = Read(change.before);
    if (change.content_before.empty()) continue;
    LeafDraft leaf(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
    Lock(change.before, leaf);
    const auto changed =
        std::next(change.content_before.begin(), static_cast<ptrdiff_t>(Draw(change.content_before.size())));
    leaf.Replace(FindSlot(leaf.image(), changed->first), IntegerEntry{changed->first, 1});
    leaf.AppendChange(&change.posting);
    EXPECT_EQ(change.posting.operations().size(), 2u);
    change.content_after = change.content_before;
    change.content_after[changed->first] = 1;
    // The line commits; but a reader that sees line 0 as it was before must not believe the line.
    Check(change);
  }
}

TEST_P(RemoteLeafTest, SplitsAreWholeWhereverTheirClientDies) {
  for (int n = 0; n < 40; ++n) {
    Change change;
    const size_t entries = 14 + Draw(5);
    Make(change.before, entries);
    change.content_before = Read(change.before);
    const size_t room = IntegerEntry::kSlots - change.content_before.size();
    const auto added = NewEntries(change.content_before, room + 1 + Draw(std::min<size_t>(10, 17 - room)));
    LeafDraft left(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
    LeafDraft right(BlockAt(2), LoadWord(change.before.At(BlockAt(2))), 0, kClient);
    Lock(change.before, left);
    AppendSplit(PlanSplit(left.image(), added), added, &left, &right, &change.posting);
    change.content_after = change.content_before;
    for (const IntegerEntry& entry : added) change.content_after[entry.key] = entry.target;
    // A death may leave the entries of the left leaf out, if they come after the split's commit. So such a split is
    // checked without them.
    std::vector<Memory> moments = {change.before};
    bool right_only = true;
    for (const IntegerEntry& entry : added) right_only &= entry.key > left.image().head.high;
    if (right_only) {
      Check(change);
      continue;
    }
    Content middle = change.content_before;
    for (const IntegerEntry& entry : added) {
      if (entry.key > left.image().head.high) middle[entry.key] = entry.target;
    }
    Memory memory = change.before;
    for (const Operation& operation : change.posting.operations()) {
      for (const LineWrite& line : LinesOf(operation)) {
        Memory repaired = memory;
        Repair(repaired);
        const Content content = Read(repaired);
        EXPECT_TRUE(content == change.content_before || content == middle || content == change.content_after);
        Store(memory, line);
      }
    }
    EXPECT_EQ(Read(memory), change.content_after);
  }
}

TEST_P(RemoteLeafTest, AbsorptionsAreWholeWhereverTheirClientDies) {
  for (int n = 0; n < 20; ++n) {
    Change change;
    Make(change.before, 18);
    Posting posting;
    {
      LeafDraft left(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
      LeafDraft right(BlockAt(1), LoadWord(change.before.At(BlockAt(1))), 0, kClient);
      Lock(change.before, left);
      const std::vector<IntegerEntry> added = {{999'999'999, 1}};
      AppendSplit(PlanSplit(left.image(), added), added, &left, &right, &posting);
      Apply(change.before, posting);
    }
    {
      LeafDraft right(BlockAt(1), change.before.Image(BlockAt(1)), kClient);
      Lock(change.before, right);
      for (int slot = 0; slot < IntegerEntry::kSlots; ++slot) right.Remove(slot);
      right.AppendChange(&posting);
      Apply(change.before, posting);
    }
    change.content_before = change.content_after = Read(change.before);
    LeafDraft left(BlockAt(0), change.before.Image(BlockAt(0)), kClient);
    LeafDraft right(BlockAt(1), change.before.Image(BlockAt(1)), kClient);
    Lock(change.before, left);
    Lock(change.before, right);
    AppendAbsorb(&left, &right, &change.posting);
    Check(change);
  }
}

TEST_P(RemoteLeafTest, WhoGivesUpPublishesItsVersionOrWritesNothing) {
  Memory memory;
  Make(memory, 9);
  const Content content = Read(memory);
  const LeafImage image = memory.Image(BlockAt(0));
  LeafDraft leaf(BlockAt(0), image, kClient);
  Lock(memory, leaf);
  const Operation back = leaf.GiveBack();
  EXPECT_EQ(LoadWord(memory.At(back.remote)), back.expected);
  EXPECT_EQ(back.operand, image.head.state);
  // It has written a line: then the same draft without the entry is published.
  const int slot = leaf.Add(IntegerEntry{1, 1});
  leaf.Remove(slot);
  Posting posting;
  leaf.AppendChange(&posting);
  Apply(memory, posting);
  EXPECT_EQ(Read(memory), content);
  EXPECT_NE(memory.Image(BlockAt(0)).head.state, image.head.state);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RemoteLeafTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

TEST(LeafSplitTest, AppendedKeysLeaveFullLeavesBehind) {
  Memory memory;
  LeafImage image{};
  image.head.state = 1;
  image.head.high = UINT64_MAX;
  for (auto& line : image.lines) line.version = rdma::VersionWord(1);
  image.head.versions.fill(1);
  LeafDraft leaf(BlockAt(0), image, kClient);
  for (uint64_t key = 0; key < 18; ++key) leaf.Add(IntegerEntry{10 * key, 1});
  const std::vector<IntegerEntry> after = {{200, 1}};
  SplitPlan plan = PlanSplit(leaf.image(), after);
  EXPECT_EQ(plan.moved, 0u);
  EXPECT_EQ(plan.high, 170u);
  EXPECT_EQ(plan.new_left, 0u);
  const std::vector<IntegerEntry> random = {{55, 1}};
  plan = PlanSplit(leaf.image(), random);
  EXPECT_EQ(std::popcount(plan.moved), 9);
  EXPECT_EQ(plan.new_left, 1u);
}

TEST(LeafLookTest, RandomBytesAreNeverTrusted) {
  Random random(7);
  for (int n = 0; n < 10000; ++n) {
    LeafImage image;
    auto* words = reinterpret_cast<uint64_t*>(&image);
    for (size_t i = 0; i < sizeof(image) / 8; ++i) words[i] = random.Below(UINT64_MAX);
    EXPECT_NE(LookAtLeaf(image), LeafLook::kWhole);
    // A hostile client can also make it look whole.
    EXPECT_LE(image.count<IntegerEntry>(), IntegerEntry::kSlots);
    EXPECT_LT(FindSlot(image, random.Below(UINT64_MAX)), IntegerEntry::kSlots);
  }
}

}  // namespace
}  // namespace gannet::index::remote
