#include "index/dolphin/own_art.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/runtime.h"

namespace gannet::index::dolphin {

using shared_leaf::FreeBlock;

OwnNode::OwnNode(const std::byte* memory, NodeType type, size_t prefix_lines)
    : memory_(memory), type_(type), prefix_lines_(prefix_lines) {
  const uint64_t state = LoadWord(memory);
  const uint64_t shape = LoadWord(memory + kShapeOffset);
  const size_t bytes = shape >> 8;
  if (state != VersionOf(state) || (shape & 0xff) != type ||
      bytes > (prefix_lines == 0 ? kHeadPrefixBytes : kMostPrefix)) {
    return;
  }
  for (size_t at = 0; at < bytes; at += kWordBytes) {
    const size_t place = at < kHeadPrefixBytes ? kPrefixOffset + at : kLineBytes + kWordBytes + at - kHeadPrefixBytes;
    prefix_[at / kWordBytes] = LoadWord(memory + place);
  }
  prefix_bytes_ = bytes;
  is_alive_ = LoadWord(memory) == state;
}

OwnArt::OwnArt(const rdma::Fabric* fabric, rdma::Node* node, size_t max_key_bytes, IndexRights rights)
    : node_(node), prefix_lines_(PrefixLinesFor(max_key_bytes)) {
  for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
    pools_[type - kSmallestNode] = std::make_unique<shared_leaf::LeafBlocks>(
        fabric, node, shared_leaf::LeafFormat{.bytes = NodeBytes(type, prefix_lines_)}, rights);
  }
}

Status OwnArt::MakeRoot(Context& context, rdma::GlobalAddress first_leaf) {
  GANNET_CHECK(root_.is_null(), "a second root, after %s", root_.ToString());
  const StatusOr<FreeBlock> block = pool(kLargestNode).Take(context);
  if (!block.ok()) return block.status();
  NodeImage image;
  image.Make({block->address, kLargestNode}, prefix_lines_, block->word, "");
  image.Add(EntryWord({first_leaf, kLeafType}, 0));
  StoreNode(image, node_->memory().data() + block->address.offset());
  root_ = block->address;
  return absl::OkStatus();
}

uint64_t OwnArt::bytes() const {
  uint64_t bytes = 0;
  for (const auto& pool : pools_) bytes += pool->bytes();
  return bytes;
}

void OwnArt::Close(rdma::SlabCache& slab) {
  for (const auto& pool : pools_) pool->Close(slab);
}

void OwnArt::Go(ArtWay* way) const {
  while (way->step() == ArtWay::Step::kRead) {
    const NodeRef& next = way->next();
    Charge(Cost::kIndexStep);
    if (!MayHave(next)) {
      way->Miss();
      continue;
    }
    const OwnNode node(At(next.address), next.type, prefix_lines_);
    if (node.is_alive()) {
      way->Take(node, /*is_fresh=*/true);
    } else {
      way->Miss();
    }
  }
}

rdma::GlobalAddress OwnArt::Guess(std::string_view key) const {
  NodeRef next{root_, kLargestNode};
  size_t above = 0;
  bool is_on_key = true;  // false: all below the next node is less than the key
  while (MayHave(next)) {
    Charge(Cost::kIndexStep);
    const OwnNode node(At(next.address), next.type, prefix_lines_);
    if (!node.is_alive()) break;
    const std::string_view prefix = node.prefix();
    const bool is_deeper = next.address == root_ || prefix.size() > above;  // or the walk might not end
    if (!is_deeper || (is_on_key && !key.starts_with(prefix))) break;
    const int byte = is_on_key ? ByteAt(key, prefix.size()) : kMostByte;
    const uint64_t entry = node.EntryUpTo(byte);
    if (entry == 0) break;
    is_on_key = is_on_key && ByteOf(entry) == byte && byte != 0;
    const NodeRef child = ChildOf(entry, root_.node());
    if (child.type == kLeafType) {
      const bool begins_behind = is_on_key && MoreOf(entry) > ByteAt(key, prefix.size() + 1);
      return begins_behind ? rdma::GlobalAddress() : child.address;
    }
    above = prefix.size();
    next = child;
  }
  return {};
}

void OwnArt::ForEachByte(std::span<const ArtLeaf> leaves, size_t prefix_bytes,
                         const std::function<void(int, std::span<const ArtLeaf>)>& visit) {
  for (size_t begin = 0; begin < leaves.size();) {
    const int byte = ByteAt(leaves[begin].low.view(), prefix_bytes);
    size_t end = begin + 1;
    while (end < leaves.size() && ByteAt(leaves[end].low.view(), prefix_bytes) == byte) ++end;
    visit(byte, leaves.subspan(begin, end - begin));
    begin = end;
  }
}

