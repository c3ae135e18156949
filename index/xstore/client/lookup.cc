#include "index/xstore/client/lookup.h"

#include <algorithm>
#include <bit>

#include "base/runtime.h"

namespace gannet::index::xstore {

template <int W>
void Lookup<W>::Start(const Words& key, bool whole) {
  key_ = key;
  whole_ = for_leaf_ = whole;
  judged_ = whole;
  rounds_ = siblings_ = 0;
  leaves_read_ = right_of_left_ = 0;
  outdated_ = refill_ = widened_ = false;
  stage_ = Stage::kFallback;
  // The top model is in the CPU's cache; the sub-model and the entry of its table are not.
  Charge(Cost::kModelStep, 2);
  Charge(Cost::kIndexStep, 2);
  generation_ = cache_->number();
  if (generation_ == 0) return;
  place_ = cached().top().Locate(key);
  line_ = {};
  const auto take = [this](const CachedTable& table) {
    line_.model = table.model();
    range_ = line_.model.Predict(place_.x);
    ChooseLeaves();
    TakeEntries(table);
  };
  if (cached().FindTable(place_.sub_model, take)) {
    EnterLeaves();
  } else if (cached().FindModel(place_.sub_model, &line_.model, &line_.table)) {
    range_ = line_.model.Predict(place_.x);
    ReadRange();
  } else {
    stage_ = Stage::kLine;
  }
}

// Chooses leaves of the range for the next round.
template <int W>
void Lookup<W>::ChooseLeaves() {
  const uint32_t size = range_.last - range_.first + 1;
  count_ = probing() ? std::min(size, kProbes) : size;
  for (uint32_t i = 0; i < count_; ++i) {
    leaf_[i] = range_.first + static_cast<uint32_t>((uint64_t{size} * (2 * i + 1)) / (2 * count_));
  }
}

// Takes the entries of the chosen leaves, if the table has them.
template <int W>
bool Lookup<W>::TakeEntries(const CachedTable& table) {
  if (range_.last >= table.model().size) return false;
  for (uint32_t i = 0; i < count_; ++i) entries_[i] = table.entry(leaf_[i]);
  return true;
}

// Chooses leaves of the range for the next round, and finds their table entries.
template <int W>
void Lookup<W>::ReadRange() {
  if (stranded()) {
    stage_ = Stage::kFallback;
    return;
  }
  ChooseLeaves();
  bool taken = false;
  if (cached().FindTable(place_.sub_model, [&](const CachedTable& table) { taken = TakeEntries(table); }) && taken) {
    EnterLeaves();
  } else {
    stage_ = line_.table == 0 ? Stage::kLine : Stage::kTable;
  }
}

// The leaves' entries are known. Chooses the lines to READ.
template <int W>
void Lookup<W>::EnterLeaves() {
  stage_ = Stage::kLeaves;
  // The tags of a few slots prove neither that a key is there nor that it is absent.
  if (Leaf<W>::kKeysInRecords || whole_ || judged_ || !cache_->trusts_slots() ||
      !channel_->capabilities().line_consistent || probing())
    return;
  size_t lines = 0;
  size_t all = 0;
  uint32_t reads = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const size_t n = SlotLines(i).size();
    reads += n > 0 ? 1 : 0;
    lines += n;
    all += LeafLines(i);
  }
  if (reads > 0 && reads <= kMostSlotReads && lines < all) stage_ = Stage::kSlots;
}

// The lines of the round's leaf `i` where the model predicts the key; empty if it is not predicted there.
template <int W>
auto Lookup<W>::SlotLines(uint32_t i) const -> Lines {
  const SubModel::Slots slots =
      line_.model.PredictSlots(place_.x, leaf_[i], std::min<uint32_t>(entries_[i].count, LeafLayout<W>::kSlots));
  if (slots.last < slots.first) return {0, 0};
  return {LeafLayout<W>::FirstLineOf(slots.first), LeafLayout<W>::EndLineOf(slots.last)};
}

// Number of lines of the round's leaf `i`, from the first on, that kLeaves READs.
template <int W>
uint32_t Lookup<W>::LeafLines(uint32_t i) const {
  using Layout = LeafLayout<W>;
  if (probing()) return Layout::kFenceLines;
  return whole_ ? Layout::kLines : Layout::LinesFor(std::min<uint32_t>(entries_[i].count, Layout::kSlots));
}

