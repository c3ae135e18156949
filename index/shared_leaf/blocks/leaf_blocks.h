// LeafBlocks: the blocks of one index of shared leaves (leaf.h), at the owner; or a pool of blocks of another size, for
// inner nodes that clients change without locks (dolphin/inner_node.h). It knows every block's use:
//
//   free     dead, and waits here
//   lent     to a client, or to a thread of the owner, which may have made it a leaf of the index
//   in use   a leaf of the index, or dead, and its killer has not given it back yet
//
// A client takes blocks by a call, in batches, and gives back those that it killed or does not need (block_lending.h).
// A dead block can be reused at once, without a grace period: readers recognise it by its version and its fences
// (leaf.h).
//
// Death of a client: after the repair of its locks the owner sweeps. A block that was lent to it is in use if the index
// reaches it, and free otherwise. Dead blocks that were in use are free, too, whoever killed them. So nothing is lost
// that the dead client was about to give back. What a living one gives back later is ignored, because a block is taken
// back only with the word that it died with, and not if it was lent with that word: then it is another's by now.
//
// Memory. Blocks belong to the index as long as it exists: a stale address leads to a leaf of the same index, alive or
// dead. They lie in the writable part of the heap; or, if only the owner changes the index, in the part that clients
// may only READ. Then none is lent to a client. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/types.h"

namespace gannet::index::shared_leaf {

// A dead block and its first word, from whose version the next leaf there goes on.
struct FreeBlock {
  rdma::GlobalAddress address;
  uint64_t word = 0;
  // The connection over which it was lent to a client: it is made a leaf over no other one. 0: connections are never
  // lost.
  uint64_t connection = 0;
};

// Leaves, or inner nodes, of another format than leaf.h has.
struct LeafFormat {
  size_t bytes = 0;
  // Makes the first leaf of a block possible: called when the block has just become one of the index, and is dead.
  void (*begin)(std::byte* block) = nullptr;
  size_t fence_lines = 0;  // of leaves of byte keys
};

class LeafBlocks {
 public:
  // `fabric` and `node` must outlive this. `fence_lines`: of the leaves (tagged_leaf.h).
  LeafBlocks(const rdma::Fabric* fabric, rdma::Node* node, size_t fence_lines = 0,
             IndexRights rights = IndexRights::kClients)
      : fabric_(fabric),
        node_(node),
        memory_(node->memory()),
        heap_offset_(node->heap_offset()),
        writable_offset_(node->writable_offset()),
        fence_lines_(fence_lines),
        format_({.bytes = LeafBytesWith(fence_lines)}),
        rights_(rights),
        locked_too_(fabric->capabilities().line_consistent || rights == IndexRights::kOwnerOnly) {}
  // For leaves of this format.
  LeafBlocks(const rdma::Fabric* fabric, rdma::Node* node, const LeafFormat& format, IndexRights rights)
      : LeafBlocks(fabric, node, format.fence_lines, rights) {
    format_ = format;
  }

  IndexRights rights() const { return rights_; }
  // The kind of the keys: only leaves of byte keys have lines for fences.
  KeyKind key_kind() const { return fence_lines_ == 0 ? KeyKind::kInteger : KeyKind::kBytes; }
  size_t fence_lines() const { return fence_lines_; }
  size_t leaf_bytes() const { return format_.bytes; }

  // Takes a block for the owner's own use. ResourceExhausted: the heap is full.
  StatusOr<FreeBlock> Take(Context& context);
  // A block from Take that was not used.
  void PutBack(const FreeBlock& block);
  // A block from Take that has been made a leaf, to which nothing leads.
  void Discard(const FreeBlock& block);
  // Lends up to `count` blocks to `lessee`; fewer, or none, if the heap is full. With IndexRights::kClients only.
  std::vector<FreeBlock> Lend(Context& context, rdma::NodeId lessee, size_t count);
  // Takes back a block that died, with the word that it has since. Ignores what it cannot believe.
  void Return(const FreeBlock& block);
  // Takes back a block that `lessee` has borrowed and not used. It says so once. Ignores what it cannot believe.
  void GiveBack(rdma::NodeId lessee, const FreeBlock& block);

  // Called after the repair of the locks of `lessee`, which is dead. `is_linked`: the index reaches the leaf.
  void Sweep(rdma::NodeId lessee, const std::function<bool(rdma::GlobalAddress)>& is_linked);

