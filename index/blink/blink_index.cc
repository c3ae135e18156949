#include "index/blink/blink_index.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/backoff.h"
#include "index/remote/leaf_repair.h"
#include "index/remote/leaf_scan.h"

namespace gannet::index::blink {

using remote::FreeBlock;
using remote::LeafDraft;
using remote::LeafLook;
using remote::Posting;

StatusOr<std::unique_ptr<BlinkIndex>> BlinkIndex::Create(IndexService* service, const BlinkOptions& options) {
  std::unique_ptr<BlinkIndex> index(new BlinkIndex(service, options));
  rdma::SlabCache slab(&service->slab());
  Context context{.slab = &slab, .epoch = nullptr};
  const StatusOr<FreeBlock> block = index->blocks_.Take(context);
  if (!block.ok()) return block.status();
  index->root_ = block->address;
  LeafDraft root(block->address, block->word, 0, OwnerBits(service->node().id(), 0));
  root.set_low(0);
  root.set_high(UINT64_MAX);
  Posting posting;
  root.AppendNew(&posting);
  // Nobody knows the block yet.
  LeafImage image = root.image();
  image.head.state = root.unlocked();
  remote::StoreLeaf(image, service->node().memory().data() + block->address.offset());
  return index;
}

BlinkIndex::BlinkIndex(IndexService* service, const BlinkOptions& options)
    : service_(service),
      blocks_(&service->node()),
      patience_nanos_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience))),
      hands_(service, &blocks_, options.patience, this) {}

BlinkIndex::~BlinkIndex() {
  rdma::SlabCache slab(&service_->slab());
  blocks_.Close(slab);
}

LeafLook BlinkIndex::Read(rdma::GlobalAddress address, LeafImage* image) const {
  if (!blocks_.MayHave(address)) return LeafLook::kDead;
  Patience patience(patience_nanos_);
  do {
    const LeafLook look = remote::ReadOwnLeaf(service_->node().memory().data() + address.offset(), image);
    if (look == LeafLook::kWhole || look == LeafLook::kDead) return look;
  } while (patience.Pause());
  return LeafLook::kDead;
}

Status BlinkIndex::Locate(uint64_t key, uint8_t level, Place* place) const {
  Patience patience(patience_nanos_);
  do {
    Descent descent(root_, key, level);
    while (descent.step() == Descent::Step::kRead) {
      place->address = descent.next();
      const LeafLook look = Read(place->address, &place->image);
      descent.Take(look, place->image);
    }
    if (descent.step() == Descent::Step::kFound) return absl::OkStatus();
  } while (patience.Pause());
  return absl::DataLossError(absl::StrCat("the B-link tree at ", root_.ToString(), " has no way to the key ", key,
                                          ": a client has damaged it"));
}

FindResult BlinkIndex::Find(const Key& key) {
  Place place;
  // Find has no errors. A damaged tree has lost the key.
  if (!Locate(key.integer(), 0, &place).ok()) return {.record = {}, .witness = {root_, kAbsentBit}};
  const int slot = FindSlot(place.image, key.integer());
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = rdma::GlobalAddress::FromBits(place.image.entry<IntegerEntry>(slot).target)};
}

void BlinkIndex::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
}

StatusOr<Change> BlinkIndex::Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                    rdma::GlobalAddress* existing) {
  Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Insert(key.integer(), record, existing));
}

StatusOr<Change> BlinkIndex::Remove(Context& context, const Key& key, rdma::GlobalAddress record) {
  Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Remove(key.integer(), record));
}

Status BlinkIndex::Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Hands::Lease hand(&hands_, nullptr);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Replace(key.integer(), from, to));
}

// To the right sibling, which begins at `low`. False: it does not any more.
bool BlinkIndex::GoRight(uint64_t low, Place* place) const {
  place->address = place->image.right();
  return Read(place->address, &place->image) == LeafLook::kWhole && place->image.head.low == low &&
         place->image.Covers(low) && place->image.level() == 0;
}

StatusOr<bool> BlinkIndex::ScanSome(uint64_t from, uint64_t to, bool reverse, size_t limit, size_t most_leaves,
                                    ScanResult* result, uint64_t* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Place place;
  *next = reverse ? to : from;
  for (size_t leaves = 0; leaves < most_leaves; ++leaves) {
    if (leaves == 0 || reverse || !GoRight(*next, &place)) {
      GANNET_RETURN_IF_ERROR(Locate(*next, 0, &place));
    }
    if (remote::TakeLeaf(place, from, to, reverse, end, result, next)) return false;
    if (result->entries.size() >= end) return true;
  }
  return true;
}