// Number of the counted slots of the consistent image `i` that were READ.
template <int W>
int Lookup<W>::CountedSlots(uint32_t i) const {
  const auto count = static_cast<int>(Leaf<W>(ImageAt(i)).meta().count);
  int slots = 0;
  while (slots < count && LeafLayout<W>::EndLineOf(slots) <= lines_[i]) ++slots;
  return slots;
}

template <int W>
size_t Lookup<W>::AskForSlots(rdma::Operation* operations) {
  size_t n = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const Lines lines = SlotLines(i);
    if (lines.size() == 0) continue;
    const size_t offset = lines.first * kLineBytes;
    operations[n++] = rdma::Operation::Read(AddressOf(entries_[i].leaf) + offset, ImageAt(i) + offset,
                                            static_cast<uint32_t>(lines.size() * kLineBytes));
  }
  leaves_read_ += static_cast<uint32_t>(n);
  return n;
}

template <int W>
size_t Lookup<W>::Ask(rdma::Operation* operations) {
  if (over()) return 0;
  if (++rounds_ > kMaxRounds || stranded()) {
    stage_ = Stage::kFallback;
    return 0;
  }
  constexpr auto kLeafBytes = static_cast<uint32_t>(LeafLayout<W>::kBytes);
  const auto line_read = [this] {
    const rdma::GlobalAddress from(owner_, cached().LineOffset(place_.sub_model));
    return rdma::Operation::Read(from, line_image_.data(), kLineBytes);
  };
  switch (stage_) {
    case Stage::kLine:
      operations[0] = line_read();
      return 1;
    case Stage::kTable:
    case Stage::kRefill:
      return AskForTable(operations);
    case Stage::kSlots:
      return AskForSlots(operations);
    case Stage::kLeaves:
      for (uint32_t i = 0; i < count_; ++i) {
        lines_[i] = LeafLines(i);
        operations[i] = rdma::Operation::Read(AddressOf(entries_[i].leaf), ImageAt(i), lines_[i] * kLineBytes);
      }
      leaves_read_ += count_;
      return count_;
    case Stage::kSibling:
      operations[0] = rdma::Operation::Read(AddressOf(entries_[0].leaf), ImageAt(0), kLeafBytes);
      operations[1] = line_read();
      lines_[0] = LeafLayout<W>::kLines;
      ++leaves_read_;
      return 2;
    case Stage::kConfirm:
      operations[0] = rdma::Operation::Read(address(), &confirmation_, kWordBytes);
      return 1;
    case Stage::kFound:
    case Stage::kFallback:
      break;
  }
  return 0;
}

// READs the whole table for a cache that keeps tables; otherwise the entries of this round.
template <int W>
size_t Lookup<W>::AskForTable(rdma::Operation* operations) {
  constexpr uint32_t kMostEntries = 64;  // longest READ that also covers unneeded entries
  const auto read = [this](uint32_t first, uint32_t count, uint64_t* to) {
    const rdma::GlobalAddress from = AddressOf(line_.table) + uint64_t{first} * kWordBytes;
    return rdma::Operation::Read(from, to, count * static_cast<uint32_t>(kWordBytes));
  };
  if (cached().keeps_tables()) {
    table_.resize(line_.model.size);
    operations[0] = read(0, line_.model.size, table_.data());
    return 1;
  }
  const uint32_t span = leaf_[count_ - 1] - leaf_[0] + 1;
  if (span <= kMostEntries) {
    table_.resize(span);
    operations[0] = read(leaf_[0], span, table_.data());
    return 1;
  }
  table_.resize(count_);
  for (uint32_t i = 0; i < count_; ++i) operations[i] = read(leaf_[i], 1, &table_[i]);
  return count_;
}

template <int W>
void Lookup<W>::Look() {
  // READs for the cache are void then; leaves are still valid.
  if (stranded() && stage_ != Stage::kSlots && stage_ != Stage::kLeaves && stage_ != Stage::kConfirm) {
    stage_ = stage_ == Stage::kRefill ? Stage::kFound : Stage::kFallback;
    return;
  }
  switch (stage_) {
    case Stage::kLine:
      return LookAtLine();
    case Stage::kTable:
      return LookAtTable();
    case Stage::kSlots:
      return LookAtSlots();
    case Stage::kLeaves:
      return LookAtLeaves();
    case Stage::kSibling:
      return LookAtSibling();
    case Stage::kConfirm:
      return LookAtConfirmation();
    case Stage::kRefill:
      cached().PutTable(place_.sub_model, line_.model, table_);
      stage_ = Stage::kFound;
      return;
    case Stage::kFound:
    case Stage::kFallback:
      return;
  }
}

