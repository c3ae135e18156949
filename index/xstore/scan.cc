// XTree: scans, leaf by leaf. Each leaf is copied at one moment, which its witness identifies. The fences guarantee
// that no part of the range is skipped: the next leaf must begin where the last one ended; otherwise the scan descends
// from the root.
#include <algorithm>

#include "index/xstore/tree.h"

namespace gannet::index::xstore {
template <int W>
bool Tree<W>::ScanForward(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                          Words* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Snapshot snapshot;
  Leaf<W> leaf = Look(from, from, to, &snapshot);
  while (true) {
    const Leaf<W> right = snapshot.meta.right == 0 ? Leaf<W>() : LeafAt(snapshot.meta.right);
    const bool last = to <= snapshot.high || right.is_null();
    if (!last) right.PrefetchAll();
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    snapshot.pairs.Emit(kind_, false, end - result->entries.size(), result);
    if (last || result->entries.size() >= end) return false;
    *next = snapshot.high.Next();
    if (--max_leaves == 0) return true;
    leaf = right;
    // From *next on: the leaf may have absorbed others, also one whose keys were returned already.
    if (!TrySnapshot(leaf, *next, to, &snapshot) || *next < snapshot.low || snapshot.high < *next) {
      leaf = Look(*next, *next, to, &snapshot);
    }
  }
}

template <int W>
bool Tree<W>::ScanReverse(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                          Words* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Snapshot snapshot;
  Leaf<W> leaf = Look(to, from, to, &snapshot);
  while (true) {
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    snapshot.pairs.Emit(kind_, true, end - result->entries.size(), result);
    if (snapshot.low <= from || result->entries.size() >= end) return false;
    *next = snapshot.low.Previous();
    if (--max_leaves == 0) return true;
    leaf = Look(*next, from, *next, &snapshot);
  }
}

#define GANNET_INSTANTIATE(W)                                                                                \
  template bool Tree<W>::ScanForward(const Words&, const Words&, size_t, size_t, ScanResult*, Words*) const; \
  template bool Tree<W>::ScanReverse(const Words&, const Words&, size_t, size_t, ScanResult*, Words*) const;
GANNET_INSTANTIATE(1)
GANNET_INSTANTIATE(3)
GANNET_INSTANTIATE(5)
GANNET_INSTANTIATE(9)

}  // namespace gannet::index::xstore
