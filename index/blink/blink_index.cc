#include "index/blink/blink_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/shared_leaf/leaf/schema_wire.h"

namespace gannet::index::blink {

using shared_leaf::FreeBlock;
using shared_leaf::LeafLook;

template <class Keys>
StatusOr<std::unique_ptr<BasicBlinkIndex<Keys>>> BasicBlinkIndex<Keys>::Create(IndexService* service,
                                                                               const Schema& schema,
                                                                               const BlinkOptions& options) {
  std::unique_ptr<BasicBlinkIndex> index(new BasicBlinkIndex(service, schema, options));
  rdma::SlabCache slab(&service->slab());
  Context context{.slab = &slab, .epoch = nullptr};
  const StatusOr<shared_leaf::FreeBlock> root = index->blocks_.Take(context);
  if (!root.ok()) return root.status();
  index->leaves_.Store(*root, 0, {}, Keys::kLeast, std::nullopt, {});
  index->root_ = root->address;
  return index;
}

template <class Keys>
BasicBlinkIndex<Keys>::BasicBlinkIndex(IndexService* service, const Schema& schema, const BlinkOptions& options)
    : service_(service),
      schema_(schema),
      blocks_(&service->fabric(), &service->node(), schema.fence_lines(), options.rights),
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
  shared_leaf::PutSchema<Keys>(schema_, writer);
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
    const LeafLook look = blocks_.Look(offset, &leaf->image);
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
        shared_leaf::LoadAllKeys<Keys>(blocks_, schema_, node);
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

// The root stays where it is, and is written last, by Finish. The blocks of the parts' first leaves are taken at the
// beginning: then each part can link its last leaf. The levels above the leaves are made by Finish.
template <class Keys>
class BasicBlinkIndex<Keys>::Load final : public PartedLoad {
 public:
  Load(BasicBlinkIndex* index, LoadRuns entries, double fill, size_t most_parts)
      : index_(index), entries_(std::move(entries)), shape_(entries_, fill, Keys::kSlots, most_parts) {
    if (in_root()) return;
    blocks_.resize(shape_.leaves());
    leaves_.resize(shape_.leaves());
  }
  ~Load() override {
    if (finished_) return;
    for (const FreeBlock& block : blocks_) {
      if (!block.address.is_null()) index_->blocks_.Discard(block);
    }
  }

  Status Begin(Context& context) {
    for (size_t part = 0; part < parts() && !in_root(); ++part) {
      GANNET_RETURN_IF_ERROR(Take(context, &blocks_[shape_.FirstLeaf(part)]));
    }
    return absl::OkStatus();
  }

  size_t parts() const override { return shape_.parts(); }

  Status Build(Context& context, size_t part) override {
    const size_t first = shape_.FirstLeaf(part);
    const size_t end = shape_.EndLeaf(part);
    GANNET_RETURN_IF_ERROR(shape_.CheckOrder(entries_, part));
    LoadRuns::Reader entries(entries_);
    for (size_t i = shape_.Begin(first); i < shape_.End(end - 1); ++i) {
      GANNET_RETURN_IF_ERROR(Keys::CheckLength(index_->schema_, entries[i].key));
    }
    if (in_root()) return absl::OkStatus();
    for (size_t n = first + 1; n < end; ++n) GANNET_RETURN_IF_ERROR(Take(context, &blocks_[n]));
    const auto keyed = [&](size_t i) { return KeyedOf(entries[i]); };
    for (size_t n = first; n < end; ++n) {
      const rdma::GlobalAddress right = n + 1 < blocks_.size() ? blocks_[n + 1].address : rdma::GlobalAddress();
      leaves_[n] = Store(blocks_[n], 0, shape_.Begin(n), shape_.End(n), entries_.size(), right, keyed);
    }
    return absl::OkStatus();
  }

