// XTree: scans, leaf by leaf. Each leaf is copied at one moment; its witness says at which. The fences make sure that
// no part of the range is skipped: the next leaf must begin where the last one ended, or is looked for from the root.
#include <algorithm>

#include "index/xstore/tree.h"

namespace gannet::index::xstore {
namespace {

template <class Pair>
void SortPairs(Pair* pairs, int size) {
  for (int i = 1; i < size; ++i) {  // appended leaves are sorted already
    if (pairs[i - 1].key < pairs[i].key) continue;
    const Pair pair = pairs[i];
    int at = i;
    for (; at > 0 && pair.key < pairs[at - 1].key; --at) pairs[at] = pairs[at - 1];
    pairs[at] = pair;
  }
}

// Appends the snapshot's pairs in scan order, at most `room` of them.
template <int W>
void Emit(typename Tree<W>::Snapshot& snapshot, KeyKind kind, bool reverse, size_t room, ScanResult* result) {
  using Pair = typename Tree<W>::Snapshot::Pair;
  const auto emit = [&](const Pair& pair) {
    Entry& entry = result->entries.emplace_back();
    Decode<W>(pair.key, kind, &entry.key);
    entry.record = rdma::GlobalAddress::FromBits(pair.record);
  };
  if (snapshot.size == 0) return;
  Pair* const pairs = snapshot.pairs;
  if (room == 1) {
    const auto less = [](const Pair& a, const Pair& b) { return a.key < b.key; };
    emit(reverse ? *std::max_element(pairs, pairs + snapshot.size, less)
                 : *std::min_element(pairs, pairs + snapshot.size, less));
    return;
  }
  SortPairs(pairs, snapshot.size);
  const int n = static_cast<int>(std::min<size_t>(room, static_cast<size_t>(snapshot.size)));
  for (int i = 0; i < n; ++i) emit(pairs[reverse ? snapshot.size - 1 - i : i]);
}

}  // namespace

template <int W>
void Tree<W>::ScanForward(const Words& from, const Words& to, size_t limit, ScanResult* result) {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Snapshot snapshot;
  Leaf<W> leaf = Look(from, from, to, &snapshot);
  while (true) {
    const Leaf<W> right = snapshot.meta.right == 0 ? Leaf<W>() : LeafAt(snapshot.meta.right);
    const bool last = to <= snapshot.high || right.is_null();
    if (!last) right.PrefetchAll();
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    Emit<W>(snapshot, kind_, false, end - result->entries.size(), result);
    if (last || result->entries.size() >= end) return;
    const Words next = snapshot.high.Next();
    leaf = right;
    if (!TrySnapshot(leaf, from, to, &snapshot) || next < snapshot.low || snapshot.high < next) {
      leaf = Look(next, from, to, &snapshot);
    }
  }
}

template <int W>
void Tree<W>::ScanReverse(const Words& from, const Words& to, size_t limit, ScanResult* result) {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  Snapshot snapshot;
  Leaf<W> leaf = Look(to, from, to, &snapshot);
  while (true) {
    result->witnesses.push_back({AddressOf(leaf), snapshot.state});
    Emit<W>(snapshot, kind_, true, end - result->entries.size(), result);
    if (snapshot.low <= from || result->entries.size() >= end) return;
    leaf = Look(snapshot.low.Previous(), from, to, &snapshot);
  }
}

#define GANNET_INSTANTIATE(W)                                                          \
  template void Tree<W>::ScanForward(const Words&, const Words&, size_t, ScanResult*); \
  template void Tree<W>::ScanReverse(const Words&, const Words&, size_t, ScanResult*);
GANNET_INSTANTIATE(1)
GANNET_INSTANTIATE(3)
GANNET_INSTANTIATE(5)
GANNET_INSTANTIATE(9)

}  // namespace gannet::index::xstore
