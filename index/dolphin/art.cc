#include "index/dolphin/art.h"

namespace gannet::index::dolphin {

ByteKey ArtWay::low() const {
  return LowOf(path_.view().substr(0, stack_.back().prefix_bytes), entry());
}

bool ArtWay::Fits(std::string_view prefix) const {
  if (resumed_bytes_ >= 0 && prefix.size() != static_cast<size_t>(resumed_bytes_)) return false;
  if (stack_.empty()) return prefix.empty();
  const Level& parent = stack_.back();
  const size_t above = parent.prefix_bytes;
  return prefix.size() > above && prefix.size() <= kMostPrefix &&
         prefix.substr(0, above) == path_.view().substr(0, above) && ByteAt(prefix, above) == ByteOf(parent.entry);
}

int ArtWay::Arrive(std::string_view prefix, bool is_fresh) {
  path_ = ByteKey(prefix);
  stack_.push_back({.node = next_,
                    .limit = limit_,
                    .aim = aim_,
                    .prefix_bytes = static_cast<uint8_t>(prefix.size()),
                    .is_fresh = is_fresh});
  if (aim_ != Aim::kKey) return limit_;
  const std::string_view key = key_.view();
  if (!key.starts_with(prefix)) return key < prefix ? -1 : kMostByte;
  if (key.size() == prefix.size()) return below_ ? -1 : 0;
  const int byte = ByteAt(key, prefix.size());
  // All below that byte is at least the key, if it ends there.
  return below_ && key.size() == prefix.size() + 1 ? byte - 1 : byte;
}

bool ArtWay::BeginsBehind(uint64_t entry) const {
  if (TypeOf(entry) != kLeafType || MoreOf(entry) == 0 || stack_.back().aim != Aim::kKey) return false;
  const ByteKey low = LowOf(path_.view(), entry);
  return below_ ? low >= key_ : low > key_;
}

bool ArtWay::IsOfKey(uint64_t entry) const {
  const Level& level = stack_.back();
  const std::string_view key = key_.view();
  return entry != 0 && TypeOf(entry) != kLeafType && level.aim == Aim::kKey && key.size() > level.prefix_bytes &&
         key.starts_with(path_.view().substr(0, level.prefix_bytes)) &&
         ByteAt(key, level.prefix_bytes) == ByteOf(entry);
}

void ArtWay::Follow(uint64_t entry) {
  Level& level = stack_.back();
  if (entry == 0) {
    const bool forward = level.aim == Aim::kFrom;
    stack_.pop_back();
    return Leave(forward);
  }
  level.entry = entry;
  const NodeRef child = ChildOf(entry, level.node.address.node());
  if (child.type == kLeafType) {
    leaf_ = child.address;
    step_ = Step::kFound;
    return;
  }
  if (IsOfKey(entry)) return GoTo(child, Aim::kKey, 0, -1);
  if (level.aim == Aim::kFrom) return GoTo(child, Aim::kFrom, 0, -1);
  GoTo(child, Aim::kUpTo, kMostByte, -1);
}

void ArtWay::Again() {
  const rdma::GlobalAddress root = stack_.empty() ? next_.address : stack_.front().node.address;
  stack_.clear();
  distrusts_ = true;
  steps_ = 0;
  GoTo({root, kLargestNode}, Aim::kKey, 0, -1);
}

// From now on every level counts as one on the way to low(), also if it was on the way to the key before.
void ArtWay::GoLeft() {
  key_ = low();
  below_ = true;
  steps_ = 0;
  for (Level& level : stack_) level.aim = Aim::kKey;
  const Level last = stack_.back();
  stack_.pop_back();
  GoTo(last.node, Aim::kKey, 0, last.prefix_bytes);
}

void ArtWay::Leave(bool forward) {
  while (!stack_.empty()) {
    // There may be another node by now between that of a copy and the one that it led to.
    if (distrusts_ && !stack_.back().is_fresh) return ReadParent();
    const Level level = stack_.back();
    stack_.pop_back();
    const int byte = ByteOf(level.entry);
    if (forward ? byte == kMostByte : byte == 0) continue;
    return GoTo(level.node, forward ? Aim::kFrom : Aim::kUpTo, forward ? byte + 1 : byte - 1, level.prefix_bytes);
  }
  step_ = Step::kNone;
}

void ArtWay::Mismatch(bool is_fresh) {
  if (!is_fresh) {
    must_read_ = true;
    return;
  }
  if (stack_.empty()) {
    step_ = Step::kNone;
    return;
  }
  const Level parent = stack_.back();
  if (parent.is_fresh) {
    misled_ = {parent.node, parent.entry};
    return Leave(parent.aim == Aim::kFrom);
  }
  ReadParent();
}

void ArtWay::ReadParent() {
  const Level parent = stack_.back();
  stack_.pop_back();
  GoTo(parent.node, parent.aim, parent.limit, -1);
  must_read_ = true;
}

}  // namespace gannet::index::dolphin