  Status Finish(Context& context) override {
    std::vector<Keyed> children = std::move(leaves_);
    uint8_t level = in_root() ? 0 : 1;
    if (in_root()) {
      LoadRuns::Reader entries(entries_);
      for (size_t i = 0; i < entries_.size(); ++i) children.push_back(KeyedOf(entries[i]));
    }
    for (; children.size() > static_cast<size_t>(kRootSlots<Keys>); ++level) {
      GANNET_RETURN_IF_ERROR(MakeLevel(context, level, &children));
      if (level + 1 >= kMaxLevels) return absl::InternalError("a B-link tree of too many levels");
    }
    typename Hands::Lease hand(&index_->hands_, &context);
    GANNET_RETURN_IF_ERROR(hand.status());
    GANNET_RETURN_IF_ERROR(hand.Run(hand.editor().FillRoot(level, children)));
    finished_ = true;
    return absl::OkStatus();
  }

 private:
  using FreeBlock = shared_leaf::FreeBlock;
  using Keyed = typename Keys::Keyed;

  bool in_root() const { return entries_.size() <= static_cast<size_t>(kRootSlots<Keys>); }
  Keyed KeyedOf(const LoadEntry& entry) const {
    return Keys::RecordEntry(index_->schema_, Keys::KeyFrom(entry.key), entry.record);
  }
  Status Take(Context& context, FreeBlock* block) {
    const StatusOr<FreeBlock> taken = index_->blocks_.Take(context);
    if (!taken.ok()) return taken.status();
    *block = *taken;
    return absl::OkStatus();
  }

  // Makes an unlocked node of the entries [begin, end), of `size`, of a level. Returns its entry in the level above.
  template <class KeyedAt>
  Keyed Store(const FreeBlock& block, uint8_t level, size_t begin, size_t end, size_t size, rdma::GlobalAddress right,
              const KeyedAt& keyed) {
    const auto border = [&](size_t i) {
      return Keys::Border(Keys::KeyOf(keyed(i - 1)), Keys::KeyOf(keyed(i)), level, false);
    };
    const Key low = begin == 0 ? Key(Keys::kLeast) : border(begin);
    std::optional<Key> next_low;
    if (end < size) next_low = border(end);
    std::array<Entry, static_cast<size_t>(Keys::kSlots)> own;
    for (size_t i = begin; i < end; ++i) own[i - begin] = Keys::EntryOf(keyed(i));
    index_->leaves_.Store(block, level, std::span(own).first(end - begin), low, next_low, right);
    return Keys::ChildEntry(low, block.address);
  }

  // Makes the nodes of a level, from the right, and leaves their separators for the next.
  Status MakeLevel(Context& context, uint8_t level, std::vector<Keyed>* children) {
    const size_t each = std::max<size_t>(shape_.End(0), 2);
    const size_t nodes = (children->size() + each - 1) / each;
    const auto keyed = [&](size_t i) { return (*children)[i]; };
    std::vector<Keyed> above(nodes);
    rdma::GlobalAddress right;
    for (size_t n = nodes; n-- > 0;) {
      FreeBlock& block = blocks_.emplace_back();
      GANNET_RETURN_IF_ERROR(Take(context, &block));
      const size_t end = std::min((n + 1) * each, children->size());
      above[n] = Store(block, level, n * each, end, children->size(), right, keyed);
      right = block.address;
    }
    *children = std::move(above);
    return absl::OkStatus();
  }

  BasicBlinkIndex* index_;
  const LoadRuns entries_;
  const LoadShape shape_;
  std::vector<FreeBlock> blocks_;  // first those of the leaves, which are written by the threads of their parts only
  std::vector<Keyed> leaves_;      // the same: their entries in the level above
  bool finished_ = false;
};

template <class Keys>
StatusOr<std::unique_ptr<PartedLoad>> BasicBlinkIndex<Keys>::BeginLoad(Context& context, LoadRuns entries, double fill,
                                                                       size_t most_parts) {
  GANNET_RETURN_IF_ERROR(CheckFill(fill));
  Place root;
  if (leaves_.Read(root_, &root.image) != LeafLook::kWhole || root.image.level() != 0 ||
      root.image.template count<Entry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  auto load = std::make_unique<Load>(this, std::move(entries), fill, most_parts);
  GANNET_RETURN_IF_ERROR(load->Begin(context));
  return load;
}

template <class Keys>
Status BasicBlinkIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  const StatusOr<std::unique_ptr<PartedLoad>> load = BeginLoad(context, LoadRuns(entries), fill, 1);
  return load.ok() ? (*load)->Run(context) : load.status();
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
