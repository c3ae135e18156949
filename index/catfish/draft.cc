#include "index/catfish/draft.h"

#include <utility>

#include "base/check.h"
#include "base/mutant.h"

namespace gannet::index::catfish {

StatusOr<std::byte*> Arena::NewBlock(Context& context) const {
  StatusOr<std::byte*> block = pool->Allocate(context, layout.bytes);
  if (!block.ok()) return block;
  // Keeps only the version: an object of another index that used this block may have left other bits in its first word.
  constexpr uint64_t kVersion = (uint64_t{1} << 60) - 1;
  StoreWord(*block, (LoadWord(*block) & kVersion) | rdma::kLockBit);
  return block;
}

uint64_t Arena::WriteNew(std::byte* block, int level, std::span<const Entry> entries) const {
  GANNET_CHECK(entries.size() <= layout.capacity && level >= 0 && level < kMaxLevels,
               "%d entries of level %d in a node of %d", entries.size(), level, layout.capacity);
  const Node node(block, &layout);
  const uint64_t state = (node.state() & ~rdma::kLockBit) + 1;
  node.Begin();
  node.Set(NodeHead{.level = static_cast<uint8_t>(level), .count = static_cast<uint16_t>(entries.size())});
  for (size_t i = 0; i < entries.size(); ++i) node.Set(i, entries[i]);
  node.Publish(state);
  return state;
}

void Arena::Rewrite(std::byte* block, int level, std::span<const Entry> entries, Change* change) const {
  const uint64_t before = LoadWord(block);
  StoreWord(block, before | rdma::kLockBit);
  const uint64_t after = WriteNew(block, level, entries);
  if (level > 0 && GANNET_MUTANT(kSilentInnerNode)) return Node(block, &layout).Publish(before);
  change->AddChanged(AddressOf(block), before, after);
}

void Arena::Kill(Context& context, std::byte* block, Change* change) const {
  const Node node(block, &layout);
  const uint64_t before = node.state();
  StoreWord(block, before | rdma::kLockBit);
  node.Begin();
  node.Set(NodeHead{.dead = true});
  node.Publish(before + 1);
  change->AddChanged(AddressOf(block), before, before + 1);
  pool->Retire(context, block, layout.bytes);
}

Draft::Draft(const Arena* arena) : arena_(arena), root_(Load(arena->root)) {}

DraftNode* Draft::Load(std::byte* block) {
  const Node from(block, &arena_->layout);
  const NodeHead head = from.head();
  DraftNode& node = nodes_.emplace_back();
  node.block = block;
  node.level = head.level;
  node.entries.reserve(arena_->layout.capacity + 1);
  for (size_t i = 0; i < head.count; ++i) node.entries.push_back(from.entry(i));
  return &node;
}

DraftNode* Draft::Known(const Entry& entry) {
  const auto at = known_.find(entry.target);
  return at == known_.end() ? nullptr : at->second;
}

DraftNode* Draft::ChildOf(const Entry& entry) {
  DraftNode*& node = known_[entry.target];
  if (node == nullptr) node = Load(arena_->memory + entry.target);
  return node;
}

DraftNode* Draft::NewNode(int level, uint64_t* target) {
  *target = kNew | nodes_.size();
  DraftNode& node = nodes_.emplace_back();
  node.level = level;
  node.changed = true;
  known_.emplace(*target, &node);
  return &node;
}

void Draft::Dissolve(DraftNode* node) {
  node->entries.clear();
  dissolved_.push_back(node);
}

bool Draft::MarkTouched(DraftNode* node) {
  node->touched = node->changed;
  if (node->level == 0) return node->touched;
  for (const Entry& entry : node->entries) {
    if (DraftNode* child = Known(entry); child != nullptr && MarkTouched(child)) node->touched = true;
  }
  return node->touched;
}

void Draft::CollectBelow(DraftNode* node, std::vector<DraftNode*>* nodes) {
  if (node->level == 0) return;
  for (const Entry& entry : node->entries) {
    DraftNode* child = Known(entry);
    if (child == nullptr || !child->touched) continue;
    CollectBelow(child, nodes);
    nodes->push_back(child);
  }
}

void Draft::Retarget(DraftNode* node, const std::unordered_map<const DraftNode*, std::byte*>& blocks) {
  if (node->level == 0) return;
  for (Entry& entry : node->entries) {
    const auto at = blocks.find(Known(entry));
    if (at != blocks.end()) entry.target = static_cast<uint64_t>(at->second - arena_->memory);
  }
}

// One word makes all of it visible: the new nodes are written before anything leads to them, then `top` leads to them,
// and only then the nodes that they replace die. A reader in between finds the old nodes whole, or the new ones.
Status Draft::Publish(Context& context, Change* change) {
  if (!MarkTouched(root_)) return absl::OkStatus();
  // The lowest common ancestor.
  DraftNode* top = root_;
  while (!top->changed) {
    DraftNode* only = nullptr;
    int touched = 0;
    for (const Entry& entry : top->entries) {
      DraftNode* child = Known(entry);
      if (child == nullptr || !child->touched) continue;
      only = child;
      ++touched;
    }
    if (touched != 1) break;
    top = only;
  }
  GANNET_CHECK(top->block != nullptr, "a new node of level %d has no parent in the tree", top->level);

  std::vector<DraftNode*> below;
  CollectBelow(top, &below);
  std::unordered_map<const DraftNode*, std::byte*> blocks;
  for (const DraftNode* node : below) {
    StatusOr<std::byte*> block = arena_->NewBlock(context);
    if (!block.ok()) {
      for (const auto& [unused, taken] : blocks) arena_->pool->Release(taken, arena_->layout.bytes);
      return block.status();
    }
    blocks.emplace(node, *block);
  }
  for (DraftNode* node : below) {
    Retarget(node, blocks);
    std::byte* const block = blocks.at(node);
    change->AddCreated({arena_->AddressOf(block), arena_->WriteNew(block, node->level, node->entries)});
  }
  Retarget(top, blocks);
  // From here on the new nodes are the tree.
  arena_->Rewrite(top->block, top->level, top->entries, change);
  for (const DraftNode* node : below) {
    if (node->block != nullptr) arena_->Kill(context, node->block, change);
  }
  for (const DraftNode* node : dissolved_) {
    if (node->block != nullptr) arena_->Kill(context, node->block, change);
  }
  return absl::OkStatus();
}

}  // namespace gannet::index::catfish