Status BlinkIndex::Scan(const ScanRange& range, ScanResult* result) {
  if (range.limit == 0 || range.to.integer() < range.from.integer()) return absl::OkStatus();
  uint64_t next = 0;
  return ScanSome(range.from.integer(), range.to.integer(), range.reverse, range.limit, SIZE_MAX, result, &next)
      .status();
}

Status BlinkIndex::ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                            ScanResult* result) {
  uint64_t from = range.from.integer();
  uint64_t to = range.to.integer();
  if (position->has_value()) {
    const uint64_t at = (*position)->words[0];
    (range.reverse ? to : from) = range.reverse ? std::min(to, at) : std::max(from, at);
  }
  position->reset();
  if (range.limit == 0 || to < from) return absl::OkStatus();
  uint64_t next = 0;
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next);
  if (!more.ok()) return more.status();
  if (*more) position->emplace().words[0] = next;
  return absl::OkStatus();
}

ScanPosition BlinkIndex::PositionBehind(const Key& key, bool reverse) const {
  ScanPosition position;
  position.words[0] = reverse ? key.integer() - 1 : key.integer() + 1;
  return position;
}

bool BlinkIndex::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr size_t kLeavesPerStep = 16;
  ScanResult result;
  uint64_t next = 0;
  const StatusOr<bool> more = ScanSome(position->next[0], UINT64_MAX, false, SIZE_MAX, kLeavesPerStep, &result, &next);
  for (const Entry& entry : result.entries) records->push_back(entry.record);
  position->next[0] = next;
  // A walk has no errors either; CheckStructure tells about a damaged tree.
  return more.value_or(false);
}

Status BlinkIndex::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  std::vector<IntegerEntry> level_entries;
  level_entries.reserve(entries.size());
  for (const LoadEntry& entry : entries) level_entries.push_back({entry.key.integer(), entry.record.bits()});
  const auto per_node = static_cast<size_t>(std::clamp(std::lround(fill * kSlots), 1L, long{kSlots}));
  uint8_t level = 0;
  // Each round makes the nodes of one level, from the right, and leaves their separators for the next.
  while (level_entries.size() > static_cast<size_t>(kRootSlots)) {
    const size_t each = level == 0 ? per_node : std::max<size_t>(per_node, 2);
    const size_t nodes = (level_entries.size() + each - 1) / each;
    std::vector<IntegerEntry> above(nodes);
    rdma::GlobalAddress right;
    uint64_t high = UINT64_MAX;
    for (size_t n = nodes; n-- > 0;) {
      const size_t first = n * each;
      const size_t end = std::min(first + each, level_entries.size());
      const StatusOr<FreeBlock> block = blocks_.Take(context);
      if (!block.ok()) return block.status();
      LeafDraft draft(block->address, block->word, level, OwnerBits(service_->node().id(), 0));
      const uint64_t low = n == 0 ? 0 : level_entries[first].key;
      draft.set_low(low);
      draft.set_high(high);
      draft.set_right(right);
      for (size_t i = first; i < end; ++i) draft.Add(level_entries[i]);
      Posting posting;
      draft.AppendNew(&posting);
      LeafImage image = draft.image();
      image.head.state = draft.unlocked();
      // Nobody knows the block yet: it is dead until its last word is stored.
      remote::StoreLeaf(image, service_->node().memory().data() + block->address.offset());
      above[n] = {low, block->address.bits()};
      right = block->address;
      high = low - 1;
    }
    level_entries = std::move(above);
    if (++level >= kMaxLevels) return absl::InternalError("a B-link tree of too many levels");
  }
  Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().FillRoot(level, level_entries));
}

