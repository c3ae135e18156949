#include "index/blink/blink_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/remote/leaf_repair.h"
#include "index/remote/leaf_scan.h"
#include "index/remote/schema_wire.h"

namespace gannet::index::blink {

using remote::FreeBlock;
using remote::LeafLook;
using remote::Posting;

template <class Keys>
StatusOr<std::unique_ptr<BasicBlinkIndex<Keys>>> BasicBlinkIndex<Keys>::Create(IndexService* service,
                                                                               const Schema& schema,
                                                                               const BlinkOptions& options) {
  std::unique_ptr<BasicBlinkIndex> index(new BasicBlinkIndex(service, schema, options));
  rdma::SlabCache slab(&service->slab());
  Context context{.slab = &slab, .epoch = nullptr};
  const StatusOr<rdma::GlobalAddress> root = index->MakeNode(context, 0, {}, Keys::kLeast, std::nullopt, {});
  if (!root.ok()) return root.status();
  index->root_ = *root;
  return index;
}

template <class Keys>
BasicBlinkIndex<Keys>::BasicBlinkIndex(IndexService* service, const Schema& schema, const BlinkOptions& options)
    : service_(service),
      schema_(schema),
      blocks_(&service->node(), schema.fence_lines(), options.rights),
      patience_nanos_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience))),
      separators_(Keys::kKeysElsewhere ? std::make_unique<SeparatorTable>() : nullptr),
      hands_(service, &blocks_, options.patience, this) {}

template <class Keys>
BasicBlinkIndex<Keys>::~BasicBlinkIndex() {
  rdma::SlabCache slab(&service_->slab());
  blocks_.Close(slab);
}

template <class Keys>
void BasicBlinkIndex<Keys>::Describe(rdma::WireWriter& writer) const {
  writer.PutU64(root_.offset());
  remote::PutSchema<Keys>(schema_, writer);
}

template <class Keys>
LeafLook BasicBlinkIndex<Keys>::Read(rdma::GlobalAddress address, Image* image, Patience* patience) const {
  if (!blocks_.MayHave(address)) return LeafLook::kDead;
  do {
    const LeafLook look = remote::ReadOwnLeaf(blocks_.Memory(address.offset()), image, blocks_.fence_lines());
    if (look == LeafLook::kWhole || look == LeafLook::kDead) return look;
  } while (patience->Pause());
  return LeafLook::kDead;
}

template <class Keys>
bool BasicBlinkIndex<Keys>::LocateByHints(const Point& point, Place* leaf) const {
  if constexpr (Keys::kKeysElsewhere) {
    const SeparatorTable::Words words(point);
    uint64_t offset = root_.offset();
    uint8_t level = kMaxLevels;
    while (level > 1) {
      uint8_t of_node = 0;
      offset = separators_->ChildOf(offset, LoadWord(blocks_.Memory(offset)), words, &of_node);
      if (of_node >= level || !blocks_.MayHave({root_.node(), offset})) return false;
      level = of_node;
    }
    leaf->address = {root_.node(), offset};
    const LeafLook look = remote::ReadOwnLeaf(blocks_.Memory(offset), &leaf->image, blocks_.fence_lines());
    return look == LeafLook::kWhole && leaf->image.level() == 0 && Keys::Covers(leaf->image, point);
  }
  return false;
}

template <class Keys>
Status BasicBlinkIndex<Keys>::Locate(const Point& point, uint8_t level, Place* place) const {
  if (level == 0 && LocateByHints(point, place)) return absl::OkStatus();
  Patience patience(patience_nanos_);
  do {
    Descent<Keys> descent(root_, point, level);
    while (descent.step() == Step::kRead) {
      Place* const node = &descent.node();
      node->address = descent.next();
      const LeafLook look = Read(node->address, &node->image, &patience);
      if (look == LeafLook::kWhole && node->image.level() > level) {
        remote::LoadAllKeys<Keys>(blocks_, schema_, node);
        if constexpr (Keys::kKeysElsewhere) separators_->Put(*node);
      }
      descent.Take(look);
    }
    if (descent.step() == Step::kFound) {
      place->address = descent.node().address;
      place->image = descent.node().image;
      Keys::ForgetKeys(&place->keys);
      return absl::OkStatus();
    }
  } while (patience.Pause());
  return absl::DataLossError(
      absl::StrCat("the B-link tree at ", root_.ToString(), " has no way to a key: a client has damaged it"));
}

