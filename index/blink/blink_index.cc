#include "index/blink/blink_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
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
  GANNET_RETURN_IF_ERROR(index->MakeFirst(context));
  return index;
}

template <class Keys>
void BasicBlinkIndex<Keys>::Describe(rdma::WireWriter& writer) const {
  writer.PutU64(first_.offset());
  shared_leaf::PutSchema<Keys>(schema_, writer);
}

namespace {

// The child to which an inner node of integer keys leads. The node is searched in the owner's memory, without a copy. A
// change of it begins with its lock, and ends with another state word. So what was read is right if the word is the
// same before and after, and not locked. kNotFound: it is not, or the node does not cover the key.
struct ChildInPlace {
  enum class Is : uint8_t { kNotFound, kArrived, kChild };
  Is is = Is::kNotFound;
  uint8_t level = 0;
  rdma::GlobalAddress child;
};
// kArrived: the node is not above `lowest`.
ChildInPlace FindChildInPlace(const std::byte* node, uint8_t lowest, uint64_t key) {
  using Head = shared_leaf::LeafHead;
  const uint64_t state = LoadWord(node);
  if (IsLocked(state) || IsAbsent(state)) return {};
  const uint64_t slots = LoadWord(node + offsetof(Head, slots));
  const uint8_t level = shared_leaf::LeafSlots::Unpack(slots).level;
  if (level <= lowest) return {.is = ChildInPlace::Is::kArrived, .level = level, .child = {}};
  if (key < LoadWord(node + offsetof(Head, low)) || key > LoadWord(node + offsetof(Head, high))) return {};
  const std::byte* best = nullptr;
  uint64_t greatest = 0;
  for (uint64_t used = slots & ((uint64_t{1} << IntegerEntry::kSlots) - 1); used != 0; used &= used - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(used));
    const std::byte* const entry = node + (1 + slot / IntegerEntry::kPerLine) * kLineBytes + kWordBytes +
                                   slot % IntegerEntry::kPerLine * sizeof(IntegerEntry);
    const uint64_t separator = LoadWord(entry);
    const bool is_better = separator <= key && separator >= greatest;
    greatest = is_better ? separator : greatest;
    best = is_better ? entry : best;
  }
  if (best == nullptr) return {};
  const auto child = rdma::GlobalAddress::FromBits(LoadWord(best + offsetof(IntegerEntry, target)));
  PreemptionPoint();
  if (LoadWord(node) != state) return {};
  return {.is = ChildInPlace::Is::kChild, .level = level, .child = child};
}

}  // namespace

template <class Keys>
bool BasicBlinkIndex<Keys>::LocateByHints(uint8_t level, const Point& point, LeafCopy* node) const {
  if constexpr (Keys::kKeysElsewhere) {
    if (level != 0) return false;
    const SeparatorTable::Words words(point);
    uint64_t offset = first_.offset();
    uint8_t above = kMaxLevels;
    while (above > 1) {
      uint8_t of_node = 0;
      offset = separators_->ChildOf(offset, LoadWord(blocks_.Memory(offset)), words, &of_node);
      if (of_node >= above || !blocks_.MayHave({first_.node(), offset})) return false;
      above = of_node;
    }
    node->address = {first_.node(), offset};
  } else {
    node->address = first_;
    uint8_t above = kMaxLevels;
    for (;;) {
      const ChildInPlace found = FindChildInPlace(blocks_.Memory(node->address.offset()), level, point);
      if (found.is == ChildInPlace::Is::kArrived) break;
      if (found.is != ChildInPlace::Is::kChild || found.level >= above || !blocks_.MayHave(found.child)) return false;
      node->address = found.child;
      above = found.level;
    }
  }
  const LeafLook look = blocks_.Look(node->address.offset(), &node->image);
  return look == LeafLook::kWhole && node->image.level() == level && Keys::Covers(node->image, point);
}