Status BlinkIndex::ForEachLinked(const std::function<void(rdma::GlobalAddress, const LeafImage&)>& visit) const {
  Place place;
  place.address = root_;
  Read(root_, &place.image);
  // Nodes are added while it walks, but not so many.
  uint64_t most = 1000 + 4 * blocks_.bytes() / remote::kLeafBytes;
  for (uint8_t level = place.image.level();; --level) {
    uint64_t low = 0;
    for (;;) {
      // A right link may lead to a block that has become another node by now. Fences tell, and the way from the root.
      if (low == 0 || Read(place.address, &place.image) != LeafLook::kWhole || place.image.head.low != low ||
          !place.image.Covers(low) || place.image.level() != level) {
        GANNET_RETURN_IF_ERROR(Locate(low, level, &place));
      }
      if (most-- == 0) return absl::DataLossError(absl::StrCat("the B-link tree at ", root_.ToString(), " has no end"));
      visit(place.address, place.image);
      if (place.image.head.high == UINT64_MAX) break;
      low = place.image.head.high + 1;
      place.address = place.image.right();
    }
    if (level == 0) return absl::OkStatus();
  }
}

void BlinkIndex::RepairAfter(rdma::NodeId node) {
  absl::flat_hash_set<uint64_t> linked;
  const Status walked =
      ForEachLinked([&linked](rdma::GlobalAddress at, const LeafImage&) { linked.insert(at.offset()); });
  // What a damaged tree does not reach any more must not be thrown away.
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* leaf = service_->node().memory().data() + at.offset();
    const uint64_t state = LoadWord(leaf);
    if (IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node) {
      remote::RepairLeaf(leaf, is_linked(at));
    }
  });
  blocks_.Sweep(node, is_linked);
}

Statistics BlinkIndex::statistics() {
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes();
  const Status walked = ForEachLinked([&statistics](rdma::GlobalAddress, const LeafImage& image) {
    if (image.level() == 0) {
      ++statistics.nodes;
      statistics.keys += static_cast<uint64_t>(image.count<IntegerEntry>());
    }
    statistics.height = std::max(statistics.height, image.level() + 1);
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged tree: what the walk has met
  return statistics;
}

Status BlinkIndex::CheckStructure() {
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  absl::flat_hash_map<uint64_t, uint64_t> children;  // of the level above: target -> separator
  absl::flat_hash_map<uint64_t, uint64_t> next_children;
  int level = -1;
  uint64_t low = 0;
  const auto fail = [&status](rdma::GlobalAddress at, auto&&... what) {
    if (status.ok()) status = absl::InternalError(absl::StrCat("node ", at.ToString(), ": ", what...));
  };
  const Status walked = ForEachLinked([&](rdma::GlobalAddress at, const LeafImage& image) {
    linked.insert(at.offset());
    const uint64_t state = LoadWord(service_->node().memory().data() + at.offset());
    if (state != image.head.state) return fail(at, "is locked: state ", absl::Hex(state));
    if (image.level() != level) {
      if (!children.empty()) fail(at, children.size(), " separators of level ", level, " lead to no node there");
      if (level >= 0 && low != 0) fail(at, "the level above ends before the last key");
      children = std::move(next_children);
      next_children.clear();
      level = image.level();
      low = 0;
    }
    if (image.head.low != low) fail(at, "begins at ", image.head.low, ", not ", low);
    low = image.head.high + 1;
    if (image.right().is_null() != (image.head.high == UINT64_MAX)) fail(at, "the chain ends at ", image.head.high);
    if (const auto child = children.find(at.bits()); child != children.end()) {
      if (child->second != image.head.low) fail(at, "separator ", child->second, " for ", image.head.low);
      children.erase(child);
    }
    absl::flat_hash_set<uint64_t> keys;
    for (uint64_t used = image.used<IntegerEntry>(); used != 0; used &= used - 1) {
      const auto entry = image.entry<IntegerEntry>(std::countr_zero(used));
      if (!image.Covers(entry.key)) fail(at, "has the key ", entry.key, ", which it does not cover");
      if (!keys.insert(entry.key).second) fail(at, "has the key ", entry.key, " twice");
      if (level > 0) next_children[entry.target] = entry.key;
    }
    if (level > 0 && !keys.contains(image.head.low)) fail(at, "has no first child");
  });
  GANNET_RETURN_IF_ERROR(walked);
  if (status.ok() && !children.empty()) status = absl::InternalError("separators lead to no leaf");
  if (!status.ok()) return status;
  if (low != 0) return absl::InternalError("the leaves end before the last key");
  return blocks_.Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
}

}  // namespace gannet::index::blink
