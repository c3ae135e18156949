// What the variants of R-trees differ in: which child takes a new rectangle, how a full node is divided, and what is
// inserted again instead. Pure functions of entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/catfish/catfish.h"
#include "index/catfish/hilbert.h"
#include "index/catfish/node.h"

namespace gannet::index::catfish {

// What the algorithms know of a tree.
struct Shape {
  explicit Shape(const CatfishOptions& options)
      : variant(options.variant),
        capacity(options.node_entries),
        // 40% is what both Guttman's and the R*-tree's authors found best. Two-to-three splits leave nodes two thirds
        // full; less than 40% come only from removals.
        least(options.node_entries * 2 / 5 > 2 ? options.node_entries * 2 / 5 : 2),
        curve(options.world) {}

  bool hilbert() const { return variant == CatfishVariant::kHilbert; }
  // Position in the Hilbert order of an entry of a node of this level. Only for the Hilbert variant.
  uint64_t PositionOf(const Entry& entry, int level) const { return level == 0 ? curve(entry.box) : entry.id; }

  CatfishVariant variant;
  uint32_t capacity;
  uint32_t least;  // a node with fewer entries is dissolved, but for the root
  HilbertCurve curve;
};

// The entry of an inner node of level `level` (> 0) that takes a rectangle. `position`: its place in the Hilbert order.
// `entries` are not none.
size_t ChooseChild(const Shape& shape, std::span<const Entry> entries, int level, const Rectangle& box,
                   uint64_t position);

// Moves part of *entries, which are one too many for a node, to the result. Each part has at least shape.least.
std::vector<Entry> Split(const Shape& shape, std::vector<Entry>* entries, int level);

// Removes the 30% of the entries whose centres are farthest from the centre of all, and returns them, the nearest first
// ("close reinsert" of the R*-tree).
std::vector<Entry> TakeFarthest(std::vector<Entry>* entries);

// Sorts in Hilbert order.
void SortByPosition(const Shape& shape, std::vector<Entry>* entries, int level);

}  // namespace gannet::index::catfish