template <class Keys>
FindResult BasicBlinkIndex<Keys>::Find(const index::Key& wanted) {
  const Key key = Keys::KeyFrom(wanted);
  Place place;
  if (!Locate(Keys::At(key), 0, &place).ok()) return {};  // lost
  const int slot = remote::FindOwnKey<Keys>(blocks_, schema_, key, place);
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = Keys::TargetOf(place.image.template entry<Entry>(slot), root_.node())};
}

template <class Keys>
void BasicBlinkIndex<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
}

template <class Keys>
StatusOr<Change> BasicBlinkIndex<Keys>::Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                                               rdma::GlobalAddress* existing) {
  GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, key));
  typename Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Insert(Keys::KeyFrom(key), record, existing));
}

template <class Keys>
StatusOr<Change> BasicBlinkIndex<Keys>::Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) {
  typename Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Remove(Keys::KeyFrom(key), record));
}

template <class Keys>
Status BasicBlinkIndex<Keys>::Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  typename Hands::Lease hand(&hands_, nullptr);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().Replace(Keys::KeyFrom(key), from, to));
}

template <class Keys>
bool BasicBlinkIndex<Keys>::GoRight(Place* place) const {
  const Key low = Keys::NextLow(place->image);
  place->address = place->image.right();
  return Read(place->address, &place->image) == LeafLook::kWhole && Keys::LowOf(place->image) == low &&
         Keys::CoversKey(place->image, low) && place->image.level() == 0;
}

template <class Keys>
StatusOr<bool> BasicBlinkIndex<Keys>::ScanSome(const Key& from, const Key& to, bool reverse, size_t limit,
                                               size_t most_leaves, ScanResult* result, Cut* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Place place;
  for (size_t leaves = 0; leaves < most_leaves; ++leaves) {
    if (leaves == 0 || reverse || !GoRight(&place)) {
      GANNET_RETURN_IF_ERROR(Locate(Keys::PointOf(*next, reverse), 0, &place));
    }
    remote::LoadAllKeys<Keys>(blocks_, schema_, &place);
    if (remote::TakeLeaf(place, from, to, reverse, end, result, next)) return false;
    if (result->entries.size() >= end) return true;
  }
  return true;
}

template <class Keys>
Status BasicBlinkIndex<Keys>::Scan(const ScanRange& range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  return ScanSome(from, to, range.reverse, range.limit, SIZE_MAX, result, &next).status();
}

template <class Keys>
Status BasicBlinkIndex<Keys>::ScanStep(const ScanRange& range, size_t most_witnesses,
                                       std::optional<ScanPosition>* position, ScanResult* result) {
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  if (position->has_value()) {
    const Cut at = Keys::CutFrom((*position)->words);
    next = range.reverse ? std::min(next, at) : std::max(next, at);
  }
  position->reset();
  if (range.limit == 0 || to < from || Keys::IsPast(next, from, to, range.reverse)) return absl::OkStatus();
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next);
  if (!more.ok()) return more.status();
  if (*more) Keys::PutCut(next, &position->emplace().words);
  return absl::OkStatus();
}

template <class Keys>
ScanPosition BasicBlinkIndex<Keys>::PositionBehind(const index::Key& key, bool reverse) const {
  ScanPosition position;
  Keys::PutCut(Keys::Behind(Keys::KeyFrom(key), reverse), &position.words);
  return position;
}

template <class Keys>
bool BasicBlinkIndex<Keys>::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr size_t kLeavesPerStep = 16;
  ScanResult result;
  Cut next = Keys::CutFrom(position->next);
  const StatusOr<bool> more = ScanSome(Keys::kLeast, Keys::Greatest(), false, SIZE_MAX, kLeavesPerStep, &result, &next);
  for (const index::Entry& entry : result.entries) records->push_back(entry.record);
  Keys::PutCut(next, &position->next);
  if (!more.ok()) records->push_back({});
  return more.value_or(false);
}

template <class Keys>
StatusOr<rdma::GlobalAddress> BasicBlinkIndex<Keys>::MakeNode(Context& context, uint8_t level,
                                                              std::span<const Entry> entries, const Key& low,
                                                              const std::optional<Key>& next_low,
                                                              rdma::GlobalAddress right) {
  const StatusOr<FreeBlock> block = blocks_.Take(context);
  if (!block.ok()) return block.status();
  typename Keys::Draft draft(block->address, block->word, level, OwnerBits(service_->node().id(), 0),
                             blocks_.fence_lines());
  Keys::SetLow(&draft, low);
  Keys::SetNextLow(&draft, next_low);
  draft.set_right(right);
  for (const Entry& entry : entries) draft.Add(entry);
  Posting posting;
  draft.AppendNew(&posting);
  Image image = draft.image();
  image.head.state = draft.unlocked();
  // Nobody knows the block yet: it is dead until its last word is stored.
  remote::StoreLeaf(image, service_->node().memory().data() + block->address.offset());
  return block->address;
}