// Returns false if the image is void: it is being written, or belongs to another model than the cached one.
template <int W>
bool Lookup<W>::ReadLine(SubModelLine* line) {
  if (!line->Load(line_image_.data())) {
    channel_->CountRetry();
    return false;
  }
  if (line->generation != cache_->number() || line->index != place_.sub_model) {
    outdated_ = true;
    return false;
  }
  return line->model.size > 0 && line->model.size <= kMaxTableEntries;
}

template <int W>
void Lookup<W>::LookAtLine() {
  SubModelLine line;
  if (ReadLine(&line)) {
    line_ = line;
    cached().PutModel(place_.sub_model, line.model, line.table);
    range_ = line.model.Predict(place_.x);
    ReadRange();
    // A table that another lookup has put into the cache in the meantime may belong to another line.
    if (cached().keeps_tables()) stage_ = Stage::kTable;
  } else if (outdated_) {
    stage_ = Stage::kFallback;
  }
}

template <int W>
void Lookup<W>::LookAtTable() {
  uint32_t first = 0;  // logical leaf of table_[0]
  if (cached().keeps_tables()) {
    cached().PutTable(place_.sub_model, line_.model, table_);
  } else {
    first = leaf_[0];
  }
  const bool sparse = leaf_[count_ - 1] - first >= table_.size();
  for (uint32_t i = 0; i < count_; ++i) entries_[i] = TableEntry::Unpack(table_[sparse ? i : leaf_[i] - first]);
  EnterLeaves();
}

template <int W>
void Lookup<W>::LookAtSlots() {
  bool torn = false;
  if constexpr (!Leaf<W>::kKeysInRecords) {
    using Layout = LeafLayout<W>;
    for (uint32_t i = 0; i < count_; ++i) {
      const Lines lines = SlotLines(i);
      if (lines.size() == 0) continue;
      Charge(Cost::kRecordLine, lines.size());
      if (!rdma::IsConsistentImage(ImageAt(i) + lines.first * kLineBytes, lines.size())) {
        torn = true;
        continue;
      }
      int first = 0;
      while (Layout::FirstLineOf(first) < lines.first) ++first;
      int end = first;
      while (end < Layout::kSlots && Layout::EndLineOf(end) <= lines.end) ++end;
      const Leaf<W> leaf(ImageAt(i));
      const int slot = leaf.FindSlotIn(key_, first, end);
      if (slot < 0) continue;
      NoteSlots(i, slot);
      found_ = i;
      record_ = leaf.record(slot);
      stage_ = Stage::kFound;
      return;
    }
  }
  if (torn) {
    channel_->CountRetry();
  } else {
    cache_->NoteSlots(false);
  }
  judged_ = true;
  stage_ = Stage::kLeaves;
}

// The key is in this slot of leaf `i`. Notes whether a READ of the predicted slots would have found it.
template <int W>
void Lookup<W>::NoteSlots(uint32_t i, int slot) {
  if (judged_) return;
  judged_ = true;
  const Lines lines = SlotLines(i);
  cache_->NoteSlots(slot >= 0 && lines.first <= LeafLayout<W>::FirstLineOf(slot) &&
                    LeafLayout<W>::EndLineOf(slot) <= lines.end);
}

// True if image `i`, of the leaf that covers the key, contains all that is needed.
template <int W>
bool Lookup<W>::HasAll(uint32_t i) const {
  const int slots = CountedSlots(i);
  const Leaf<W> leaf(ImageAt(i));
  if (slots == static_cast<int>(leaf.meta().count)) return true;
  if constexpr (Leaf<W>::kKeysInRecords) {
    return false;  // a tag may be that of another key
  } else {
    return !whole_ && leaf.FindSlotIn(key_, 0, slots) >= 0;
  }
}

