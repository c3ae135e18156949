// CatfishTree: changes of the set of keys. tree.h has the order of their writes, and why.
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/catfish/tree.h"

namespace gannet::index::catfish {
namespace {

Status NotMapped(const Key& key) {
  return absl::NotFoundError(absl::StrCat("key ", key.ToString(), " is not in the index with this record"));
}

// Locks a node that other plain inserts may have locked; returns its state before.
uint64_t LockNode(const Node& node) {
  for (Backoff backoff;; backoff.Pause()) {
    const uint64_t state = node.state();
    if ((state & rdma::kLockBit) == 0 && node.TryLock(state)) return state;
  }
}

}  // namespace

// The way to the leaf that has the key. Several ways may lead to rectangles that contain the key's.
std::optional<CatfishTree::Way> CatfishTree::FindWay(const RectangleKey& key) const {
  Way way;
  NodeCopy node;  // the last of the way
  Copy(root_offset(), &node);
  way.push_back({root_offset(), 0});
  while (!way.empty()) {
    size_t& i = way.back().entry;
    const bool leaf = node.head.level == 0;
    const auto leads = [&](const Entry& entry) {
      return leaf ? entry.id == key.id && entry.box == key.box : entry.box.Contains(key.box);
    };
    while (i < node.head.count && !leads(node.slots[i])) ++i;
    if (i == node.head.count) {
      way.pop_back();
      if (way.empty()) break;
      ++way.back().entry;
      Copy(way.back().offset, &node);
      continue;
    }
    if (leaf) return way;
    const uint64_t child = node.slots[i].target;
    way.push_back({child, 0});
    Copy(child, &node);
  }
  return std::nullopt;
}

StatusOr<Change> CatfishTree::Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                     rdma::GlobalAddress* existing) {
  const StatusOr<RectangleKey> decoded = DecodeRectangleKey(key);
  if (!decoded.ok()) return decoded.status();
  const Entry entry{.box = decoded->box, .id = decoded->id, .target = record.bits()};
  Change change;
  KeyWords::Lock word(&key_words_, key_words_.NumberOf(key));
  {
    const std::shared_lock shared(structure_);
    // Nobody else inserts or removes the key, and nothing leaves its place, so a key that is there is found.
    bool consistent = false;
    const rdma::GlobalAddress present = Lookup(*decoded, &consistent);
    if (!present.is_null()) {
      if (existing != nullptr) *existing = present;
      return absl::AlreadyExistsError("the key is in the index");
    }
    if (InsertPlainly(entry, &change)) {
      word.Publish(&change);
      return change;
    }
  }
  const std::unique_lock exclusive(structure_);
  GANNET_RETURN_IF_ERROR(InsertExclusively(context, entry, &change));
  word.Publish(&change);
  return change;
}

bool CatfishTree::InsertPlainly(const Entry& entry, Change* change) {
  const uint64_t position = shape_.hilbert() ? shape_.PositionOf(entry, 0) : 0;
  Way way;
  NodeCopy copy;
  uint64_t offset = root_offset();
  for (Copy(offset, &copy); copy.head.level > 0; Copy(offset, &copy)) {
    const size_t child = ChooseChild(shape_, copy.entries(), copy.head.level, entry.box, position);
    way.push_back({offset, child, copy.state});
    offset = copy.slots[child].target;
  }
  const Node leaf = arena_.At(offset);
  const uint64_t state = LockNode(leaf);
  NodeHead head = leaf.head();
  if (head.count == shape_.capacity) {
    leaf.Unlock(state);
    return false;
  }
  bool alone = true;  // no other insert wrote a node of the way after this one had written one
  for (const Place& place : way) alone &= Grow(place, entry, position, change);
  leaf.Begin();
  leaf.Set(head.count, entry);
  ++head.count;
  leaf.Set(head);
  if (GANNET_MUTANT(kSilentLeaf)) {
    leaf.Publish(state);
    return true;
  }
  leaf.Publish(state + 1);
  change->AddChanged(AddressAt(offset), state, state + 1);
  if (!alone) {
    SometimesInTests<"catfish: two inserts wrote the same nodes in turn">();
    *change = {};
  }
  return true;
}

