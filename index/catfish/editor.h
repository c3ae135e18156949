// Editor: inserts and removals that change the structure of a tree, on a draft of it (draft.h).
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "index/catfish/draft.h"
#include "index/catfish/variant.h"

namespace gannet::index::catfish {

class Editor {
 public:
  // A node on the way from the root, and the number of the entry that leads to it in the node before.
  struct Step {
    DraftNode* node;
    size_t in_parent;
  };
  using Path = std::vector<Step>;

  Editor(Draft* draft, const Shape* shape) : draft_(draft), shape_(shape) {}

  // Puts an entry into a node of this level.
  void Insert(const Entry& entry, int level);
  // Takes entry `slot` out of the leaf at the end of the path. Nodes that are left with too few entries are dissolved,
  // and their entries are inserted again (Guttman's CondenseTree).
  void Remove(Path path, size_t slot);
  // Makes the boxes on the path exact, from its end upwards.
  void Tighten(const Path& path);

 private:
  // The entry of the parent for a node, which has entries.
  Entry EntryOf(const DraftNode& node, uint64_t target) const;
  void Tighten(DraftNode* parent, size_t in_parent, const DraftNode& child);
  // Deals with the node at the end of the path, which has one entry too many.
  void Overflow(Path path);
  void SplitNode(Path path);
  void SplitRoot();
  void Reinsert(const Path& path);
  // Shares the entries of the node and of its neighbour in Hilbert order between them, or among them and a new node.
  void Cooperate(Path path);
  // The entry of the neighbour in Hilbert order: the next one, or the previous one of the last.
  size_t NeighbourOf(const DraftNode& parent, size_t in_parent) const;
  void AddSibling(Path path, std::vector<Entry> entries);
  void LowerRoot();

  Draft* draft_;
  const Shape* shape_;
  std::bitset<kMaxLevels> reinserted_;  // levels at which this operation has made a forced reinsertion
};

}  // namespace gannet::index::catfish