template <class Keys>
Status BasicBlinkIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  for (const LoadEntry& entry : entries) GANNET_RETURN_IF_ERROR(Keys::CheckLength(schema_, entry.key));
  constexpr auto kSlots = static_cast<size_t>(Keys::kSlots);
  const auto per_node = static_cast<size_t>(std::clamp(std::lround(fill * Keys::kSlots), 1L, long{Keys::kSlots}));
  std::vector<typename Keys::Keyed> children;  // of the level that is made: the nodes of the level below
  uint8_t level = 0;
  const auto keyed = [&](size_t i) {
    if (level > 0) return children[i];
    return Keys::RecordEntry(schema_, Keys::KeyFrom(entries[i].key), entries[i].record);
  };
  size_t size = entries.size();
  // Each round makes the nodes of one level, from the right, and leaves their separators for the next.
  while (size > static_cast<size_t>(kRootSlots<Keys>)) {
    const size_t each = level == 0 ? per_node : std::max<size_t>(per_node, 2);
    const size_t nodes = (size + each - 1) / each;
    std::vector<typename Keys::Keyed> above(nodes);
    rdma::GlobalAddress right;
    std::optional<Key> next_low;
    for (size_t n = nodes; n-- > 0;) {
      const size_t first = n * each;
      const size_t end = std::min(first + each, size);
      const Key low = n == 0 ? Key(Keys::kLeast)
                             : Keys::Border(Keys::KeyOf(keyed(first - 1)), Keys::KeyOf(keyed(first)), level, false);
      std::array<Entry, kSlots> own;
      for (size_t i = first; i < end; ++i) own[i - first] = Keys::EntryOf(keyed(i));
      const StatusOr<rdma::GlobalAddress> node =
          MakeNode(context, level, std::span(own).first(end - first), low, next_low, right);
      if (!node.ok()) return node.status();
      above[n] = Keys::ChildEntry(low, *node);
      right = *node;
      next_low = low;
    }
    children = std::move(above);
    size = children.size();
    if (++level >= kMaxLevels) return absl::InternalError("a B-link tree of too many levels");
  }
  if (level == 0) {
    children.reserve(size);
    for (size_t i = 0; i < size; ++i) children.push_back(keyed(i));
  }
  typename Hands::Lease hand(&hands_, &context);
  GANNET_RETURN_IF_ERROR(hand.status());
  return hand.Run(hand.editor().FillRoot(level, children));
}

template <class Keys>
Status BasicBlinkIndex<Keys>::ForEachLinked(const std::function<void(const Place&)>& visit) const {
  Place place;
  place.address = root_;
  Read(root_, &place.image);
  // Nodes are added while it walks, but not so many.
  uint64_t most = 1000 + 4 * blocks_.bytes() / blocks_.leaf_bytes();
  for (uint8_t level = place.image.level();; --level) {
    Key low = Keys::kLeast;
    for (bool first = true;; first = false) {
      // A right link may lead to a block that has become another node by now. Fences tell, and the way from the root.
      if (first || Read(place.address, &place.image) != LeafLook::kWhole || Keys::LowOf(place.image) != low ||
          !Keys::CoversKey(place.image, low) || place.image.level() != level) {
        GANNET_RETURN_IF_ERROR(Locate(Keys::At(low), level, &place));
      }
      if (most-- == 0) return absl::DataLossError(absl::StrCat("the B-link tree at ", root_.ToString(), " has no end"));
      visit(place);
      if (Keys::IsLast(place.image)) break;
      low = Keys::NextLow(place.image);
      place.address = place.image.right();
    }
    if (level == 0) return absl::OkStatus();
  }
}