bool CatfishTree::Grow(const Place& place, const Entry& added, uint64_t position, Change* change) {
  const Node node = arena_.At(place.offset);
  const auto covers = [&](const Entry& entry) { return entry.box.Contains(added.box) && entry.id >= position; };
  // The entry is looked at without the lock at first: entries do not shrink while the structure lock is held, so one
  // that covers now goes on to do so; and a locked word aborts transactions that validate it.
  Entry entry;
  uint64_t state;
  for (Backoff backoff; !node.TryCopyEntry(place.entry, &entry, &state); backoff.Pause()) {
  }
  const auto as_expected = [&] { return change->empty() || state == place.state; };
  if (covers(entry)) return as_expected();
  state = LockNode(node);
  const bool expected = as_expected();
  entry = node.entry(place.entry);
  if (covers(entry)) {
    node.Unlock(state);
    return expected;
  }
  entry.box = entry.box.Union(added.box);
  entry.id = std::max(entry.id, position);
  node.Begin();
  GANNET_CHECK(place.entry < node.head().count, "entry %d of a node with %d", place.entry, node.head().count);
  node.Set(place.entry, entry);
  if (GANNET_MUTANT(kSilentInnerNode)) {
    node.Publish(state);
    return expected;
  }
  node.Publish(state + 1);
  change->AddChanged(AddressAt(place.offset), state, state + 1);
  return expected;
}

Status CatfishTree::InsertExclusively(Context& context, const Entry& entry, Change* change) {
  Draft draft(&arena_);
  Editor(&draft, &shape_).Insert(entry, 0);
  return draft.Publish(context, change);
}

StatusOr<Change> CatfishTree::Remove(Context& context, const Key& key, rdma::GlobalAddress record) {
  const StatusOr<RectangleKey> decoded = DecodeRectangleKey(key);
  if (!decoded.ok()) return NotMapped(key);
  Change change;
  KeyWords::Lock word(&key_words_, key_words_.NumberOf(key));
  const std::unique_lock exclusive(structure_);
  const std::optional<Way> way = FindWay(*decoded);
  if (!way.has_value() || arena_.At(way->back().offset).entry(way->back().entry).target != record.bits()) {
    return NotMapped(key);
  }
  RemoveExclusively(context, *way, &change);
  word.Publish(&change);
  return change;
}

void CatfishTree::RemoveExclusively(Context& context, const Way& way, Change* change) {
  const bool enough = way.size() == 1 || arena_.At(way.back().offset).head().count > shape_.least;
  if (!enough) {
    Draft draft(&arena_);
    Editor::Path path{{draft.root(), 0}};
    for (size_t i = 1; i < way.size(); ++i) {
      const size_t child = way[i - 1].entry;
      path.push_back({draft.ChildOf(path.back().node->entries[child]), child});
    }
    Editor(&draft, &shape_).Remove(std::move(path), way.back().entry);
    if (draft.Publish(context, change).ok()) return;
    // No memory. A removal needs none: the leaf keeps fewer entries than it should, possibly none.
  }
  RemoveInPlace(way, change);
}

void CatfishTree::RemoveInPlace(const Way& way, Change* change) {
  NodeCopy copy;
  Copy(way.back().offset, &copy);
  std::vector<Entry> entries(copy.entries().begin(), copy.entries().end());
  entries[way.back().entry] = entries.back();
  entries.pop_back();
  arena_.Rewrite(arena_.memory + way.back().offset, copy.head.level, entries, change);
  for (size_t i = way.size() - 1; i-- > 0;) {
    if (entries.empty()) return;
    const Rectangle box = BoxOf(entries);
    Copy(way[i].offset, &copy);
    Entry& entry = copy.slots[way[i].entry];
    if (entry.box == box) return;
    entry.box = box;
    entries.assign(copy.entries().begin(), copy.entries().end());
    arena_.Rewrite(arena_.memory + way[i].offset, copy.head.level, entries, change);
  }
}

// Stores one word: the set of keys stays, and so do all words. Under the shared lock entries keep their places, and a
// CAS decides between two that replace the record of one key.
Status CatfishTree::Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  const StatusOr<RectangleKey> decoded = DecodeRectangleKey(key);
  if (!decoded.ok()) return NotMapped(key);
  const std::shared_lock shared(structure_);
  const std::optional<Way> way = FindWay(*decoded);
  if (!way.has_value()) return NotMapped(key);
  std::byte* const target = arena_.memory + way->back().offset + NodeLayout::TargetPlace(way->back().entry);
  if (CompareAndSwapWord(target, from.bits(), to.bits()) != from.bits()) return NotMapped(key);
  return absl::OkStatus();
}

}  // namespace gannet::index::catfish
