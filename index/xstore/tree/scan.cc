// XTree: scans, leaf by leaf. Each leaf is copied at one moment, which its witness identifies. The fences guarantee
// that no part of the range is skipped: the next leaf must begin where the last one ended; otherwise the scan descends
// from the root.
#include <algorithm>

#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

template <int W>
template <class Content, class Take>
bool Tree<W>::WalkForward(const Words& from, const Words& to, size_t max_leaves, Words* next, const Take& take) const {
  SnapshotOf<Content> snapshot;
  Leaf<W> leaf = Look(from, from, to, &snapshot);
  while (true) {
    const Leaf<W> right = snapshot.meta.right == 0 ? Leaf<W>() : LeafAt(snapshot.meta.right);
    const bool last = to <= snapshot.high || right.is_null();
    if (!last) right.PrefetchAll();
    if (!take(leaf, snapshot) || last) return false;
    *next = snapshot.high.Next();
    if (--max_leaves == 0) return true;
    leaf = right;
    // The leaf is copied from *next on: the leaf may have absorbed others, also one whose keys were returned already.
    if (!TrySnapshot(leaf, *next, to, &snapshot) || *next < snapshot.low || snapshot.high < *next) {
      leaf = Look(*next, *next, to, &snapshot);
    }
  }
}

template <int W>
template <class Content, class Take>
bool Tree<W>::WalkReverse(const Words& from, const Words& to, size_t max_leaves, Words* next, const Take& take) const {
  SnapshotOf<Content> snapshot;
  Leaf<W> leaf = Look(to, from, to, &snapshot);
  while (true) {
    if (!take(leaf, snapshot) || snapshot.low <= from) return false;
    *next = snapshot.low.Previous();
    if (--max_leaves == 0) return true;
    leaf = Look(*next, from, *next, &snapshot);
  }
}

template <int W>
bool Tree<W>::ScanForward(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                          Words* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  return WalkForward<LeafPairs<W>>(from, to, max_leaves, next, [&](Leaf<W> leaf, Snapshot& snapshot) {
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    snapshot.pairs.Emit(kind_, false, end - result->entries.size(), result);
    return result->entries.size() < end;
  });
}

template <int W>
bool Tree<W>::ScanReverse(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                          Words* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  return WalkReverse<LeafPairs<W>>(from, to, max_leaves, next, [&](Leaf<W> leaf, Snapshot& snapshot) {
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    snapshot.pairs.Emit(kind_, true, end - result->entries.size(), result);
    return result->entries.size() < end;
  });
}

template <int W>
void Tree<W>::ScanRecords(const Words& from, const Words& to, bool reverse, size_t limit,
                          LocalIndex::TakeRecords take) const {
  size_t left = limit;
  const auto take_leaf = [&](Leaf<W> leaf, SnapshotOf<LeafRecords<W>>& snapshot) {
    const std::span<rdma::GlobalAddress> all = snapshot.pairs.all();
    if (reverse) std::ranges::reverse(all);
    const std::span<const rdma::GlobalAddress> some = all.first(std::min(all.size(), left));
    left -= some.size();
    return take(some, {AddressOf(leaf), snapshot.state}) && left > 0;
  };
  Words next;
  if (reverse) {
    WalkReverse<LeafRecords<W>>(from, to, SIZE_MAX, &next, take_leaf);
  } else {
    WalkForward<LeafRecords<W>>(from, to, SIZE_MAX, &next, take_leaf);
  }
}

template <int W>
bool Tree<W>::WalkRecords(const Words& from, size_t max_leaves, std::vector<rdma::GlobalAddress>* records,
                          Words* next) const {
  return WalkForward<LeafRecords<W>>(from, Words::Highest(), max_leaves, next,
                                     [&](Leaf<W>, SnapshotOf<LeafRecords<W>>& snapshot) {
                                       const std::span<rdma::GlobalAddress> all = snapshot.pairs.all();
                                       records->insert(records->end(), all.begin(), all.end());
                                       return true;
                                     });
}

#define GANNET_INSTANTIATE(W)                                                                                  \
  template bool Tree<W>::ScanForward(const Words&, const Words&, size_t, size_t, ScanResult*, Words*) const;   \
  template bool Tree<W>::ScanReverse(const Words&, const Words&, size_t, size_t, ScanResult*, Words*) const;   \
  template void Tree<W>::ScanRecords(const Words&, const Words&, bool, size_t, LocalIndex::TakeRecords) const; \
  template bool Tree<W>::WalkRecords(const Words&, size_t, std::vector<rdma::GlobalAddress>*, Words*) const;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