template <int W>
void Lookup<W>::LookAtLeaves() {
  int64_t first = range_.first;
  int64_t last = range_.last;
  bool torn = false;
  const bool whole = !probing();
  for (uint32_t i = 0; i < count_; ++i) {
    Charge(Cost::kRecordLine, lines_[i]);
    const Leaf<W> leaf(ImageAt(i));
    const LeafMeta meta = leaf.meta();
    if (!rdma::IsConsistentImage(ImageAt(i), lines_[i])) {
      torn = true;
    } else if (meta.count > LeafLayout<W>::kSlots || leaf.high() < leaf.low()) {
      continue;  // dead or invalid
    } else if (leaf.Covers(key_)) {
      if (whole && HasAll(i)) return Found(i);
      whole_ |= whole;  // it has more keys than at training
      range_ = {leaf_[i], leaf_[i]};
      return ReadRange();
    } else if (leaf.high() < key_ && leaf_[i] >= first) {
      first = leaf_[i] + int64_t{1};
      right_of_left_ = meta.right;
    } else if (key_ < leaf.low() && leaf_[i] <= last) {
      last = leaf_[i] - int64_t{1};
    }
  }
  const bool seen_all = whole && !torn;
  if (torn) channel_->CountRetry();
  if (first > last || seen_all) return LookBeside();
  range_ = {static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
  ReadRange();
}

// None of the predicted leaves covers the key: continues with their neighbours.
template <int W>
void Lookup<W>::LookBeside() {
  if (right_of_left_ != 0) {
    entries_[0].leaf = right_of_left_;
    stage_ = Stage::kSibling;
  } else if (range_.first > 0 && !widened_) {
    // All of them are above the key: the leaf before them may have absorbed a dead one.
    widened_ = true;
    range_ = {range_.first - 1, range_.first - 1};
    ReadRange();
  } else {
    stage_ = Stage::kFallback;
  }
}

template <int W>
void Lookup<W>::LookAtSibling() {
  NoteNewerLine();
  const Leaf<W> leaf(ImageAt(0));
  if (!rdma::IsConsistentImage(ImageAt(0), LeafLayout<W>::kLines)) {
    channel_->CountRetry();
    return;
  }
  if (leaf.meta().count <= LeafLayout<W>::kSlots && leaf.Covers(key_)) return Found(0);
  const bool further = leaf.low() <= leaf.high() && leaf.high() < key_ && leaf.meta().right != 0;
  if (!further || ++siblings_ == kMaxSiblings) {
    stage_ = Stage::kFallback;
  } else {
    entries_[0].leaf = leaf.meta().right;
  }
}

// Checks whether the sub-model that was READ with a sibling has been retrained since it was cached.
template <int W>
void Lookup<W>::NoteNewerLine() {
  SubModelLine line;
  if (!ReadLine(&line)) return;
  const SubModel& old = line_.model;
  const SubModel& now = line.model;
  if (old == now && (line_.table == line.table || line_.table == 0)) return;
  line_ = line;
  cached().PutModel(place_.sub_model, line.model, line.table);
  refill_ = cached().keeps_tables();
}

template <int W>
void Lookup<W>::Found(uint32_t i) {
  found_ = i;
  if constexpr (Leaf<W>::kKeysInRecords) {
    const uint64_t same = leaf().MatchTag(key_, leaf().meta().count);
    if (std::popcount(same) > 1 && !for_leaf_) {
      stage_ = Stage::kFallback;
      return;
    }
    record_ = same == 0 ? 0 : rdma::GlobalAddress(owner_, leaf().entry(std::countr_zero(same)).offset()).bits();
  } else {
    const int slot = leaf().FindSlotIn(key_, 0, CountedSlots(i));
    record_ = slot >= 0 ? leaf().record(slot) : 0;
    if (stage_ == Stage::kLeaves) NoteSlots(i, slot);
  }
  if (!channel_->capabilities().line_consistent) {
    stage_ = Stage::kConfirm;
  } else {
    stage_ = refill_ ? Stage::kRefill : Stage::kFound;
  }
}

template <int W>
void Lookup<W>::LookAtConfirmation() {
  if (confirmation_ == leaf().state()) {
    stage_ = refill_ ? Stage::kRefill : Stage::kFound;
    return;
  }
  channel_->CountRetry();
  entries_[0] = entries_[found_];
  stage_ = Stage::kSibling;  // which READs this leaf again
}

#define GANNET_INSTANTIATE(W) template class Lookup<W>;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
