#include "index/xstore/client/lookup.h"

#include <algorithm>

namespace gannet::index::xstore {

template <int W>
void Lookup<W>::Start(const Words& key) {
  key_ = key;
  rounds_ = siblings_ = 0;
  leaves_read_ = 0;
  outdated_ = refill_ = false;
  stage_ = Stage::kFallback;
  if (cache_->generation() == 0) return;
  place_ = cache_->top().Locate(key);
  line_ = {};
  std::span<const uint64_t> table;
  if (cache_->FindTable(place_.sub_model, &line_.model, &table) ||
      cache_->FindModel(place_.sub_model, &line_.model, &line_.table)) {
    Predict();
  } else {
    stage_ = Stage::kLine;
  }
}

template <int W>
void Lookup<W>::Predict() {
  range_ = line_.model.Predict(place_.x);
  uint32_t first = range_.first;
  if (range_.last - range_.first >= kWindow) {
    const double middle = line_.model.Line(place_.x) - kWindow / 2;
    const double highest = range_.last - (kWindow - 1);
    first = static_cast<uint32_t>(std::clamp(middle, static_cast<double>(range_.first), highest));
  }
  OpenWindow(first, std::min(range_.last, first + kWindow - 1));
}

// The next round READs the logical leaves [first, last]; before that, their entries, if the cache does not have them.
template <int W>
void Lookup<W>::OpenWindow(uint32_t first, uint32_t last) {
  first_ = first;
  count_ = last - first + 1;
  SubModel model;
  std::span<const uint64_t> table;
  if (cache_->FindTable(place_.sub_model, &model, &table) && last < table.size()) {
    TakeEntries(table.subspan(first, count_));
  } else {
    stage_ = line_.table == 0 ? Stage::kLine : Stage::kTable;
  }
}

template <int W>
void Lookup<W>::TakeEntries(std::span<const uint64_t> from) {
  for (uint32_t i = 0; i < count_; ++i) entries_[i] = TableEntry::Unpack(from[i]);
  stage_ = Stage::kLeaves;
}

template <int W>
size_t Lookup<W>::Ask(rdma::Operation* operations) {
  if (over()) return 0;
  if (++rounds_ > kMaxRounds) {
    stage_ = Stage::kFallback;
    return 0;
  }
  constexpr auto kLeafBytes = static_cast<uint32_t>(LeafLayout<W>::kBytes);
  const auto line_read = [this] {
    const rdma::GlobalAddress from(owner_, cache_->LineOffset(place_.sub_model));
    return rdma::Operation::Read(from, line_image_.data(), kLineBytes);
  };
  const auto table_read = [this](uint32_t first, uint32_t count) {
    table_.resize(count);
    return rdma::Operation::Read(AddressOf(line_.table) + uint64_t{first} * kWordBytes, table_.data(),
                                 count * static_cast<uint32_t>(kWordBytes));
  };
  switch (stage_) {
    case Stage::kLine:
      operations[0] = line_read();
      return 1;
    case Stage::kTable:
      operations[0] = cache_->keeps_tables() ? table_read(0, line_.model.size) : table_read(first_, count_);
      return 1;
    case Stage::kRefill:
      operations[0] = table_read(0, line_.model.size);
      return 1;
    case Stage::kLeaves:
      for (uint32_t i = 0; i < count_; ++i) {
        operations[i] = rdma::Operation::Read(AddressOf(entries_[i].leaf), ImageAt(i), kLeafBytes);
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

template <int W>
void Lookup<W>::Look() {
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
    Predict();
    // A table that the cache has already belongs to an older line.
    if (stage_ == Stage::kLeaves && cache_->keeps_tables()) stage_ = Stage::kTable;
  } else if (outdated_) {
    stage_ = Stage::kFallback;
  }
}

template <int W>
void Lookup<W>::LookAtTable() {
  if (cache_->keeps_tables()) {
    cache_->PutTable(place_.sub_model, line_.model, table_);
    TakeEntries(std::span<const uint64_t>(table_).subspan(first_, count_));
  } else {
    TakeEntries(table_);
  }
}

template <int W>
void Lookup<W>::LookAtLeaves() {
  int left = -1;  // the last leaf that ends below the key
  bool torn = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const Leaf<W> leaf(ImageAt(i));
    if (!rdma::IsConsistentImage(ImageAt(i), LeafLayout<W>::kLines)) {
      torn = true;
      continue;
    }
    if (leaf.meta().count > kLeafSlots) continue;
    if (leaf.Covers(key_)) return Found(i);
    if (leaf.low() <= leaf.high() && leaf.high() < key_) left = static_cast<int>(i);
  }
  if (torn) {
    channel_->CountRetry();
    return;  // the same leaves again
  }
  LookBeside(left);
}

// The leaf is not among those that came: `left` is the nearest one below it, or -1.
template <int W>
void Lookup<W>::LookBeside(int left) {
  const uint32_t last = first_ + count_ - 1;
  if (left == static_cast<int>(count_) - 1 && last < range_.last) {
    return OpenWindow(last + 1, std::min(range_.last, last + kWindow));
  }
  if (left < 0) {
    // The table's own neighbour, if the prediction begins too far to the right or its first leaf died.
    if (first_ == 0) {
      stage_ = Stage::kFallback;
      return;
    }
    return OpenWindow(first_ > kWindow && range_.first < first_ ? first_ - kWindow : first_ - 1, first_ - 1);
  }
  entries_[0].leaf = Leaf<W>(ImageAt(static_cast<uint32_t>(left))).meta().right;
  stage_ = entries_[0].leaf == 0 ? Stage::kFallback : Stage::kSibling;
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
  count_ = 1;
  range_ = {first_, first_};
  stage_ = Stage::kLeaves;
}

template class Lookup<1>;
template class Lookup<3>;
template class Lookup<5>;
template class Lookup<9>;

}  // namespace gannet::index::xstore
