// The shared leaf (index/shared_leaf/leaf/leaf.h): every change, stopped after any of its WRITEs and in the middle of
// them, and then repaired; and readers whose lines are from different moments.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/leaf_repair.h"
#include "index/shared_leaf/leaf/leaf_split.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::shared_leaf {
namespace shared_leaf_test {

using rdma::GlobalAddress;
using rdma::Operation;
using Content = std::map<uint64_t, uint64_t>;  // number of a key -> target

constexpr rdma::NodeId kOwner = 3;
constexpr uint64_t kClient = OwnerBits(5, 17);
constexpr size_t kBlocks = 4;
constexpr uint64_t kBase = 4096;  // offset of the first block

// The two formats. Keys are numbers here; a target tells the number, so that the tests need no records.
struct Integers {
  using Keys = IntegerKeys;
  static constexpr size_t kFenceLines = 0;
  static uint64_t Key(uint64_t n) { return n; }
  static IntegerEntry Entry(uint64_t n, uint64_t version) { return {n, n * 16 + version}; }
  static uint64_t TargetOf(const IntegerEntry& entry) { return entry.target; }
  static IntegerKeys::EntryKeys KeysOf(const LeafImage&) { return {}; }
  static void Repair(std::byte* leaf, bool is_linked) { RepairLeaf(leaf, is_linked); }
  static bool Has(const LeafImage& leaf, uint64_t n) { return FindSlot(leaf, n) >= 0; }
};

template <size_t kKeyBytes>
struct Bytes {
  using Keys = ByteKeys;
  static constexpr size_t kFenceLines = FenceLinesFor(kKeyBytes);
  static ByteKey Key(uint64_t n) {
    const std::string number = std::to_string(n);
    return ByteKey(std::string(kKeyBytes - 1 - number.size(), '0') + number + (n % 2 != 0 ? "+" : ""));
  }
  // Few tags: most entries of a leaf share theirs with another one.
  static ByteKeys::IndexEntry Entry(uint64_t n, uint64_t version) {
    return {Key(n), TaggedEntry::Of(n % 13, n * 16 + version)};
  }
  static uint64_t TargetOf(const TaggedEntry& entry) { return entry.offset(); }
  static ByteKeys::EntryKeys KeysOf(const TaggedImage& leaf) {
    ByteKeys::EntryKeys keys;
    for (uint64_t used = leaf.used<TaggedEntry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      keys.known |= uint64_t{1} << slot;
      keys.of[static_cast<size_t>(slot)] = Key(leaf.entry<TaggedEntry>(slot).offset() / 16);
    }
    return keys;
  }
  static void Repair(std::byte* leaf, bool is_linked) { RepairTaggedLeaf(leaf, is_linked, kFenceLines); }
};

template <class Format>
class LeafCase {
 public:
  using Keys = typename Format::Keys;
  using Image = typename Keys::Image;
  using Head = typename Keys::Head;
  using Draft = typename Keys::Draft;
  using Entry = typename Keys::Entry;
  using IndexEntry = typename Keys::IndexEntry;
  static constexpr size_t kBytes = LeafBytesWith(Format::kFenceLines);
  static constexpr size_t kLines = kBytes / kLineBytes;
  static constexpr size_t kSlots = Keys::kSlots;

  explicit LeafCase(uint64_t seed) : random_(seed) {}

  static GlobalAddress BlockAt(size_t block) { return {kOwner, kBase + block * kBytes}; }

  // The owner's memory. Verbs take effect on it line by line.
  struct Memory {
    alignas(kLineBytes) std::array<std::array<std::byte, kBytes>, kBlocks> blocks{};

    Memory() {
      for (size_t b = 0; b < kBlocks; ++b) {
        for (size_t line = 0; line < kLines; ++line) StoreWord(blocks[b].data() + line * kLineBytes, kAbsentBit);
      }
    }
    std::byte* At(GlobalAddress address) { return blocks[0].data() + (address.offset() - kBase); }
    Image Leaf(GlobalAddress block) {
      Image image;
      std::memcpy(static_cast<void*>(&image), At(block), kBytes);
      return image;
    }
  };

