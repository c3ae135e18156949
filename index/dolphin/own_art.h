// OwnArt: the inner nodes of Dolphin at their owner: their blocks, the search by the owner's CPU, bulk load, check, and
// what remains to be done after the death of a client.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "index/dolphin/art.h"
#include "index/dolphin/inner_node.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

// A leaf and its low fence (ArtKeyOf, for integer keys).
struct ArtLeaf {
  ByteKey low;
  rdma::GlobalAddress leaf;
};

// A node in this node's own memory, looked at in place: for ArtWay. Others may change it meanwhile.
class OwnNode {
 public:
  OwnNode(const std::byte* memory, NodeType type, size_t prefix_lines);
  // It was alive when this was made.
  bool is_alive() const { return is_alive_; }
  std::string_view prefix() const { return {reinterpret_cast<const char*>(prefix_.data()), prefix_bytes_}; }
  uint64_t EntryUpTo(int most) const {
    return FindUpTo(type_, most, [this](int slot) { return Word(slot); });
  }
  uint64_t EntryFrom(int least) const {
    return FindFrom(type_, least, [this](int slot) { return Word(slot); });
  }

 private:
  uint64_t Word(int slot) const { return LoadWord(memory_ + EntryOffset(prefix_lines_, slot)); }

  const std::byte* memory_;
  NodeType type_;
  size_t prefix_lines_;
  bool is_alive_ = false;
  size_t prefix_bytes_ = 0;
  std::array<uint64_t, (kHeadPrefixBytes + kLinePrefixBytes) / kWordBytes> prefix_;
};

// Thread-safe, but for Build, and Repair by one thread at a time.
class OwnArt {
 public:
  // `fabric` and `node` must outlive this.
  OwnArt(const rdma::Fabric* fabric, rdma::Node* node, size_t max_key_bytes, IndexRights rights);

  // Makes the root, which has one leaf, the first, with the empty low fence. Once, before anything else.
  // ResourceExhausted: the heap is full.
  Status MakeRoot(Context& context, rdma::GlobalAddress first_leaf);
  rdma::GlobalAddress root() const { return root_; }
  size_t prefix_lines() const { return prefix_lines_; }
  // The blocks of nodes of this type.
  shared_leaf::LeafBlocks& pool(NodeType type) { return *pools_[type - kSmallestNode]; }
  uint64_t bytes() const;
  // Gives all blocks to the slab. None is in use any more.
  void Close(rdma::SlabCache& slab);

  // Goes on with a way to its end.
  void Go(ArtWay* way) const;
  // The leaf of a key, in fewer steps than an ArtWay takes, where the first way that it tries leads to one; otherwise
  // null. As after Go, the leaf may be a wrong one.
  rdma::GlobalAddress Guess(std::string_view key) const;

  // Fills the tree, which has the root only, with leaves in the order of their low fences; the first is the one that
  // the root has. Nobody else uses the tree meanwhile. ResourceExhausted: the heap is full; then the tree is as before,
  // and the blocks that were taken stay its own.
  Status Build(Context& context, std::span<const ArtLeaf> leaves);

  // Calls `visit` with every node to which the root leads, as it is when it is passed; each once. DataLoss: there are
  // more than the index has blocks, which only a client makes up that does not keep the rules.
  Status ForEachNode(const std::function<void(const NodeImage&)>& visit) const;

  struct Check {
    size_t nodes = 0;
    size_t entries = 0;  // for leaves
    size_t wrong = 0;    // entries for leaves that are none, or have another low fence; or that lead to no node
    size_t missed = 0;   // leaves to which the way to their low fence does not lead
  };
  // Looks at all nodes. `leaves`: of the index. Nobody changes the tree meanwhile. Internal: a node is in a free block,
  // or one is alive that nothing leads to: an editor has given up, or RepairAfter is still to be called. DataLoss: as
  // ForEachNode.
  StatusOr<Check> CheckAll(std::span<const ArtLeaf> leaves) const;

  // Called when `client` is dead and none of its verbs takes effect any more. Its blocks that the root does not reach
  // are free again, and so are nodes that it has taken out of the tree and not declared dead. `declare_dead` carries
  // out a CAS of the state word of a node, and returns what it has found; null: by the CPU.
  using StateCas = std::function<StatusOr<uint64_t>(const rdma::Operation&)>;
  Status RepairAfter(rdma::NodeId client, const StateCas& declare_dead = nullptr);

 private:
  bool MayHave(const NodeRef& node) const { return pools_[node.type - kSmallestNode]->MayHave(node.address); }
  const std::byte* At(rdma::GlobalAddress node) const { return pools_[0]->Memory(node.offset()); }
  size_t MostNodes() const;
  Status Reached(absl::flat_hash_set<uint64_t>* nodes) const;
  // Makes the node for leaves that have this prefix. *made: all nodes, for an error.
  StatusOr<uint64_t> BuildNode(Context& context, std::span<const ArtLeaf> leaves, std::string_view prefix, int byte);
  // Calls visit(byte, leaves of that byte) for each byte that follows the prefix.
  static void ForEachByte(std::span<const ArtLeaf> leaves, size_t prefix_bytes,
                          const std::function<void(int, std::span<const ArtLeaf>)>& visit);
  // The entry for these leaves in a node with this prefix.
  StatusOr<uint64_t> BuildChild(Context& context, std::span<const ArtLeaf> leaves, size_t prefix_bytes, int byte);

  struct Built {
    NodeType type;
    shared_leaf::FreeBlock block;
  };

  rdma::Node* node_;
  size_t prefix_lines_;
  std::array<std::unique_ptr<shared_leaf::LeafBlocks>, kNodeTypes> pools_;
  rdma::GlobalAddress root_;
  std::vector<Built> built_;  // by the Build that is in progress
};

}  // namespace gannet::index::dolphin
