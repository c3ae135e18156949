// CatfishTree: bulk loads and checks of the whole structure.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/catfish/tree.h"

namespace gannet::index::catfish {
namespace {

Status Wrong(uint64_t offset, const char* what) {
  return absl::DataLossError(absl::StrCat("the node at ", offset, " ", what));
}

}  // namespace

Status CatfishTree::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  if (!(fill > 0 && fill <= 1)) return absl::InvalidArgumentError(absl::StrCat("fill must be in (0, 1], not ", fill));
  struct Placed {
    uint64_t position;
    std::array<uint64_t, RectangleKey::kWords> order;
    Entry entry;
  };
  std::vector<Placed> placed;
  placed.reserve(entries.size());
  for (const LoadEntry& entry : entries) {
    const StatusOr<RectangleKey> key = DecodeRectangleKey(entry.key);
    if (!key.ok()) return key.status();
    placed.push_back({shape_.curve(key->box), key->Words(), {key->box, key->id, entry.record.bits()}});
  }
  std::ranges::sort(placed, [](const Placed& a, const Placed& b) {
    return std::tie(a.position, a.order) < std::tie(b.position, b.order);
  });
  for (size_t i = 1; i < placed.size(); ++i) {
    if (placed[i - 1].order == placed[i].order) {
      return absl::InvalidArgumentError(absl::StrCat("rectangle ", placed[i].entry.box.ToString(), " with id ",
                                                     placed[i].entry.id, " is there twice"));
    }
  }
  std::vector<Entry> sorted;
  sorted.reserve(placed.size());
  for (const Placed& each : placed) sorted.push_back(each.entry);

  // Locks all words, because keys of any of them are inserted.
  std::vector<KeyWords::Lock> words;
  words.reserve(key_words_.count());
  for (size_t i = 0; i < key_words_.count(); ++i) words.emplace_back(&key_words_, i);
  const std::unique_lock exclusive(structure_);
  const NodeHead head = arena_.Root().head();
  if (head.level != 0 || head.count != 0) {
    return absl::FailedPreconditionError("only an empty index can be loaded in bulk");
  }
  if (sorted.empty()) return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(LoadLevels(context, std::move(sorted), fill));
  Change unused;
  for (KeyWords::Lock& word : words) word.Publish(&unused);
  return absl::OkStatus();
}

// Writes level by level; the last one becomes the root's content, by which all others become visible.
Status CatfishTree::LoadLevels(Context& context, std::vector<Entry> entries, double fill) {
  const size_t per_node =
      std::clamp<size_t>(static_cast<size_t>(std::lround(fill * shape_.capacity)), shape_.least, shape_.capacity);
  std::vector<std::byte*> blocks;
  int level = 0;
  for (; entries.size() > shape_.capacity; ++level) {
    const size_t nodes = (entries.size() + per_node - 1) / per_node;
    std::vector<Entry> above;
    above.reserve(nodes);
    for (size_t i = 0; i < nodes; ++i) {
      StatusOr<std::byte*> block = arena_.NewBlock(context);
      if (!block.ok()) {
        for (std::byte* taken : blocks) arena_.pool->Release(taken, arena_.layout.bytes);
        return block.status();
      }
      blocks.push_back(*block);
      const size_t first = entries.size() * i / nodes;
      const std::span<const Entry> part(entries.data() + first, entries.size() * (i + 1) / nodes - first);
      arena_.WriteNew(*block, level, part);
      Entry entry{.box = BoxOf(part), .id = 0, .target = static_cast<uint64_t>(*block - arena_.memory)};
      if (shape_.hilbert()) {
        for (const Entry& below : part) entry.id = std::max(entry.id, shape_.PositionOf(below, level));
      }
      above.push_back(entry);
    }
    entries = std::move(above);
  }
  Change unused;
  arena_.Rewrite(arena_.root, level, entries, &unused);
  return absl::OkStatus();
}

Status CatfishTree::CheckStructure() {
  const std::unique_lock exclusive(structure_);
  struct Pending {
    uint64_t offset;
    std::optional<Entry> parent;
    int level;
  };
  std::vector<Pending> pending = {{root_offset(), std::nullopt, arena_.Root().head().level}};
  std::set<uint64_t> nodes;
  std::set<std::array<uint64_t, RectangleKey::kWords>> keys;
  NodeCopy copy;
  while (!pending.empty()) {
    const Pending next = pending.back();
    pending.pop_back();
    if (!nodes.insert(next.offset).second) return Wrong(next.offset, "is in the tree twice");
    const Node node = arena_.At(next.offset);
    if (!rdma::IsConsistentImage(node.at(), arena_.layout.lines)) return Wrong(next.offset, "is locked or torn");
    if (!node.TryCopy(&copy)) return Wrong(next.offset, "has more entries than fit");
    if (copy.head.dead) return Wrong(next.offset, "is dead");
    if (copy.head.level != next.level) return Wrong(next.offset, "has another level than its place");
    // A removal that found no memory may leave a leaf empty; nothing else does.
    if (copy.head.count == 0 && next.level > 0) return Wrong(next.offset, "is an inner node without entries");
    if (next.parent == std::nullopt && next.level > 0 && copy.head.count < 2)
      return Wrong(next.offset, "has one child");
    for (const Entry& entry : copy.entries()) {
      if (!CheckRectangle(entry.box).ok()) return Wrong(next.offset, "has an entry that is no rectangle");
      if (next.parent.has_value() && !next.parent->box.Contains(entry.box)) {
        return Wrong(next.offset, "has an entry that its parent's does not contain");
      }
      if (next.parent.has_value() && shape_.hilbert() && next.parent->id < shape_.PositionOf(entry, next.level)) {
        return Wrong(next.offset, "has an entry beyond its Hilbert value");
      }
      if (next.level > 0) {
        pending.push_back({entry.target, entry, next.level - 1});
      } else if (!keys.insert(RectangleKey{entry.box, entry.id}.Words()).second) {
        return Wrong(next.offset, "has a key that another entry has, too");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::index::catfish