  // True if a block could be at this address: it may be read, and has the content of a leaf, or of a record if a
  // hostile client has made it up.
  bool MayHave(rdma::GlobalAddress address) const {
    return address.node() == node_->id() &&
           (rights_ == IndexRights::kClients ? IsWritable(address.offset(), leaf_bytes())
                                             : IsReadOnly(address.offset(), leaf_bytes()));
  }
  // True if an object of `bytes` bytes can begin at `offset` in the writable part of the owner's heap, where records
  // are, and leaves that clients change. Then it may be read, also if it has no leaf.
  bool IsWritable(uint64_t offset, size_t bytes) const {
    return offset % kLineBytes == 0 && offset >= writable_offset_ && offset <= memory_.size() - bytes;
  }
  // The same as IsWritable for the part that clients may only READ.
  bool IsReadOnly(uint64_t offset, size_t bytes) const {
    return offset % kLineBytes == 0 && offset >= heap_offset_ && offset < writable_offset_ &&
           bytes <= writable_offset_ - offset;
  }
  const std::byte* Memory(uint64_t offset) const { return memory_.data() + offset; }
  // Reads the leaf at `offset` by this node's CPU: ReadOwnLeaf. If clients change the leaves and the fabric may tear
  // lines, a leaf that a live node has locked is kLocked.
  template <class Head>
  LeafLook Look(uint64_t offset, BasicLeafImage<Head>* image) const {
    return LookBy(image, [&](bool locked_too) { return ReadOwnLeaf(Memory(offset), image, fence_lines_, locked_too); });
  }
  // The same for leaves of another format: `read(locked_too)` reads the leaf.
  template <class Image, class Read>
  LeafLook LookBy(Image* image, const Read& read) const {
    const LeafLook look = read(locked_too_);
    if (look != LeafLook::kLocked || locked_too_ || !IsSettled(image->state())) return look;
    return read(/*locked_too=*/true);
  }
  // None of the verbs of `client` takes effect any more, until the repair of its locks has ended. One thread at a time.
  void BeginRepair(rdma::NodeId client) { repaired_.store(client, std::memory_order_relaxed); }
  void EndRepair() { repaired_.store(kNobody, std::memory_order_relaxed); }
  // Calls `visit` with the address of every block.
  void ForEach(const std::function<void(rdma::GlobalAddress)>& visit) const;
  // Internal if a linked block is free, or one that is not linked is neither free nor dead.
  Status Check(const std::function<bool(rdma::GlobalAddress)>& is_linked) const;
  struct Counts {
    size_t free = 0;
    size_t lent = 0;
    size_t in_use = 0;
  };
  Counts counts() const;

  // Gives all blocks to the slab. None is in use any more.
  void Close(rdma::SlabCache& slab);

  uint64_t bytes() const;

 private:
  enum class Use : uint8_t { kFree, kLent, kInUse };
  struct Block {
    Use use = Use::kFree;
    rdma::NodeId lessee = 0;  // of one that is lent
    uint64_t word = 0;        // with which it was lent
  };

  static constexpr uint32_t kNobody = UINT32_MAX;

  // The node that has locked a leaf with this state does not write into it any more.
  bool IsSettled(uint64_t state) const {
    if (!IsLocked(state) || rdma::IsLineBusy(state)) return false;
    const rdma::NodeId holder = LockOwnerNode(state);
    return holder == repaired_.load(std::memory_order_relaxed) ||
           (holder < fabric_->num_nodes() && !fabric_->Alive(holder));
  }
  void MakeFree(std::byte* block) const;
  // Adds a block that this node has taken to the free ones. False: it is one of them. The lock is held.
  bool List(const FreeBlock& block);
  std::byte* At(uint64_t offset) const { return memory_.data() + offset; }
  // A free block, or a new one. ResourceExhausted: the heap is full. The lock is held.
  StatusOr<FreeBlock> TakeOne(Context& context);

  const rdma::Fabric* fabric_;
  rdma::Node* node_;
  const std::span<std::byte> memory_;  // this and the next two: of the node, without a call
  const uint64_t heap_offset_;
  const uint64_t writable_offset_;
  const size_t fence_lines_;
  LeafFormat format_;
  const IndexRights rights_;
  const bool locked_too_;  // ReadOwnLeaf
  std::atomic<uint32_t> repaired_{kNobody};
  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Block> blocks_;  // by offset
  std::vector<uint64_t> free_;
};

}  // namespace gannet::index::shared_leaf
