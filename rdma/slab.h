// Allocation of remote-readable objects from a node's registered memory.
//
// Objects come in size classes (multiples of 64 bytes, 64-byte aligned). Fresh memory is zero. A freed block is
// normally handed out again in its class, and then the allocator has not touched its content. Blocks may be freed only
// after the grace period (epoch.h).
//
// Racing and stale one-sided readers. Readers keep addresses for longer than a grace period (location caches). So a
// reader must be able to tell that a stale address leads to something else now.
//   - The read-only part is *type-stable*: a block carved for a class stays in that class. Leaves and translation
//     tables need this: a reader believes any image of a leaf's lines, however it found the leaf's address
//     (index/xstore/tree/leaf.h).
//   - In the writable part, free neighbours of any class are joined when memory gets short, and are cut into blocks of
//     another class. All blocks there are versioned objects (versioned.h), so each line of a block begins with a
//     version. The allocator keeps two promises about these words:
//     (a) All these words of a free block are marked with kNotAState. A state word has this mark while its record is
//         absent; the words of an object's other lines always have it. So wherever free memory is cut, a stale address
//         leads to a state word or to a marked word. A stale READ that finds a mark has found no record. A stale CAS
//         fails, because it expects a state word without the mark.
//     (b) A block that is cut out of joined memory gets the largest version of its lines as its first word, marked, and
//         its user continues from that version (record.cc). So the word of a line only grows, whichever object the line
//         belongs to, and (address, state word) names one state of one record only.
//   The thread that frees a block has marked its first word before, and none of the block's lines is busy.
//
// The bound. Fresh memory is taken only if no run of free memory is large enough, and if less than an eighth of the
// memory taken so far (or 1 MiB, if that is more) has been freed since free neighbours were joined last. So a load of
// constant size needs bounded memory, also if the sizes of its objects change. Two kinds of memory are not covered by
// this bound: what each cache keeps, at most 64 KiB of each size; and pieces between live records that are shorter than
// 4 KiB, or than the requested size. Before an allocation fails for lack of fresh memory, all caches are emptied, and
// all retired blocks that are free are collected.
//
// Memory that is given back. Trim gives free huge pages back to the system: they are zero afterwards, and are carved
// again before fresh memory. Extents are zeroed when they are freed, so they can always be given back. For the
// writable part that breaks promise (a), so there it needs a node whose memory no other node reads. Promise (b) holds:
// the slab remembers the largest version that it has given back, and blocks from there continue from it.
//
// Blocks come from two parts of the heap (heap_parts.h): Allocate returns memory that other nodes may WRITE and lock
// (records). AllocateReadOnly and AllocateExtent return memory that only this node's CPU writes (indexes). A block
// never changes its part.
//
// Each node has one SlabAllocator, which is thread-safe. Each thread has a SlabCache in front of it. The cache takes
// and returns whole batches, so the common case takes only the cache's own lock (owner_lock.h) and touches no shared
// line. A background thread gets the next pages of the heap ahead (prefault.h), so that they are resident shortly
// before they are carved.
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
#include "rdma/statistics.h"

namespace gannet::rdma {

inline constexpr size_t kMaxObjectBytes = 128 * 1024;

// Number of bytes at the end of each part that are never handed out. So a READ of a block may go this many bytes beyond
// the block's end, and the content of these bytes is undefined. Clients need this, because they READ a record before
// they know its length: the key that they look for may be longer than that of the record which is there.
inline constexpr size_t kReadBeyondBytes = 1280;

class SlabAllocator {
 public:
  // `node` must outlive this. The heap is the node's memory from heap_offset() on. Both parts together take at most
  // `most_bytes` of it; 0: all. With parts that are mere address space, each as large as the limit, no part gets full
  // before the memory is used up, however it is divided between indexes and records.
  explicit SlabAllocator(Node* node, uint64_t most_bytes = 0);
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  // Size of the block that an object of `bytes` gets. The check fails for 0 and for more than kMaxObjectBytes.
  static size_t BlockBytes(size_t bytes);

  // Returns zeroed memory of any size, 64-byte aligned (bucket arrays, tables of leaves). Other nodes may only READ it.
  StatusOr<std::byte*> AllocateExtent(size_t bytes);
  // Takes an extent back and zeroes it, so that it is as good as fresh memory: later extents come from it, and blocks
  // of every class once no fresh memory is left. For an index that is gone (LocalIndex::ReleaseMemory): no reader, not
  // even a stale one of another node, may have an address in it any more. `bytes` as given to AllocateExtent.
  void FreeExtent(std::byte* extent, size_t bytes);

  // Makes the kernel back the next `bytes` with pages now, divided between the parts by their sizes, and waits until it
  // has. Without this call pages arrive shortly ahead of their use, which delays the working threads on a machine that
  // must first find pages (a virtual machine).
  void Prefault(uint64_t bytes);

  // Gives free memory back to the system, and returns its bytes (0 if the node's memory has to stay resident). `alone`:
  // no other node reads this one's memory by verbs. Takes as long as a Join (150 ms per GiB of small free blocks), in
  // which other threads wait if they need memory. Blocks that are still retired are not found.
  uint64_t Trim(bool alone);
  // Does what Trim does, if half of the memory, and at least kWorthTrimming, has been freed since the last Trim. Cheap
  // if not.
  uint64_t TrimIfWorth(bool alone);
  static constexpr uint64_t kWorthTrimming = uint64_t{32} << 20;

  // Sets the function that a thread calls when its allocation is about to fail. `collect` may free blocks (the epoch
  // manager's does) and must not allocate from the slab. There is only one; null: none.
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

  // ResourceExhausted, naming the capacity: the part is full, or the limit is reached. The block has the content that
  // former users left (zero at first). Its first word has the largest version of its lines; later versions must be
  // larger.
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
