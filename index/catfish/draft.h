// Draft: a private copy of the part of a tree that a change of structure touches, and its publication.
//
// The editor (editor.h) changes the draft freely. Publish then makes all of it visible by one write in place: that of
// the lowest common ancestor of all changed nodes. What changed below the ancestor is written to new blocks first,
// which nobody can reach yet; what was there before is marked dead afterwards. A reader that meets nodes of before and
// of after has read the ancestor before and finds its word changed, or it has read it after and cannot have met the old
// ones. With more than one write in place, in any order, some reader would see a mixture and find all words as it read
// them: a key that is in neither place yet, or a node whose parent no longer bounds it.
//
// Used by a thread that holds the tree's structure lock exclusively.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "index/block_pool.h"
#include "index/catfish/node.h"
#include "index/catfish/variant.h"
#include "index/index.h"

namespace gannet::index::catfish {

// The memory of one tree.
struct Arena {
  std::byte* memory = nullptr;  // of the owner
  rdma::NodeId owner = 0;
  NodeLayout layout;
  std::byte* root = nullptr;
  std::shared_ptr<BlockPool> pool;

  Node At(uint64_t offset) const { return {memory + offset, &layout}; }
  Node Root() const { return {root, &layout}; }
  rdma::GlobalAddress AddressOf(const std::byte* block) const { return {owner, static_cast<uint64_t>(block - memory)}; }
  // A new block whose state word is locked and keeps its version (versioned.h).
  StatusOr<std::byte*> NewBlock(Context& context) const;
  // Writes a node that nobody can reach. Returns its state.
  uint64_t WriteNew(std::byte* block, int level, std::span<const Entry> entries) const;
  // Writes a node in place.
  void Rewrite(std::byte* block, int level, std::span<const Entry> entries, Change* change) const;
  // Marks an unlinked node dead and retires its block.
  void Kill(Context& context, std::byte* block, Change* change) const;
};

struct DraftNode {
  std::byte* block = nullptr;  // null: the node is new
  int level = 0;
  bool changed = false;
  bool touched = false;  // set by Publish: changed, or a node below it
  std::vector<Entry> entries;
};

class Draft {
 public:
  explicit Draft(const Arena* arena);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  DraftNode* root() { return root_; }
  // The node to which an entry of an inner node leads.
  DraftNode* ChildOf(const Entry& entry);
  // A new node, and the target of an entry that leads to it.
  DraftNode* NewNode(int level, uint64_t* target);
  // The node is no longer part of the tree. Its entries are the caller's.
  void Dissolve(DraftNode* node);

  // Makes the draft the tree. ResourceExhausted: there is no memory for it, and nothing has changed.
  Status Publish(Context& context, Change* change);

 private:
  static constexpr uint64_t kNew = uint64_t{1} << 63;  // in the target of a new node

  DraftNode* Load(std::byte* block);
  // The node of an entry, if the draft has it.
  DraftNode* Known(const Entry& entry);
  bool MarkTouched(DraftNode* node);
  // Appends the touched nodes below `node`, each after those below it.
  void CollectBelow(DraftNode* node, std::vector<DraftNode*>* nodes);
  // Lets the entries of a node lead to the new blocks.
  void Retarget(DraftNode* node, const std::unordered_map<const DraftNode*, std::byte*>& blocks);

  const Arena* arena_;
  std::deque<DraftNode> nodes_;
  std::unordered_map<uint64_t, DraftNode*> known_;  // by target
  std::vector<DraftNode*> dissolved_;
  DraftNode* root_;
};

}  // namespace gannet::index::catfish