StatusOr<uint64_t> OwnArt::BuildChild(Context& context, std::span<const ArtLeaf> leaves, size_t prefix_bytes,
                                      int byte) {
  const std::string_view first = leaves.front().low.view();
  if (leaves.size() == 1 && first.size() <= prefix_bytes + kEntryBytes) {
    return LeafEntry(leaves.front().leaf, first, prefix_bytes);
  }
  const size_t common = leaves.size() == 1 ? first.size() - kEntryBytes : CommonBytes(first, leaves.back().low.view());
  return BuildNode(context, leaves, first.substr(0, common), byte);
}

StatusOr<uint64_t> OwnArt::BuildNode(Context& context, std::span<const ArtLeaf> leaves, std::string_view prefix,
                                     int byte) {
  int children = 0;
  ForEachByte(leaves, prefix.size(), [&children](int, std::span<const ArtLeaf>) { ++children; });
  NodeType type = kSmallestNode;
  while (kNodeEntries[type] < children) ++type;
  const StatusOr<FreeBlock> block = pool(type).Take(context);
  if (!block.ok()) return block.status();
  const auto image = std::make_unique<NodeImage>();
  image->Make({block->address, type}, prefix_lines_, block->word, prefix);
  Status status;
  ForEachByte(leaves, prefix.size(), [&](int of, std::span<const ArtLeaf> below) {
    if (!status.ok()) return;
    const StatusOr<uint64_t> entry = BuildChild(context, below, prefix.size(), of);
    if (entry.ok()) {
      image->Add(*entry);
    } else {
      status = entry.status();
    }
  });
  if (!status.ok()) {
    pool(type).PutBack(*block);
    return status;
  }
  StoreNode(*image, node_->memory().data() + block->address.offset());
  built_.push_back({type, *block});
  return NodeEntry(*image, byte);
}

Status OwnArt::Build(Context& context, std::span<const ArtLeaf> leaves) {
  std::vector<uint64_t> entries;
  Status status;
  ForEachByte(leaves, 0, [&](int byte, std::span<const ArtLeaf> below) {
    if (!status.ok()) return;
    const StatusOr<uint64_t> entry = BuildChild(context, below, 0, byte);
    if (entry.ok()) {
      entries.push_back(*entry);
    } else {
      status = entry.status();
    }
  });
  const std::vector<Built> built = std::exchange(built_, {});
  if (!status.ok()) {
    // Nothing leads to the nodes that there is no room for the parents of.
    for (const Built& node : built) pool(node.type).Discard(node.block);
    return status;
  }
  std::byte* const root = node_->memory().data() + root_.offset();
  for (const uint64_t entry : entries) StoreWord(root + EntryOffset(prefix_lines_, ByteOf(entry)), entry);
  return absl::OkStatus();
}

size_t OwnArt::MostNodes() const {
  size_t most = 0;
  for (const auto& pool : pools_) {
    const shared_leaf::LeafBlocks::Counts counts = pool->counts();
    most += counts.free + counts.lent + counts.in_use;
  }
  return 1000 + 2 * most;  // others are made meanwhile
}

Status OwnArt::ForEachNode(const std::function<void(const NodeImage&)>& visit) const {
  const size_t most = MostNodes();
  struct Child {
    NodeRef node;
    ByteKey above;  // its prefix is longer, and begins with this
  };
  std::vector<Child> open = {{{root_, kLargestNode}, {}}};
  absl::flat_hash_set<uint64_t> visited;
  const auto image = std::make_unique<NodeImage>();
  while (!open.empty()) {
    const Child next = open.back();
    open.pop_back();
    if (!MayHave(next.node) || visited.contains(next.node.address.bits())) continue;
    image->Expect(next.node, prefix_lines_);
    if (LoadNode(At(next.node.address), image.get()) != LeafLook::kWhole) continue;
    if (next.node.address != root_ && !image->prefix().starts_with(next.above.view())) continue;
    visited.insert(next.node.address.bits());
    if (visited.size() > most) {
      return absl::DataLossError(absl::StrCat("node ", node_->id(), " has an index with more than ", most,
                                              " inner nodes: a client has damaged it"));
    }
    visit(*image);
    image->ForEach([&](uint64_t entry) {
      if (TypeOf(entry) == kLeafType || ByteOf(entry) == 0) return;
      std::string above(image->prefix());
      above.push_back(static_cast<char>(ByteOf(entry) - 1));
      open.push_back({ChildOf(entry, node_->id()), ByteKey(above)});
    });
  }
  return absl::OkStatus();
}