template <class Keys>
Status BasicBlinkIndex<Keys>::LocateAt(uint8_t level, const Point& point, LeafCopy* place) const {
  if (LocateByHints(level, point, place)) return absl::OkStatus();
  Patience patience(leaves_.patience_nanos());
  do {
    Descent<Keys> descent(first_, point, level);
    while (descent.step() == Step::kRead) {
      LeafCopy* const node = &descent.node();
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
      absl::StrCat("the B-link tree at ", first_.ToString(), " has no way to a key: a client has damaged it"));
}

// The root stays where it is, and is written last, by Finish, which also makes the levels between the leaves and it.
template <class Keys>
class BasicBlinkIndex<Keys>::Load final : public Base::Load {
 public:
  Load(BasicBlinkIndex* index, LoadRuns entries, double fill, size_t most_parts)
      : Base::Load(index, std::move(entries), fill, Keys::kSlots, most_parts), index_(index) {
    makes_leaves_ = entries_.size() > static_cast<size_t>(kRootSlots<Keys>);
  }

  Status Finish(Context& context) override {
    std::vector<IndexEntry> children;
    LoadRuns::Reader entries(entries_);
    const auto keyed = [&](size_t i) { return this->IndexEntryOf(entries[i]); };
    if (makes_leaves_) {
      for (size_t n = 0; n < shape_.leaves(); ++n) {
        children.push_back(Keys::ChildEntry(this->LowAt(0, shape_.Begin(n), keyed), blocks_[n].address));
      }
    } else {
      for (size_t i = 0; i < entries_.size(); ++i) children.push_back(keyed(i));
    }
    uint8_t level = makes_leaves_ ? 1 : 0;
    for (; children.size() > static_cast<size_t>(kRootSlots<Keys>); ++level) {
      GANNET_RETURN_IF_ERROR(MakeLevel(context, level, &children));
      if (level + 1 >= kMaxLevels) return absl::InternalError("a B-link tree of too many levels");
    }
    typename Base::Editors::Pooled editor(&index_->editors_, &context);
    GANNET_RETURN_IF_ERROR(editor.status());
    GANNET_RETURN_IF_ERROR(editor.Run(static_cast<Editor<Keys>&>(*editor).FillRoot(level, children)));
    finished_ = true;
    return absl::OkStatus();
  }

 private:
  using Base::Load::blocks_;
  using Base::Load::entries_;
  using Base::Load::finished_;
  using Base::Load::makes_leaves_;
  using Base::Load::shape_;

  // Makes the nodes of a level, from the right, and leaves their separators for the next.
  Status MakeLevel(Context& context, uint8_t level, std::vector<IndexEntry>* children) {
    const size_t each = std::max<size_t>(shape_.End(0), 2);
    const size_t nodes = (children->size() + each - 1) / each;
    const auto keyed = [&](size_t i) { return (*children)[i]; };
    std::vector<IndexEntry> above(nodes);
    rdma::GlobalAddress right;
    for (size_t n = nodes; n-- > 0;) {
      FreeBlock& block = blocks_.emplace_back();
      GANNET_RETURN_IF_ERROR(this->Take(context, &block));
      const size_t end = std::min((n + 1) * each, children->size());
      this->Store(block, level, n * each, end, children->size(), right, keyed);
      above[n] = Keys::ChildEntry(this->LowAt(level, n * each, keyed), block.address);
      right = block.address;
    }
    *children = std::move(above);
    return absl::OkStatus();
  }

  BasicBlinkIndex* const index_;
};

template <class Keys>
std::unique_ptr<typename BasicBlinkIndex<Keys>::Base::Load> BasicBlinkIndex<Keys>::NewLoad(LoadRuns entries,
                                                                                           double fill,
                                                                                           size_t most_parts) {
  return std::make_unique<Load>(this, std::move(entries), fill, most_parts);
}

template <class Keys>
Status BasicBlinkIndex<Keys>::ForEachNode(const Visit& visit) const {
  LeafCopy place;
  place.address = first_;
  // The walk begins at the root's level: a torn image of the root could leave levels out.
  if (leaves_.Read(first_, &place.image) != LeafLook::kWhole) {
    return absl::UnavailableError(
        absl::StrCat("the root of the B-link tree at ", first_.ToString(), " stays locked; try again"));
  }
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
Statistics BasicBlinkIndex<Keys>::statistics() {
  Statistics statistics = Base::statistics();
  if (separators_ != nullptr) statistics.private_bytes = separators_->bytes();
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
  const Status walked = ForEachNode([&](const LeafCopy& seen) {
    if (!status.ok()) return;
    LeafCopy place = seen;
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
      next_children[Keys::TargetOf(image.template entry<Entry>(slot), first_.node()).offset()] = key;
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