  // A WRITE as its lines: each takes effect at one moment, in any order. A CAS is one, if it finds what it expects.
  struct LineWrite {
    GlobalAddress to;
    std::vector<std::byte> data;
    std::optional<uint64_t> expected{};
  };

  static std::vector<LineWrite> LinesOf(const Operation& write) {
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
  static Content Read(Memory& memory, std::set<uint64_t>* reached = nullptr) {
    Content content;
    typename Keys::Key low = Keys::kLeast;
    for (GlobalAddress at = BlockAt(0); !at.is_null();) {
      const Image leaf = memory.Leaf(at);
      EXPECT_EQ(LookAtLeaf(leaf), LeafLook::kWhole);
      EXPECT_EQ(Keys::LowOf(leaf), low);
      for (uint64_t used = leaf.template used<Entry>(); used != 0; used &= used - 1) {
        const uint64_t target = Format::TargetOf(leaf.template entry<Entry>(std::countr_zero(used)));
        EXPECT_TRUE(Keys::CoversKey(leaf, Format::Key(target / 16)));
        EXPECT_TRUE(content.emplace(target / 16, target).second) << target / 16 << " twice";
      }
      if (reached != nullptr) reached->insert(at.offset());
      if (leaf.right().is_null()) {
        EXPECT_TRUE(Keys::IsLast(leaf));
        break;
      }
      EXPECT_FALSE(Keys::IsLast(leaf));
      low = Keys::NextLow(leaf);
      at = leaf.right();
    }
    return content;
  }

  static std::set<uint64_t> Reached(Memory& memory) {
    std::set<uint64_t> reached;
    for (GlobalAddress at = BlockAt(0); !at.is_null();) {
      reached.insert(at.offset());
      Head head;
      std::memcpy(&head, memory.At(at), sizeof(head));
      at = GlobalAddress::FromBits(head.right);
    }
    return reached;
  }

  static void Repair(Memory& memory) {
    const std::set<uint64_t> reached = Reached(memory);
    for (size_t b = 0; b < kBlocks; ++b) {
      std::byte* leaf = memory.At(BlockAt(b));
      const uint64_t state = LoadWord(leaf);
      if (!IsLocked(state)) continue;
      EXPECT_EQ(state & OwnerBits(0x7fff, 0x7f), kClient);
      Format::Repair(leaf, reached.contains(BlockAt(b).offset()));
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

 private:
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
  static void Lock(Memory& memory, const LeafLock& draft) {
    const Operation cas = draft.Lock();
    ASSERT_EQ(LoadWord(memory.At(cas.remote)), cas.expected);
    StoreWord(memory.At(cas.remote), cas.operand);
  }

  // An index of one or two leaves with random entries, made by changes. Keys are even.
  void Make(Memory& memory, size_t entries) {
    Draft root(BlockAt(0), kAbsentBit, 0, kClient, Format::kFenceLines);
    Keys::SetLow(&root, Keys::kLeast);
    Keys::SetNextLow(&root, std::nullopt);
    Posting posting;
    root.AppendNew(&posting);
    root.AppendUnlock(&posting);
    Apply(memory, posting);
    std::set<uint64_t> keys;
    while (keys.size() < entries) keys.insert(2 * Draw(1000));
    for (const uint64_t key : keys) {
      Draft leaf(BlockAt(0), memory.Leaf(BlockAt(0)), kClient);
      Lock(memory, leaf);
      ASSERT_GE(leaf.Add(Keys::EntryOf(Format::Entry(key, 7))), 0);
      leaf.AppendChange(&posting);
      Apply(memory, posting);
    }
    // Removals leave entries behind that do not count.
    for (size_t n = Draw(3); n > 0 && entries < kSlots; --n) {
      Draft leaf(BlockAt(0), memory.Leaf(BlockAt(0)), kClient);
      Lock(memory, leaf);
      const uint64_t used = leaf.image().template used<Entry>();
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
    // The CASes may be repeated when a coroutine of this client, whose lock looks the same, has locked the leaf.
    for (const Operation& operation : change.posting.operations()) {
      if (operation.verb != rdma::Verb::kCompareAndSwap) continue;
      EXPECT_NE(operation.expected, Locked(LoadWord(moments.back().At(operation.remote)), kClient));
    }

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
          EXPECT_EQ(LookAtLeaf(memory.Leaf(BlockAt(b))), LeafLook::kDead);
        }
        // No version returns, and the next change gives no line a version that it had.
        for (size_t line = 0; line < kLines; ++line) {
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
        Image mixed;
        Memory* of_head = nullptr;
        for (size_t line = 0; line < kLines; ++line) {
          const size_t moment = Draw(death + 2);
          Memory& memory = moment == death + 1 ? repaired : moments[moment];
          std::memcpy(reinterpret_cast<std::byte*>(&mixed) + line * kLineBytes,
                      memory.At(BlockAt(b)) + line * kLineBytes, kLineBytes);
          if (line == 0) of_head = &memory;
        }
        // A line that line 0 proves has the entries that the leaf had when line 0 was seen.
        for (int slot = 0; slot < static_cast<int>(kSlots); ++slot) {
          const size_t line = mixed.template LineOf<Entry>(slot);
          if ((mixed.template used<Entry>() >> slot & 1) == 0 || !ProvesLine(mixed, line)) continue;
          ASSERT_EQ(mixed.template entry<Entry>(slot), of_head->Leaf(BlockAt(b)).template entry<Entry>(slot));
          ++proven_entries_;
        }
        if (LookAtLeaf(mixed) != LeafLook::kWhole) continue;
        // What it counts is what the leaf had when line 0 was seen.
        const Image then = of_head->Leaf(BlockAt(b));
        ASSERT_EQ(mixed.head, then.head);
        ASSERT_EQ(Keys::LowOf(mixed), Keys::LowOf(then));
        ASSERT_EQ(NextLowOf<Keys>(mixed), NextLowOf<Keys>(then));
        for (uint64_t used = mixed.template used<Entry>(); used != 0; used &= used - 1) {
          const int slot = std::countr_zero(used);
          EXPECT_EQ(mixed.template entry<Entry>(slot), then.template entry<Entry>(slot));
        }
        ++whole_reads_;
      }
    }
  }

  std::vector<IndexEntry> NewEntries(const Content& present, size_t n) {
    std::set<uint64_t> keys;
    while (keys.size() < n) {
      const uint64_t key = Draw(4) == 0 ? Draw(1'000'000) : Draw(2000);
      if (!present.contains(key)) keys.insert(key);
    }
    std::vector<IndexEntry> entries;
    for (const uint64_t key : keys) entries.push_back(Format::Entry(key, 9));
    return entries;
  }

  static uint64_t TargetOf(const IndexEntry& entry) { return Format::TargetOf(Keys::EntryOf(entry)); }
  static uint64_t NumberOf(const IndexEntry& entry) { return TargetOf(entry) / 16; }
  static int SlotOf(const Image& leaf, uint64_t target) {
    for (uint64_t used = leaf.template used<Entry>(); used != 0; used &= used - 1) {
      if (Format::TargetOf(leaf.template entry<Entry>(std::countr_zero(used))) == target) return std::countr_zero(used);
    }
    return -1;
  }
  static SplitPlanOf<Keys> Plan(const Draft& left, const std::vector<IndexEntry>& added) {
    return PlanSplit<Keys>(left.image(), Format::KeysOf(left.image()), added);
  }

  Random random_;
  uint64_t proven_entries_ = 0;
  int whole_reads_ = 0;

 public:
  void InsertsAreWholeWhereverTheirClientDies() {
    for (size_t entries = 0; entries < kSlots; ++entries) {
      Change change;
      Make(change.before, entries);
      change.content_before = Read(change.before);
      Draft leaf(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
      Lock(change.before, leaf);
      change.content_after = change.content_before;
      const size_t room = kSlots - change.content_before.size();
      for (const IndexEntry& entry : NewEntries(change.content_before, 1 + Draw(room))) {
        ASSERT_GE(leaf.Add(Keys::EntryOf(entry)), 0);
        change.content_after[NumberOf(entry)] = TargetOf(entry);
      }
      leaf.AppendChange(&change.posting);
      Check(change);
    }
    EXPECT_GT(whole_reads_, 0);
    EXPECT_GT(proven_entries_, 0u);
  }

  void RemovalsAreWholeWhereverTheirClientDies() {
    for (size_t entries = 3; entries <= kSlots; ++entries) {
      Change change;
      Make(change.before, entries);
      change.content_before = Read(change.before);
      if (change.content_before.empty()) continue;
      Draft leaf(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
      Lock(change.before, leaf);
      const auto victim =
          std::next(change.content_before.begin(), static_cast<ptrdiff_t>(Draw(change.content_before.size())));
      leaf.Remove(SlotOf(leaf.image(), victim->second));
      leaf.AppendChange(&change.posting);
      EXPECT_EQ(change.posting.operations().size(), 1u);
      change.content_after = change.content_before;
      change.content_after.erase(victim->first);
      Check(change);
    }
  }

  void ReplacementsAreWholeWhereverTheirClientDies() {
    for (size_t entries = 3; entries <= kSlots; ++entries) {
      Change change;
      Make(change.before, entries);
      change.content_before = Read(change.before);
      if (change.content_before.empty()) continue;
      Draft leaf(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
      Lock(change.before, leaf);
      const auto changed =
          std::next(change.content_before.begin(), static_cast<ptrdiff_t>(Draw(change.content_before.size())));
      const IndexEntry entry = Format::Entry(changed->first, 1);
      leaf.Replace(SlotOf(leaf.image(), changed->second), Keys::EntryOf(entry));
      leaf.AppendChange(&change.posting);
      EXPECT_EQ(change.posting.operations().size(), 2u);
      change.content_after = change.content_before;
      change.content_after[changed->first] = TargetOf(entry);
      // The line commits; but a reader that sees line 0 as it was before must not believe the line.
      Check(change);
    }
  }

  void SplitsAreWholeWhereverTheirClientDies() {
    for (int n = 0; n < 40; ++n) {
      Change change;
      const size_t entries = kSlots - 4 + Draw(5);
      Make(change.before, entries);
      change.content_before = Read(change.before);
      const size_t room = kSlots - change.content_before.size();
      const auto added = NewEntries(change.content_before, room + 1 + Draw(std::min<size_t>(10, kSlots - 1 - room)));
      Draft left(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
      Draft right(BlockAt(2), LoadWord(change.before.At(BlockAt(2))), 0, kClient, Format::kFenceLines);
      Lock(change.before, left);
      AppendSplit<Keys>(Plan(left, added), added, &left, &right, &change.posting);
      change.content_after = change.content_before;
      for (const IndexEntry& entry : added) change.content_after[NumberOf(entry)] = TargetOf(entry);
      // A death may leave the entries of the left leaf out, if they come after the split's commit. So such a split is
      // checked without them.
      std::vector<Memory> moments = {change.before};
      bool right_only = true;
      const auto is_right = [&left](const IndexEntry& entry) {
        return Keys::KeyOf(entry) >= Keys::NextLow(left.image());
      };
      for (const IndexEntry& entry : added) right_only &= is_right(entry);
      if (right_only) {
        Check(change);
        continue;
      }
      Content middle = change.content_before;
      for (const IndexEntry& entry : added) {
        if (is_right(entry)) middle[NumberOf(entry)] = TargetOf(entry);
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

  void AbsorptionsAreWholeWhereverTheirClientDies() {
    for (int n = 0; n < 20; ++n) {
      Change change;
      Make(change.before, kSlots);
      Posting posting;
      {
        Draft left(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
        Draft right(BlockAt(1), LoadWord(change.before.At(BlockAt(1))), 0, kClient, Format::kFenceLines);
        Lock(change.before, left);
        const std::vector<IndexEntry> added = {Format::Entry(999'999'999, 1)};
        AppendSplit<Keys>(Plan(left, added), added, &left, &right, &posting);
        Apply(change.before, posting);
      }
      {
        Draft right(BlockAt(1), change.before.Leaf(BlockAt(1)), kClient);
        Lock(change.before, right);
        const uint64_t used = right.image().template used<typename Keys::Entry>();
        for (uint64_t left = used; left != 0; left &= left - 1) right.Remove(std::countr_zero(left));
        right.AppendChange(&posting);
        Apply(change.before, posting);
      }
      change.content_before = change.content_after = Read(change.before);
      Draft left(BlockAt(0), change.before.Leaf(BlockAt(0)), kClient);
      Draft right(BlockAt(1), change.before.Leaf(BlockAt(1)), kClient);
      Lock(change.before, left);
      Lock(change.before, right);
      AppendAbsorb<Keys>(&left, &right, &change.posting);
      Check(change);
    }
  }

  void WhoGivesUpPublishesItsVersionOrWritesNothing() {
    Memory memory;
    Make(memory, 9);
    const Content content = Read(memory);
    const Image image = memory.Leaf(BlockAt(0));
    Draft leaf(BlockAt(0), image, kClient);
    Lock(memory, leaf);
    const Operation back = leaf.GiveBack();
    EXPECT_EQ(LoadWord(memory.At(back.remote)), back.expected);
    EXPECT_EQ(back.operand, image.head.state);
    // It has written a line: then the same draft without the entry is published.
    const int slot = leaf.Add(Keys::EntryOf(Format::Entry(1, 1)));
    leaf.Remove(slot);
    Posting posting;
    leaf.AppendChange(&posting);
    Apply(memory, posting);
    EXPECT_EQ(Read(memory), content);
    EXPECT_NE(memory.Leaf(BlockAt(0)).head.state, image.head.state);
  }
};

class SharedLeafTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // All formats: integer keys, and byte keys with fences of one line and of four.
  template <class Test>
  void ForAll(const Test& test) {
    test(LeafCase<Integers>(GetParam()));
    test(LeafCase<Bytes<17>>(GetParam()));
    test(LeafCase<Bytes<64>>(GetParam()));
  }
};

TEST_P(SharedLeafTest, InsertsAreWholeWhereverTheirClientDies) {
  ForAll([](auto leaf_case) { leaf_case.InsertsAreWholeWhereverTheirClientDies(); });
}

TEST_P(SharedLeafTest, RemovalsAreWholeWhereverTheirClientDies) {
  ForAll([](auto leaf_case) { leaf_case.RemovalsAreWholeWhereverTheirClientDies(); });
}

TEST_P(SharedLeafTest, ReplacementsAreWholeWhereverTheirClientDies) {
  ForAll([](auto leaf_case) { leaf_case.ReplacementsAreWholeWhereverTheirClientDies(); });
}

TEST_P(SharedLeafTest, SplitsAreWholeWhereverTheirClientDies) {
  ForAll([](auto leaf_case) { leaf_case.SplitsAreWholeWhereverTheirClientDies(); });
}

TEST_P(SharedLeafTest, AbsorptionsAreWholeWhereverTheirClientDies) {
  ForAll([](auto leaf_case) { leaf_case.AbsorptionsAreWholeWhereverTheirClientDies(); });
}

TEST_P(SharedLeafTest, WhoGivesUpPublishesItsVersionOrWritesNothing) {
  ForAll([](auto leaf_case) { leaf_case.WhoGivesUpPublishesItsVersionOrWritesNothing(); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharedLeafTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

TEST(LeafSplitTest, AppendedKeysLeaveFullLeavesBehind) {
  LeafImage image{};
  image.head.state = 1;
  image.head.high = UINT64_MAX;
  for (auto& line : image.lines) line.version = rdma::VersionWord(1);
  image.head.versions.fill(1);
  LeafDraft leaf({kOwner, kBase}, image, kClient);
  for (uint64_t key = 0; key < 18; ++key) leaf.Add(IntegerEntry{10 * key, 1});
  const std::vector<IntegerEntry> after = {{200, 1}};
  SplitPlan plan = PlanSplit(leaf.image(), after);
  EXPECT_EQ(plan.moved, 0u);
  EXPECT_EQ(plan.border, 171u);
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

TEST(LeafLookTest, RandomBytesOfTaggedLeavesAreNeverTrusted) {
  Random random(8);
  for (int n = 0; n < 10000; ++n) {
    TaggedImage image;
    auto* words = reinterpret_cast<uint64_t*>(&image);
    for (size_t i = 0; i < sizeof(image) / 8; ++i) words[i] = random();
    image.head.set_fence_lines(1 + random.Below(kMostFenceLines));
    EXPECT_NE(LookAtLeaf(image), LeafLook::kWhole);
    EXPECT_LE(ByteKeys::LowOf(image).size(), FenceStride(image.head.fence_lines()) - 1);
    EXPECT_LE(ByteKeys::NextLow(image).size(), kShortKeyBytes);
    EXPECT_EQ(MatchTag(image, random.Below(1 << 16)) & ~image.used<TaggedEntry>(), 0u);
    for (int slot = 0; slot < TaggedEntry::kSlots; ++slot) (void)image.entry<TaggedEntry>(slot);
  }
}

TEST(TaggedLeafTest, ABorderIsTheShortestThatSeparates) {
  const auto border = [](const char* left, const char* right, uint8_t level) {
    return std::string(ByteKeys::Border(ByteKey(left), ByteKey(right), level, false).view());
  };
  EXPECT_EQ(border("BARBAROUGHT", "BAREINGBAR", 0), "BARE");
  EXPECT_EQ(border("BAR", "BAREINGBAR", 0), "BARE");
  EXPECT_EQ(border("", "x", 0), "x");
  EXPECT_EQ(border("BARBAROUGHT", "BAREINGBAR", 1), "BAREINGBAR");
}

// How far into a leaf a scan begins decides how many leaves it READs at once.
TEST(LeafScanTest, TheShareOfKeysBeforeAPoint) {
  EXPECT_EQ(IntegerKeys::ShareBefore(100, 150, 200), 0.5);
  EXPECT_EQ(IntegerKeys::ShareBefore(100, 99, 200), 0);
  EXPECT_EQ(IntegerKeys::ShareBefore(100, 300, 200), 1);
  EXPECT_EQ(IntegerKeys::ShareBefore(200, 250, 200), 0) << "an empty range";
  const auto share = [](const char* low, const char* key, const char* high) {
    return ByteKeys::ShareBefore(ByteKey(low), {ByteKey(key)}, ByteKey(high));
  };
  EXPECT_EQ(share("row/a", "row/b", "row/c"), 0.5);
  EXPECT_NEAR(share("row/a", "row/a\x80", "row/b"), 0.5, 1e-6);
  EXPECT_EQ(share("row/a", "row/a", "row/c"), 0);
  EXPECT_EQ(share("row/", "row/", "row/\x10"), 0) << "the range begins with all of its common bytes";
  EXPECT_EQ(share("row/", "row/\x08", "row/\x10"), 0.5);
  EXPECT_EQ(share("row/a", "aaa", "row/c"), 0);
  EXPECT_EQ(share("row/a", "zzz", "row/c"), 1);
  EXPECT_EQ(share("row/a", "row/d", "row/c"), 1);
}

TEST(TaggedLeafTest, PositionsCompareLikeKeys) {
  Random random(9);
  for (int n = 0; n < 10000; ++n) {
    ByteKeys::Cut cuts[2];
    for (ByteKeys::Cut& cut : cuts) {
      std::string key(random.Below(3) == 0 ? random.Below(kShortKeyBytes + 1) : random.Below(4), '\0');
      for (char& byte : key) byte = static_cast<char>(random.OneIn(2) ? random.Below(2) : 255);
      cut = {ByteKey(key), random.OneIn(2)};
    }
    ScanPosition positions[2];
    for (int i = 0; i < 2; ++i) {
      ByteKeys::PutCut(cuts[i], FewOf(&positions[i].words));
      EXPECT_EQ(ByteKeys::CutFrom(FewOf(positions[i].words)), cuts[i]);
    }
    EXPECT_EQ(positions[0] < positions[1], cuts[0] < cuts[1]);
    EXPECT_EQ(positions[0] == positions[1], cuts[0] == cuts[1]);
  }
}

}  // namespace shared_leaf_test
}  // namespace gannet::index::shared_leaf
