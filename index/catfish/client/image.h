// Judges the image of a node that a READ brought. The bytes may be anything: torn, stale, or another program's.
#pragma once

#include <cstddef>

#include "index/catfish/node.h"

namespace gannet::index::catfish {

enum class Verdict {
  kNode,   // *copy is the node as it was at one moment
  kAgain,  // locked or torn: READ it once more
  kStale,  // dead, at another level, or no node of this tree: the search begins again
};

// `level`: the level that the parent's entry promised; -1 for the root.
Verdict JudgeImage(const std::byte* image, const NodeLayout& layout, int level, NodeCopy* copy);

// True if an entry of an inner node may lead to a node.
bool IsNodeOffset(uint64_t offset, const NodeLayout& layout);
// True if an entry of a leaf can be returned as one of the owner's.
bool IsLeafEntry(const Entry& entry, rdma::NodeId owner);

}  // namespace gannet::index::catfish
