// Allocation of remote-readable objects from a node's registered memory.
//
// Objects come in size classes (multiples of 64 bytes, 64-byte aligned). Fresh memory is zero. A block that was freed
// is handed out again, to its class first: then the allocator has not touched it. Blocks must be given back only after
// the grace period (epoch.h).
//
// What a racing or stale one-sided reader may see. Readers keep addresses for longer than a grace period (location
// caches), so a stale address must always lead to something that is not taken for what was there.
//   - The read-only part is *type-stable*: what was carved as a block of a class remains one. Leaves and
//   translation
//     tables need that: any image of a leaf's lines is believed, however its address was found (index/xstore/leaf.h).
//   - In the writable part free neighbours are joined when memory gets short, whatever their classes, and are cut into
//     blocks of another class. All blocks there are versioned objects (versioned.h), so each line of a block begins
//     with a version, and the allocator keeps two promises about these words: (a) All of them that a free block has are
//     marked: by kNotAState, which a state word has while its record is absent,
//         and the words of an object's other lines always. Whatever is cut out of free memory, a stale address leads to
//         a state word or to a marked one. A stale READ that finds a mark has found no record, and a stale CAS, which
//         expects a state word without it, fails.
//     (b) A block that is cut out of joined memory gets the largest version of its lines as its first word, marked, and
//         its user goes on from there (record.cc). So the words of one line only grow, whichever objects the line
//         belongs to, and (address, state word) names one state of one record only.
//   The thread that frees a block has given its first word the mark, and none of its lines is busy.
//
// The bound. Fresh memory is taken only when less than an eighth of what was taken (or 1 MiB, if that is more) has been
// given back since free neighbours were joined last, and no run of free memory is large enough. So the memory that a
// load of constant size needs is bounded, whatever sizes it shifts through, but for two things: what each cache keeps,
// 64 KiB of each size at most; and what lies between live records in pieces that are shorter than 4 KiB, or than what
// is wanted. When no fresh memory is left, all caches are emptied and all that was retired and is free is collected,
// before an allocation fails.
//
// Blocks come from two parts of the heap (heap_parts.h): Allocate gives what other nodes may WRITE and lock (records),
// AllocateReadOnly and AllocatePermanent what only this node's CPU writes (indexes). A block never changes its part.
//
// SlabAllocator is the node's one, thread-safe. SlabCache is one thread's front: it takes and gives whole batches, so
// the common case takes no lock but its own (owner_lock.h) and touches no shared line. A thread gets the pages of the
// heap's next part ahead (prefault.h), so that they are resident a little before they are carved.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

inline constexpr size_t kMaxObjectBytes = 128 * 1024;

// The last bytes of each part are never handed out. So a READ that begins at a block may bring this many bytes behind
// the block's end, whatever they are: a client READs a record before it knows how long it is.
inline constexpr size_t kReadBeyondBytes = 512;

struct SlabStatistics {
  uint64_t capacity_bytes = 0;  // of the heap
  uint64_t carved_bytes = 0;    // ever taken from the heap
  uint64_t free_bytes = 0;      // carved and now free, in the allocator, joined or not, and in all caches
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

  // ResourceExhausted, naming the part's capacity, when that is full. The block's contents are whatever former users
  // left (zero at first); its first word has the largest version of its lines, from which versions must go on.
  StatusOr<std::byte*> Allocate(size_t bytes);
  StatusOr<std::byte*> AllocateReadOnly(size_t bytes);
  // `bytes` as given to Allocate or AllocateReadOnly (or any size of the same class). A block of the writable part is a
  // versioned object whose state word is marked (above).
  void Free(std::byte* block, size_t bytes);
  // Gives all free blocks to the allocator, where other caches find them.
  void GiveBack();

  SlabAllocator& allocator() { return *allocator_; }

 private:
  struct Classes;

  friend class SlabAllocator;

  template <int kPart>
  StatusOr<std::byte*> AllocateFrom(size_t bytes);
  Status Refill(int part, size_t size_class, bool full);
  std::byte* TakeLast(std::vector<std::byte*>& blocks, size_t size_class);

  SlabAllocator* allocator_;
  std::unique_ptr<Classes> classes_;
};

}  // namespace gannet::rdma
