#include "index/dolphin/client_way.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/shared_leaf/leaf/byte_keys.h"

namespace gannet::index::dolphin {
template <class Keys>
ClientWay<Keys>::ClientWay(SharedInner* cache, shared_leaf::LeafChannel* leaves, rdma::Node* node, IndexId id,
                           absl::Duration timeout, rdma::GlobalAddress root, rdma::GlobalAddress first,
                           size_t max_key_bytes, IndexRights rights)
    : leaves_(leaves),
      root_(root),
      first_(first),
      mends_(rights == IndexRights::kClients),
      prefix_lines_(PrefixLinesFor(max_key_bytes)),
      view_(cache),
      editor_(
          leaves, root, max_key_bytes,
          [&] {
            ArtEditor::BlockSources sources;
            for (size_t i = 0; i < kNodeTypes; ++i) {
              sources[i] = &blocks_[i].emplace(leaves->channel(), node, leaves->owner(), id, timeout,
                                               &cache->blocks(i + 1), i + 1);
            }
            return sources;
          }(),
          this) {}

template <class Keys>
rdma::GlobalAddress ClientWay<Keys>::ExpectAt(const Point& point) {
  ArtWay way(root_, Keys::ArtKey(point).view(), Keys::IsBelow(point));
  return Reading(view_)->Go(&way) && way.step() == ArtWay::Step::kFound ? way.leaf() : rdma::GlobalAddress();
}

template <class Keys>
double ClientWay<Keys>::LeavesFrom(const Point& point, const Key& last, bool reverse, size_t most,
                                   std::vector<rdma::GlobalAddress>* leaves) {
  const ByteKey first = Keys::ArtKey(point);
  std::vector<ArtCache::Leaf> known;
  Reading(view_)->LeavesFrom(root_, first.view(), Keys::IsBelow(point), reverse, std::max<size_t>(most, 2), &known);
  double skipped = 0;
  if (!reverse && known.size() > 1) {
    skipped = shared_leaf::ByteKeys::ShareBefore(known[0].low, {first}, known[1].low);
  }
  if (known.size() > most) known.resize(most);
  const ByteKey end = Keys::ArtKey(last);
  leaves->clear();
  for (const ArtCache::Leaf& leaf : known) {
    if (!reverse && !leaves->empty() && leaf.low > end) break;
    leaves->push_back(leaf.address);
    if (reverse && leaf.low <= end) break;
  }
  return skipped;
}

template <class Keys>
std::optional<NodeRef> ClientWay<Keys>::StartFor(const ByteKey& key) {
  return Reading(view_)->DeepestFor(root_, key.view());
}

template <class Keys>
coro::Task<Status> ClientWay<Keys>::Go(ArtWay* way, bool by_copies) {
  NodeImage image;
  while (way->step() == ArtWay::Step::kRead) {
    if (by_copies && !way->must_read()) {
      if (Reading(view_)->Go(way)) break;
    }
    const NodeRef next = way->next();
    const StatusOr<LeafLook> look = co_await editor_.Read(next, &image);
    if (!look.ok()) co_return look.status();
    if (*look == LeafLook::kWhole) {
      NoteNode(image);
      way->Take(image, /*is_fresh=*/true);
    } else {
      NoteDead(next.address);
      way->Miss();
    }
  }
  const std::optional<ArtWay::Misled> misled = way->misled();
  if (misled.has_value() && mends_) co_await editor_.RemoveEntry(misled->node, misled->entry);
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<Status> ClientWay<Keys>::LocateFor(For use, Point point, LeafCopy* leaf) {
  using Step = typename LeafSearch<Keys>::Step;
  LeafSearch<Keys> search(root_, first_, point, /*has_copies=*/true);
  Patience patience(leaves_->patience_nanos());
  ReversePointers reverse{};  // of the last two leaves
  for (;;) {
    if (search.step() == Step::kWay) {
      const std::optional<ArtWay::Misled> wrong = search.TakeWrong();
      if (wrong.has_value() && mends_) co_await editor_.RemoveEntry(wrong->node, wrong->entry);
      const Status gone = co_await Go(&search.way(), search.by_copies());
      GANNET_CO_RETURN_IF_ERROR(gone);
      search.TakeWay();
    } else if (search.step() == Step::kLeaf) {
      leaf->address = search.leaf();
      Keys::ForgetKeys(&leaf->keys);
      reverse = {reverse.back(), 0};
      const StatusOr<LeafLook> look = co_await Read(use, leaf, &reverse.back());
      if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
      search.TakeLeaf(look.value_or(LeafLook::kDead), leaf->image);
    } else if (search.step() == Step::kFound) {
      // If others know the way, this brings it into the cache.
      if (search.was_detour()) co_await NoteDetour(Keys::LowOf(leaf->image), leaf->address, reverse);
      co_return absl::OkStatus();
    } else if (patience.Pause()) {
      search.Again();
    } else {
      co_return absl::DataLossError(
          absl::StrCat("there is no way to a key of an index of node ", leaves_->owner(), ": a client has damaged it"));
    }
  }
}

template <class Keys>
coro::Task<StatusOr<LeafLook>> ClientWay<Keys>::Read(For use, LeafCopy* leaf, uint64_t* reverse) {
  if constexpr (Keys::kKeysElsewhere) {
    typename Keys::Leaf raw;
    const StatusOr<LeafLook> look = co_await lock_->Read(leaf->address, use, &raw);
    if (look.ok() && *look == LeafLook::kWhole) {
      leaf->image = Keys::View(raw);
      *reverse = raw.lock.reverse;
    }
    co_return look;
  } else {
    const StatusOr<LeafLook> look = co_await lock_->Read(leaf->address, use, &leaf->image);
    *reverse = leaf->image.lock.reverse;
    co_return look;
  }
}

template <class Keys>
std::optional<EntryHint> ClientWay<Keys>::HintOf(const Key& border, rdma::GlobalAddress right) {
  const ByteKey low = Keys::ArtKey(border);
  const std::optional<ArtCache::FreeEntry> free = Reading(view_)->FreeEntryFor(root_, low.view());
  if (!mends_ || !free.has_value()) return std::nullopt;
  return EntryHint(free->node, prefix_lines_, free->state, free->slot, LeafEntry(right, low.view(), free->prefix_bytes),
                   right);
}

template <class Keys>
bool ClientWay<Keys>::NoteHint(EntryHint* hint) {
  if (!hint->IsThere()) return false;
  NoteEntry(hint->node(), hint->entry());
  return true;
}

template <class Keys>
coro::Task<void> ClientWay<Keys>::NoteSplit(Key border, rdma::GlobalAddress right) {
  const ByteKey low = Keys::ArtKey(border);
  if (mends_) {
    co_await editor_.AddLeaf(low, right, StartFor(low));
    co_return;
  }
  ArtWay way(root_, low.view());
  const Status gone = co_await Go(&way, /*by_copies=*/false);
  gone.IgnoreError();  // it is a hint
}

// The client that split the left leaf added an entry to the node that had led to it, or one or two new nodes below that
// node. The reverse pointers of the two leaves name the new nodes (III-A1). So one posting brings all of them into the
// cache.
template <class Keys>
coro::Task<void> ClientWay<Keys>::NoteDetour(Key border, rdma::GlobalAddress right, ReversePointers reverse) {
  const std::optional<NodeRef> known = StartFor(Keys::ArtKey(border));
  std::array<NodeRef, ArtEditor::kMostNodes> nodes = {known.value_or(NodeRef())};
  size_t n = known.has_value() ? 1 : 0;
  for (const uint64_t pointer : reverse) {
    const NodeRef named = NodeOfReversePointer(pointer);
    const auto end = nodes.begin() + static_cast<ptrdiff_t>(n);
    if (!named.address.is_null() && std::find(nodes.begin(), end, named) == end) nodes[n++] = named;
  }
  co_await editor_.ReadOnce(std::span(nodes).first(n));
  if (ExpectAt(Keys::At(border)) == right) {
    Sometimes<"leaf: reverse pointers name what leads to a new leaf">();
    co_return;
  }
  co_await NoteSplit(border, right);
}

template <class Keys>
coro::Task<void> ClientWay<Keys>::NoteAbsorbed(Key low, rdma::GlobalAddress leaf) {
  const ByteKey bytes = Keys::ArtKey(low);
  co_await editor_.RemoveLeaf(bytes, leaf, StartFor(bytes));
}

template class ClientWay<IntegerKeys>;
template class ClientWay<ByteKeys>;

}  // namespace gannet::index::dolphin
