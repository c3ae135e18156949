// Allocation of remote-readable objects from a node's registered memory.
//
// Objects come in size classes (multiples of 64 bytes, 64-byte aligned). Memory is *type-stable*: once carved, a block
// belongs to its class for ever, its first word is never touched by the allocator, and fresh memory is zero. So a stale
// address always leads to some object of that class whose version only grew, and a reader that compares versions (or
// the key in the object) finds out. Blocks must be given back only after the grace period (epoch.h).
//
// Blocks come from two parts of the heap (heap_parts.h): Allocate gives what other nodes may WRITE and lock (records),
// AllocateReadOnly and AllocatePermanent what only this node's CPU writes (indexes). A block never changes its part.
//
// SlabAllocator is the node's one, thread-safe. SlabCache is one thread's front: it takes and gives whole batches, so
// the common case takes no lock and touches no shared line. A thread gets the pages of the heap's next part ahead
// (prefault.h), so that they are resident a little before they are carved.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "rdma/base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

inline constexpr size_t kMaxObjectBytes = 128 * 1024;

// The last bytes of each part are never handed out. So a READ that begins at a block may bring this many bytes behind
// the block's end, whatever they are: a client READs a record before it knows how long it is.
inline constexpr size_t kReadBeyondBytes = 512;

struct SlabStatistics {
  uint64_t capacity_bytes = 0;  // of the heap
  uint64_t carved_bytes = 0;    // ever taken from the heap
  uint64_t free_bytes = 0;      // carved and now free, in the allocator and in all caches
  // Of the first two, in the part that others may only READ.
  uint64_t read_only_capacity_bytes = 0;
  uint64_t read_only_carved_bytes = 0;
};

class SlabAllocator {
 public:
  // `node` must outlive this. The heap is the node's memory from heap_offset() on.
  explicit SlabAllocator(Node* node);
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  // The block size that an object of `bytes` gets; InvalidArgument-sized requests (0, > kMaxObjectBytes) are a check.
  static size_t BlockBytes(size_t bytes);

  // A block of zeroed memory of any size, 64-byte aligned, never freed (bucket arrays, tables of leaves). Others may
  // only READ it.
  StatusOr<std::byte*> AllocatePermanent(size_t bytes);

  // Has the kernel back the next `bytes` that will be taken with pages now, shared out between the parts as they are
  // large, and waits for that. Without it pages come a little ahead of their use, which on a machine that must find
  // them first (a virtual one) holds up whoever works.
  void Prefault(uint64_t bytes);

  // `collect` is called when an allocation is about to fail, by its thread: it may give blocks back (the epochs do).
  // There is one; null for none. It must not allocate from the slab.
  void WhenFull(std::function<void()> collect);

  Node& node() { return *node_; }
  SlabStatistics statistics() const;

 private:
  friend class SlabCache;
  struct Shared;

  Node* node_;
  std::unique_ptr<Shared> shared_;
};

// Not thread-safe; must not outlive its allocator. Gives its blocks back when destroyed.
class SlabCache {
 public:
  explicit SlabCache(SlabAllocator* allocator);
  ~SlabCache();
  SlabCache(const SlabCache&) = delete;
  SlabCache& operator=(const SlabCache&) = delete;

  // ResourceExhausted, naming the part's capacity, when that is full. The block's contents are whatever the last
  // user left (zero at first); its first word is the last state word, from which versions must go on.
  StatusOr<std::byte*> Allocate(size_t bytes);
  StatusOr<std::byte*> AllocateReadOnly(size_t bytes);
  // `bytes` as given to Allocate or AllocateReadOnly (or any size of the same class).
  void Free(std::byte* block, size_t bytes);
  // Gives all free blocks to the allocator, where other caches find them.
  void GiveBack();

  SlabAllocator& allocator() { return *allocator_; }

 private:
  struct Classes;

  template <int kPart>
  StatusOr<std::byte*> AllocateFrom(size_t bytes);

  SlabAllocator* allocator_;
  std::unique_ptr<Classes> classes_;
};

}  // namespace gannet::rdma
