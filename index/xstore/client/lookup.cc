#include "index/xstore/client/lookup.h"

#include <algorithm>

#include "rdma/base/runtime.h"

namespace gannet::index::xstore {

template <int W>
void Lookup<W>::Start(const Words& key) {
  key_ = key;
  rounds_ = siblings_ = 0;
  leaves_read_ = right_of_left_ = 0;
  outdated_ = refill_ = widened_ = false;
  stage_ = Stage::kFallback;
  // The top model is in the CPU's cache; the sub-model and the entry of its table are not.
  Charge(Cost::kModelStep, 2);
  Charge(Cost::kIndexStep, 2);
  generation_ = cache_->generation();
  if (generation_ == 0) return;
  place_ = cache_->top().Locate(key);
  line_ = {};
  std::span<const uint64_t> table;
  if (cache_->FindTable(place_.sub_model, &line_.model, &table) ||
      cache_->FindModel(place_.sub_model, &line_.model, &line_.table)) {
    range_ = line_.model.Predict(place_.x);
    ReadRange();
  } else {
    stage_ = Stage::kLine;
  }
}

// Chooses leaves of the range for the next round, and finds their entries.
template <int W>
void Lookup<W>::ReadRange() {
  if (stranded()) {
    stage_ = Stage::kFallback;
    return;
  }
  const uint32_t size = range_.last - range_.first + 1;
  count_ = probing() ? std::min(size, kProbes) : size;
  for (uint32_t i = 0; i < count_; ++i) {
    leaf_[i] = range_.first + static_cast<uint32_t>((uint64_t{size} * (2 * i + 1)) / (2 * count_));
  }
  SubModel model;
  std::span<const uint64_t> table;
  if (cache_->FindTable(place_.sub_model, &model, &table) && range_.last < table.size()) {
    for (uint32_t i = 0; i < count_; ++i) entries_[i] = TableEntry::Unpack(table[leaf_[i]]);
    stage_ = Stage::kLeaves;
  } else {
    stage_ = line_.table == 0 ? Stage::kLine : Stage::kTable;
  }
}

template <int W>
size_t Lookup<W>::Ask(rdma::Operation* operations) {
  if (over()) return 0;
  if (++rounds_ > kMaxRounds || stranded()) {
    stage_ = Stage::kFallback;
    return 0;
  }
  constexpr auto kLeafBytes = static_cast<uint32_t>(LeafLayout<W>::kBytes);
  constexpr auto kFenceBytes = static_cast<uint32_t>(LeafLayout<W>::kFenceLines * kLineBytes);
  const auto line_read = [this] {
    const rdma::GlobalAddress from(owner_, cache_->LineOffset(place_.sub_model));
    return rdma::Operation::Read(from, line_image_.data(), kLineBytes);
  };
  switch (stage_) {
    case Stage::kLine:
      operations[0] = line_read();
      return 1;
    case Stage::kTable:
    case Stage::kRefill:
      return AskForTable(operations);
    case Stage::kLeaves:
      for (uint32_t i = 0; i < count_; ++i) {
        operations[i] =
            rdma::Operation::Read(AddressOf(entries_[i].leaf), ImageAt(i), probing() ? kFenceBytes : kLeafBytes);
      }
      leaves_read_ += count_;
      return count_;
    case Stage::kSibling:
      operations[0] = rdma::Operation::Read(AddressOf(entries_[0].leaf), ImageAt(0), kLeafBytes);
      operations[1] = line_read();
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

// All of it for a cache that keeps tables; else the entries of this round.
template <int W>
size_t Lookup<W>::AskForTable(rdma::Operation* operations) {
  constexpr uint32_t kMostEntries = 64;  // of one READ that brings more than it must
  const auto read = [this](uint32_t first, uint32_t count, uint64_t* to) {
    const rdma::GlobalAddress from = AddressOf(line_.table) + uint64_t{first} * kWordBytes;
    return rdma::Operation::Read(from, to, count * static_cast<uint32_t>(kWordBytes));
  };
  if (cache_->keeps_tables()) {
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
  // What was READ for the cache is of no use then; leaves are what they are.
  if (stranded() && stage_ != Stage::kLeaves && stage_ != Stage::kConfirm) {
    stage_ = stage_ == Stage::kRefill ? Stage::kFound : Stage::kFallback;
    return;
  }
  switch (stage_) {
    case Stage::kLine:
      return LookAtLine();
    case Stage::kTable:
      return LookAtTable();
    case Stage::kLeaves:
      return LookAtLeaves();
    case Stage::kSibling:
      return LookAtSibling();
    case Stage::kConfirm:
      return LookAtConfirmation();
    case Stage::kRefill:
      cache_->PutTable(place_.sub_model, line_.model, table_);
      stage_ = Stage::kFound;
      return;
    case Stage::kFound:
    case Stage::kFallback:
      return;
  }
}

// False if the image is of no use: being written, or of another model than the cached one.
template <int W>
bool Lookup<W>::ReadLine(SubModelLine* line) {
  if (!line->Load(line_image_.data())) {
    channel_->CountRetry();
    return false;
  }
  if (line->generation != cache_->generation() || line->index != place_.sub_model) {
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
    cache_->PutModel(place_.sub_model, line.model, line.table);
    range_ = line.model.Predict(place_.x);
    ReadRange();
    // A table that another lookup has put into the cache meanwhile may belong to another line.
    if (cache_->keeps_tables()) stage_ = Stage::kTable;
  } else if (outdated_) {
    stage_ = Stage::kFallback;
  }
}

template <int W>
void Lookup<W>::LookAtTable() {
  uint32_t first = 0;  // logical leaf of table_[0]
  if (cache_->keeps_tables()) {
    cache_->PutTable(place_.sub_model, line_.model, table_);
  } else {
    first = leaf_[0];
  }
  const bool sparse = leaf_[count_ - 1] - first >= table_.size();
  for (uint32_t i = 0; i < count_; ++i) entries_[i] = TableEntry::Unpack(table_[sparse ? i : leaf_[i] - first]);
  stage_ = Stage::kLeaves;
}

template <int W>
void Lookup<W>::LookAtLeaves() {
  int64_t first = range_.first;
  int64_t last = range_.last;
  bool torn = false;
  const bool whole = !probing();
  const size_t lines = whole ? LeafLayout<W>::kLines : LeafLayout<W>::kFenceLines;
  Charge(Cost::kRecordLine, count_ * lines);
  for (uint32_t i = 0; i < count_; ++i) {
    const Leaf<W> leaf(ImageAt(i));
    const LeafMeta meta = leaf.meta();
    if (!rdma::IsConsistentImage(ImageAt(i), lines)) {
      torn = true;
    } else if (meta.count > kLeafSlots || leaf.high() < leaf.low()) {
      continue;  // dead, or nonsense
    } else if (leaf.Covers(key_)) {
      if (whole) return Found(i);
      first = last = leaf_[i];
      break;
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

// None of the predicted leaves covers the key.
template <int W>
void Lookup<W>::LookBeside() {
  if (right_of_left_ != 0) {
    entries_[0].leaf = right_of_left_;
    stage_ = Stage::kSibling;
  } else if (range_.first > 0 && !widened_) {
    // They are all above the key: the leaf before may have absorbed one that died.
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
  if (leaf.meta().count <= kLeafSlots && leaf.Covers(key_)) return Found(0);
  const bool further = leaf.low() <= leaf.high() && leaf.high() < key_ && leaf.meta().right != 0;
  if (!further || ++siblings_ == kMaxSiblings) {
    stage_ = Stage::kFallback;
  } else {
    entries_[0].leaf = leaf.meta().right;
  }
}

// The sub-model that came along with a sibling: has it been retrained since it was cached?
template <int W>
void Lookup<W>::NoteNewerLine() {
  SubModelLine line;
  if (!ReadLine(&line)) return;
  const SubModel& old = line_.model;
  const SubModel& now = line.model;
  const bool same = old.slope == now.slope && old.intercept == now.intercept && old.under == now.under &&
                    old.over == now.over && old.size == now.size;
  if (same && (line_.table == line.table || line_.table == 0)) return;
  line_ = line;
  cache_->PutModel(place_.sub_model, line.model, line.table);
  refill_ = cache_->keeps_tables();
}

template <int W>
void Lookup<W>::Found(uint32_t i) {
  found_ = i;
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
  stage_ = Stage::kSibling;  // that is: READ this one
}

template class Lookup<1>;
template class Lookup<3>;
template class Lookup<5>;
template class Lookup<9>;

}  // namespace gannet::index::xstore
