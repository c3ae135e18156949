#include "index/blink/blink_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/remote/schema_wire.h"

namespace gannet::index::blink {

using remote::FreeBlock;
using remote::LeafLook;

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
      leaves_(&service->node(), &blocks_, &schema_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.patience)),
              this, "B-link tree"),
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
Status BasicBlinkIndex<Keys>::LocateAt(uint8_t level, const Point& point, Place* place) const {
  if (level == 0 && LocateByHints(point, place)) return absl::OkStatus();
  Patience patience(leaves_.patience_nanos());
  do {
    Descent<Keys> descent(root_, point, level);
    while (descent.step() == Step::kRead) {
      Place* const node = &descent.node();
      node->address = descent.next();
      const LeafLook look = leaves_.Read(node->address, &node->image, &patience);
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
StatusOr<rdma::GlobalAddress> BasicBlinkIndex<Keys>::MakeNode(Context& context, uint8_t level,
                                                              std::span<const Entry> entries, const Key& low,
                                                              const std::optional<Key>& next_low,
                                                              rdma::GlobalAddress right) {
  const StatusOr<FreeBlock> block = blocks_.Take(context);
  if (!block.ok()) return block.status();
  leaves_.Store(*block, level, entries, low, next_low, right);
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
Status BasicBlinkIndex<Keys>::ForEachLinked(const typename Leaves::Visit& visit) const {
  Place place;
  place.address = root_;
  leaves_.Read(root_, &place.image);
  uint64_t most = leaves_.Most();
  for (uint8_t level = place.image.level();; --level) {
    Key low = Keys::kLeast;
    for (bool first = true;; first = false) {
      // A right link may lead to a block that has become another node by now. Fences tell, and the way from the root.
      if (first || leaves_.Read(place.address, &place.image) != LeafLook::kWhole || Keys::LowOf(place.image) != low ||
          !Keys::CoversKey(place.image, low) || place.image.level() != level) {
        GANNET_RETURN_IF_ERROR(LocateAt(level, Keys::At(low), &place));
      }
      if (most-- == 0) return leaves_.EndlessError();
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
  leaves_.RepairAfter(node, [this](const typename Leaves::Visit& visit) { return ForEachLinked(visit); });
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
    if (!status.ok()) return;
    Place place = seen;
    const rdma::GlobalAddress at = place.address;
    const Image& image = place.image;
    linked.insert(at.offset());
    if (image.level() != level) {
      if (!children.empty()) fail(at, children.size(), " separators of level ", level, " lead to no node there");
      if (level >= 0 && low.has_value()) fail(at, "the level above ends before the last key");
      children = std::move(next_children);
      next_children.clear();
      level = image.level();
      low = Key(Keys::kLeast);
    }
    const Key begins = Keys::LowOf(image);
    if (const auto child = children.find(at.offset()); child != children.end()) {
      if (child->second != begins) fail(at, "separator ", Keys::ToString(child->second), " for another node");
      children.erase(child);
    }
    if (status.ok()) status = leaves_.Check(&place, &low);
    if (!status.ok() || level == 0) return;
    bool has_first = false;
    for (uint64_t used = image.template used<Entry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      const Key key = Keys::KeyAt(image, place.keys, slot);
      has_first = has_first || key == begins;
      next_children[Keys::TargetOf(image.template entry<Entry>(slot), root_.node()).offset()] = key;
    }
    if (!has_first) fail(at, "has no first child");
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