template <class Keys>
void BasicBlinkIndex<Keys>::RepairAfter(rdma::NodeId node) {
  if (blocks_.rights() == IndexRights::kOwnerOnly) return;  // the node could lock nothing, and has borrowed nothing
  absl::flat_hash_set<uint64_t> linked;
  const Status walked = ForEachLinked([&linked](const Place& place) { linked.insert(place.address.offset()); });
  // What a damaged tree does not reach any more must not be thrown away.
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  blocks_.ForEach([&](rdma::GlobalAddress at) {
    std::byte* leaf = service_->node().memory().data() + at.offset();
    const uint64_t state = LoadWord(leaf);
    if (IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node) {
      if constexpr (Keys::kKeysElsewhere) {
        remote::RepairTaggedLeaf(leaf, is_linked(at), blocks_.fence_lines());
      } else {
        remote::RepairLeaf(leaf, is_linked(at));
      }
    }
  });
  blocks_.Sweep(node, is_linked);
}

template <class Keys>
Statistics BasicBlinkIndex<Keys>::statistics() {
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes();
  if (separators_ != nullptr) statistics.private_bytes = separators_->bytes();
  const Status walked = ForEachLinked([&statistics](const Place& place) {
    const Image& image = place.image;
    if (image.level() == 0) {
      ++statistics.nodes;
      statistics.keys += static_cast<uint64_t>(image.template count<Entry>());
    }
    statistics.height = std::max(statistics.height, image.level() + 1);
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged tree: what the walk has met
  return statistics;
}

template <class Keys>
Status BasicBlinkIndex<Keys>::CheckStructure() {
  Status status;
  absl::flat_hash_set<uint64_t> linked;
  std::map<uint64_t, Key> children;  // of the level above: offset -> separator
  std::map<uint64_t, Key> next_children;
  int level = -1;
  std::optional<Key> low;  // of the node that follows
  const auto fail = [&status](rdma::GlobalAddress at, auto&&... what) {
    if (status.ok()) status = absl::InternalError(absl::StrCat("node ", at.ToString(), ": ", what...));
  };
  const Status walked = ForEachLinked([&](const Place& seen) {
    Place place = seen;
    const rdma::GlobalAddress at = place.address;
    const Image& image = place.image;
    linked.insert(at.offset());
    const uint64_t state = LoadWord(blocks_.Memory(at.offset()));
    if (state != image.head.state) return fail(at, "is locked: state ", absl::Hex(state));
    if (image.level() != level) {
      if (!children.empty()) fail(at, children.size(), " separators of level ", level, " lead to no node there");
      if (level >= 0 && low.has_value()) fail(at, "the level above ends before the last key");
      children = std::move(next_children);
      next_children.clear();
      level = image.level();
      low = Key(Keys::kLeast);
    }
    const Key begins = Keys::LowOf(image);
    if (!low.has_value() || begins != *low) fail(at, "begins at ", Keys::ToString(begins), ", not where it should");
    low = NextLowOf<Keys>(image);
    if (image.right().is_null() != !low.has_value()) fail(at, "the chain ends before the last key, or after it");
    if (const auto child = children.find(at.offset()); child != children.end()) {
      if (child->second != begins) fail(at, "separator ", Keys::ToString(child->second), " for another node");
      children.erase(child);
    }
    remote::LoadAllKeys<Keys>(blocks_, schema_, &place);
    std::set<Key> keys;
    for (uint64_t used = image.template used<Entry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      const rdma::GlobalAddress target = Keys::TargetOf(image.template entry<Entry>(slot), root_.node());
      if (!Keys::Knows(place.keys, slot)) {
        fail(at, "slot ", slot, " leads to ", target.ToString(), ", where there is no key that it covers");
        continue;
      }
      const Key key = Keys::KeyAt(image, place.keys, slot);
      if (!Keys::CoversKey(image, key)) fail(at, "has the key ", Keys::ToString(key), ", which it does not cover");
      if (!keys.insert(key).second) fail(at, "has the key ", Keys::ToString(key), " twice");
      if (level > 0) next_children[target.offset()] = key;
      if (level == 0)
        Keys::CheckEntry(schema_, key, image.template entry<Entry>(slot),
                         [&] { fail(at, "has another tag for the key ", Keys::ToString(key)); });
    }
    if (level > 0 && !keys.contains(begins)) fail(at, "has no first child");
  });
  GANNET_RETURN_IF_ERROR(walked);
  if (status.ok() && !children.empty()) status = absl::InternalError("separators lead to no leaf");
  if (!status.ok()) return status;
  if (low.has_value()) return absl::InternalError("the leaves end before the last key");
  return blocks_.Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
}

template class BasicBlinkIndex<IntegerKeys>;
template class BasicBlinkIndex<ByteKeys>;

}  // namespace gannet::index::blink
