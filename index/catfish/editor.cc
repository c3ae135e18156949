#include "index/catfish/editor.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/sometimes.h"

namespace gannet::index::catfish {

Entry Editor::EntryOf(const DraftNode& node, uint64_t target) const {
  Entry entry{.box = BoxOf(node.entries), .id = 0, .target = target};
  if (!shape_->hilbert()) return entry;
  for (const Entry& below : node.entries) entry.id = std::max(entry.id, shape_->PositionOf(below, node.level));
  return entry;
}

void Editor::Tighten(DraftNode* parent, size_t in_parent, const DraftNode& child) {
  if (child.entries.empty()) return;  // there was no memory to dissolve it
  Entry& entry = parent->entries[in_parent];
  const Entry exact = EntryOf(child, entry.target);
  if (entry.box == exact.box && entry.id == exact.id) return;
  entry = exact;
  parent->changed = true;
}

void Editor::Tighten(const Path& path) {
  for (size_t i = path.size(); i-- > 1;) Tighten(path[i - 1].node, path[i].in_parent, *path[i].node);
}

void Editor::Insert(const Entry& entry, int level) {
  const uint64_t position = shape_->hilbert() ? shape_->PositionOf(entry, level) : 0;
  Path path{{draft_->root(), 0}};
  while (path.back().node->level > level) {
    DraftNode* const node = path.back().node;
    const size_t child = ChooseChild(*shape_, node->entries, node->level, entry.box, position);
    path.push_back({draft_->ChildOf(node->entries[child]), child});
  }
  DraftNode* const node = path.back().node;
  GANNET_CHECK(node->level == level, "an entry of level %d in a tree of level %d", level, node->level);
  node->entries.push_back(entry);
  node->changed = true;
  Tighten(path);
  if (node->entries.size() > shape_->capacity) Overflow(std::move(path));
}

void Editor::Overflow(Path path) {
  const int level = path.back().node->level;
  if (path.size() == 1) return SplitRoot();
  if (shape_->variant == CatfishVariant::kRStar && !reinserted_[static_cast<size_t>(level)]) {
    reinserted_.set(static_cast<size_t>(level));
    return Reinsert(path);
  }
  if (shape_->hilbert() && path[path.size() - 2].node->entries.size() > 1) return Cooperate(std::move(path));
  SplitNode(std::move(path));
}

// The root stays where it is: its entries move to two new nodes.
void Editor::SplitRoot() {
  Sometimes<"catfish: the root splits">();
  DraftNode* const root = draft_->root();
  std::vector<Entry> parts[2] = {std::move(root->entries), {}};
  parts[1] = Split(*shape_, &parts[0], root->level);
  root->entries.clear();
  for (std::vector<Entry>& part : parts) {
    uint64_t target;
    DraftNode* const child = draft_->NewNode(root->level, &target);
    child->entries = std::move(part);
    root->entries.push_back(EntryOf(*child, target));
  }
  ++root->level;
  root->changed = true;
  GANNET_CHECK(root->level < kMaxLevels, "a tree of %d levels", root->level);
}

void Editor::SplitNode(Path path) {
  Sometimes<"catfish: a node splits">();
  DraftNode* const node = path.back().node;
  std::vector<Entry> rest = Split(*shape_, &node->entries, node->level);
  AddSibling(std::move(path), std::move(rest));
}

// Gives the parent a new node with `entries`.
void Editor::AddSibling(Path path, std::vector<Entry> entries) {
  uint64_t target;
  DraftNode* const sibling = draft_->NewNode(path.back().node->level, &target);
  sibling->entries = std::move(entries);
  Tighten(path);
  path.pop_back();
  DraftNode* const parent = path.back().node;
  parent->entries.push_back(EntryOf(*sibling, target));
  parent->changed = true;
  Tighten(path);
  if (parent->entries.size() > shape_->capacity) Overflow(std::move(path));
}

void Editor::Reinsert(const Path& path) {
  Sometimes<"catfish: a forced reinsertion">();
  DraftNode* const node = path.back().node;
  const int level = node->level;
  const std::vector<Entry> taken = TakeFarthest(&node->entries);
  node->changed = true;
  Tighten(path);
  for (const Entry& entry : taken) Insert(entry, level);
}

size_t Editor::NeighbourOf(const DraftNode& parent, size_t in_parent) const {
  const uint64_t own = parent.entries[in_parent].id;
  size_t next = parent.entries.size();
  size_t previous = parent.entries.size();
  for (size_t i = 0; i < parent.entries.size(); ++i) {
    if (i == in_parent) continue;
    const uint64_t other = parent.entries[i].id;
    if (other >= own) {
      if (next == parent.entries.size() || other < parent.entries[next].id) next = i;
    } else if (previous == parent.entries.size() || other > parent.entries[previous].id) {
      previous = i;
    }
  }
  return next < parent.entries.size() ? next : previous;
}

void Editor::Cooperate(Path path) {
  DraftNode* const node = path.back().node;
  DraftNode* const parent = path[path.size() - 2].node;
  const size_t in_parent = path.back().in_parent;
  const size_t neighbour = NeighbourOf(*parent, in_parent);
  DraftNode* const other = draft_->ChildOf(parent->entries[neighbour]);
  std::vector<Entry> all = std::move(node->entries);
  all.insert(all.end(), other->entries.begin(), other->entries.end());
  SortByPosition(*shape_, &all, node->level);
  const size_t nodes = all.size() <= size_t{2} * shape_->capacity ? 2 : 3;
  // The lower of the two keeps the lower entries, so that most stay where they are.
  DraftNode* const low = parent->entries[neighbour].id < parent->entries[in_parent].id ? other : node;
  DraftNode* const high = low == node ? other : node;
  const auto part = [&](size_t i) {
    const auto at = [&](size_t n) { return all.begin() + static_cast<ptrdiff_t>(all.size() * n / nodes); };
    return std::vector<Entry>(at(i), at(i + 1));
  };
  low->entries = part(0);
  high->entries = part(nodes - 1);
  low->changed = true;
  high->changed = true;
  Tighten(parent, neighbour, *other);
  if (nodes == 2) {
    Sometimes<"catfish: a full node shares entries with its neighbour">();
    return Tighten(path);
  }
  Sometimes<"catfish: two full nodes become three">();
  AddSibling(std::move(path), part(1));
}

void Editor::Remove(Path path, size_t slot) {
  std::vector<std::pair<int, Entry>> orphans;
  DraftNode* const leaf = path.back().node;
  leaf->entries[slot] = leaf->entries.back();
  leaf->entries.pop_back();
  leaf->changed = true;
  for (size_t i = path.size(); i-- > 1;) {
    DraftNode* const node = path[i].node;
    DraftNode* const parent = path[i - 1].node;
    if (node->entries.size() >= shape_->least) {
      Tighten(parent, path[i].in_parent, *node);
      continue;
    }
    Sometimes<"catfish: a node with too few entries is dissolved">();
    if (node->level > 0) Sometimes<"catfish: an inner node with too few entries is dissolved">();
    for (const Entry& entry : node->entries) orphans.emplace_back(node->level, entry);
    draft_->Dissolve(node);
    parent->entries[path[i].in_parent] = parent->entries.back();
    parent->entries.pop_back();
    parent->changed = true;
  }
  // Higher levels first, while there are nodes that can take them.
  std::ranges::stable_sort(orphans, std::greater<>(), &std::pair<int, Entry>::first);
  for (const auto& [level, entry] : orphans) Insert(entry, level);
  LowerRoot();
}

void Editor::LowerRoot() {
  DraftNode* const root = draft_->root();
  while (root->level > 0 && root->entries.size() == 1) {
    Sometimes<"catfish: the only child of the root becomes the root">();
    DraftNode* const child = draft_->ChildOf(root->entries.front());
    std::vector<Entry> entries = child->entries;
    draft_->Dissolve(child);
    root->entries = std::move(entries);
    --root->level;
    root->changed = true;
  }
}

}  // namespace gannet::index::catfish