StatusOr<OwnArt::Check> OwnArt::CheckAll(std::span<const ArtLeaf> leaves) const {
  Check check;
  absl::flat_hash_set<uint64_t> reached;
  size_t children = 0;
  absl::flat_hash_map<uint64_t, std::string_view> lows;
  for (const ArtLeaf& leaf : leaves) lows[leaf.leaf.offset()] = leaf.low.view();
  GANNET_RETURN_IF_ERROR(ForEachNode([&](const NodeImage& node) {
    ++check.nodes;
    reached.insert(node.address().offset());
    node.ForEach([&](uint64_t entry) {
      if (TypeOf(entry) != kLeafType) {
        ++children;
        return;
      }
      ++check.entries;
      const auto leaf = lows.find(OffsetOf(entry));
      const bool is_right = leaf != lows.end() && LowOf(node.prefix(), entry).view() == leaf->second;
      check.wrong += is_right ? 0 : 1;
    });
  }));
  // Each node but the root has one entry that leads to it.
  check.wrong += children - std::min(children, check.nodes - 1);
  for (const ArtLeaf& leaf : leaves) {
    ArtWay way(root_, leaf.low.view());
    Go(&way);
    check.missed += way.step() == ArtWay::Step::kFound && way.leaf() == leaf.leaf ? 0 : 1;
  }
  for (const auto& pool : pools_) {
    GANNET_RETURN_IF_ERROR(pool->Check([&](rdma::GlobalAddress at) { return reached.contains(at.offset()); }));
  }
  return check;
}

Status OwnArt::Reached(absl::flat_hash_set<uint64_t>* nodes) const {
  return ForEachNode([nodes](const NodeImage& node) { nodes->insert(node.address().offset()); });
}

// An old node that `client` has replaced, but not declared dead, is alive, and nothing leads to it. Its block may be
// lent to another client, which has made it. Which of the nodes are so cannot be seen at once while other clients
// change the tree: one may be made and not linked yet, or be moved while a walk passes. So a node counts that was alive
// before two walks, lives still, and that neither has reached. A walk misses a node that is linked before it begins
// only if an editor has yet to carry over the entry for it (art_editor.h), because the new entry for a node is there
// before the old one goes. If a node is declared dead wrongly nevertheless, its leaves are reached by detours, and an
// editor makes new entries for them: a block is WRITTEN once before it comes back, so the block is nobody else's to
// write.
Status OwnArt::RepairAfter(rdma::NodeId client, const StateCas& declare_dead) {
  struct Alive {
    NodeRef node;
    uint64_t state;
  };
  std::vector<Alive> alive;
  for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
    pool(type).ForEach([&](rdma::GlobalAddress at) {
      const uint64_t state = LoadWord(At(at));
      if (!IsAbsent(state) && !IsLocked(state) && at != root_) alive.push_back({{at, type}, state});
    });
  }
  absl::flat_hash_set<uint64_t> reached;
  Status walked = Reached(&reached);
  absl::flat_hash_set<uint64_t> reached_later;
  if (walked.ok()) walked = Reached(&reached_later);
  // If the tree cannot be walked, no block that may be in use is given up.
  for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
    pool(type).Sweep(client, [&](rdma::GlobalAddress at) {
      return !walked.ok() || reached.contains(at.offset()) || reached_later.contains(at.offset());
    });
  }
  GANNET_RETURN_IF_ERROR(walked);
  for (const Alive& one : alive) {
    const rdma::GlobalAddress at = one.node.address;
    if (reached.contains(at.offset()) || reached_later.contains(at.offset()) || LoadWord(At(at)) != one.state) continue;
    const uint64_t dead = NextState(one.state, /*absent=*/true);
    const auto cas = rdma::Operation::CompareAndSwap(at, one.state, dead);
    uint64_t found;
    if (declare_dead == nullptr) {
      found = CompareAndSwapWord(node_->memory().data() + at.offset(), one.state, dead);
    } else {
      const StatusOr<uint64_t> result = declare_dead(cas);
      if (!result.ok()) return result.status();
      found = *result;
    }
    if (found == one.state) pool(one.node.type).Return({.address = at, .word = dead});
  }
  return absl::OkStatus();
}

}  // namespace gannet::index::dolphin
