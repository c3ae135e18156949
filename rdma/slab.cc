#include "rdma/slab.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/cache_line.h"
#include "rdma/base/check.h"
#include "rdma/base/thread.h"
#include "rdma/prefault.h"

namespace gannet::rdma {
namespace {

// Every multiple of 64 up to 1 KiB, then steps of an eighth: at most 12.5% of a large block is wasted.
constexpr size_t kFineLimit = 1024;

constexpr size_t NextBlockBytes(size_t bytes) {
  return bytes < kFineLimit ? bytes + kLineBytes : std::min(RoundUp(bytes + bytes / 8, kLineBytes), kMaxObjectBytes);
}

constexpr size_t CountClasses() {
  size_t count = 1;
  for (size_t bytes = kLineBytes; bytes < kMaxObjectBytes; bytes = NextBlockBytes(bytes)) ++count;
  return count;
}
constexpr size_t kClasses = CountClasses();
static_assert(kClasses < 256);

struct ClassTable {
  std::array<uint32_t, kClasses> block_bytes{};
  std::array<uint8_t, kMaxObjectBytes / kLineBytes + 1> of_lines{};  // class of an object of so many lines

  constexpr ClassTable() {
    size_t bytes = kLineBytes;
    size_t lines = 0;
    for (size_t i = 0; i < kClasses; ++i, bytes = NextBlockBytes(bytes)) {
      block_bytes[i] = static_cast<uint32_t>(bytes);
      for (; lines * kLineBytes <= bytes; ++lines) of_lines[lines] = static_cast<uint8_t>(i);
    }
  }
};
constexpr ClassTable kTable;
static_assert(kTable.block_bytes[kClasses - 1] == kMaxObjectBytes);

size_t ClassOf(size_t bytes) {
  GANNET_CHECK(bytes > 0 && bytes <= kMaxObjectBytes, "an object of %d bytes", bytes);
  return kTable.of_lines[(bytes + kLineBytes - 1) / kLineBytes];
}

// Blocks that a cache takes or gives at once: about 32 KiB of them.
constexpr size_t kBatchBytes = 32 * 1024;
size_t BatchOf(size_t size_class) {
  return std::max<size_t>(1, kBatchBytes / kTable.block_bytes[size_class]);
}

// How many allocations ahead a block's first line is fetched.
constexpr size_t kPrefetchAhead = 4;

using Blocks = std::vector<std::byte*>;

}  // namespace

// The free blocks are listed outside of the blocks, so that nobody but their users ever writes into them.
struct SlabAllocator::Shared {
  Mutex mutex;
  std::byte* heap = nullptr;
  size_t heap_bytes = 0;
  size_t carved = 0;
  std::optional<Prefaulter> prefaulter;  // of the heap
  std::array<Blocks, kClasses> free;
  uint64_t free_bytes = 0;
  std::vector<const std::atomic<uint64_t>*> cached_bytes;  // of the caches there are

  Status Full(size_t bytes) const {
    return absl::ResourceExhaustedError(absl::StrCat("no room for ", bytes, " bytes: ", carved, " of the node's ",
                                                     heap_bytes, " bytes of heap are taken; give nodes more memory"));
  }

  // Moves up to a batch of blocks to `out`; nothing if the heap is full.
  void Refill(size_t size_class, Blocks* out);
};

void SlabAllocator::Shared::Refill(size_t size_class, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  std::lock_guard lock(mutex);
  Blocks& list = free[size_class];
  size_t count = BatchOf(size_class);
  if (!list.empty()) {
    count = std::min(count, list.size());
    out->insert(out->end(), list.end() - static_cast<ptrdiff_t>(count), list.end());
    list.resize(list.size() - count);
    free_bytes -= count * block_bytes;
    return;
  }
  count = std::min(count, (heap_bytes - carved) / block_bytes);
  // The last one in is the first one out: neighbours are handed out in the order of their addresses.
  for (size_t i = count; i > 0; --i) out->push_back(heap + carved + (i - 1) * block_bytes);
  carved += count * block_bytes;
  prefaulter->Advance(carved);
}

SlabAllocator::SlabAllocator(Node* node) : node_(node), shared_(std::make_unique<Shared>()) {
  const size_t begin = RoundUp(node->heap_offset(), kLineBytes);
  GANNET_CHECK(begin < node->memory().size(), "node %d has %d bytes of memory, none of them heap", node->id(),
               node->memory().size());
  shared_->heap = node->memory().data() + begin;
  shared_->heap_bytes = node->memory().size() - begin;
  shared_->prefaulter.emplace(shared_->heap, shared_->heap_bytes);
}

SlabAllocator::~SlabAllocator() {
  GANNET_CHECK(shared_->cached_bytes.empty(), "%d caches outlive their allocator", shared_->cached_bytes.size());
}

size_t SlabAllocator::BlockBytes(size_t bytes) {
  return kTable.block_bytes[ClassOf(bytes)];
}

void SlabAllocator::Prefault(uint64_t bytes) {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->prefaulter->Reserve(shared_->carved + std::min<uint64_t>(bytes, shared_->heap_bytes - shared_->carved));
  }
  shared_->prefaulter->Drain();
}

StatusOr<std::byte*> SlabAllocator::AllocatePermanent(size_t bytes) {
  std::lock_guard lock(shared_->mutex);
  if (bytes > shared_->heap_bytes - shared_->carved) return shared_->Full(bytes);
  const size_t rounded = std::min(RoundUp(bytes, kLineBytes), shared_->heap_bytes - shared_->carved);
  return shared_->heap + std::exchange(shared_->carved, shared_->carved + rounded);
}

SlabStatistics SlabAllocator::statistics() const {
  std::lock_guard lock(shared_->mutex);
  SlabStatistics result{
      .capacity_bytes = shared_->heap_bytes, .carved_bytes = shared_->carved, .free_bytes = shared_->free_bytes};
  for (const auto* bytes : shared_->cached_bytes) result.free_bytes += bytes->load(std::memory_order_relaxed);
  return result;
}

struct SlabCache::Classes {
  std::array<Blocks, kClasses> free;
  // What lies in `free`. Only the owner writes it; statistics() may read it at any time.
  std::atomic<uint64_t> free_bytes = 0;

  void AddFreeBytes(uint64_t bytes) {
    free_bytes.store(free_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

SlabCache::SlabCache(SlabAllocator* allocator) : allocator_(allocator), classes_(std::make_unique<Classes>()) {
  std::lock_guard lock(allocator_->shared_->mutex);
  allocator_->shared_->cached_bytes.push_back(&classes_->free_bytes);
}

SlabCache::~SlabCache() {
  SlabAllocator::Shared& shared = *allocator_->shared_;
  std::lock_guard lock(shared.mutex);
  for (size_t i = 0; i < kClasses; ++i) {
    shared.free[i].insert(shared.free[i].end(), classes_->free[i].begin(), classes_->free[i].end());
  }
  shared.free_bytes += classes_->free_bytes.load(std::memory_order_relaxed);
  std::erase(shared.cached_bytes, &classes_->free_bytes);
}

StatusOr<std::byte*> SlabCache::Allocate(size_t bytes) {
  const size_t size_class = ClassOf(bytes);
  const size_t block_bytes = kTable.block_bytes[size_class];
  Blocks& blocks = classes_->free[size_class];
  if (blocks.empty()) [[unlikely]] {
    blocks.reserve(2 * BatchOf(size_class) + 1);
    allocator_->shared_->Refill(size_class, &blocks);
    if (blocks.empty()) {
      std::lock_guard lock(allocator_->shared_->mutex);
      return allocator_->shared_->Full(bytes);
    }
    classes_->AddFreeBytes(blocks.size() * block_bytes);
  }
  std::byte* block = blocks.back();
  blocks.pop_back();
  // Fresh or freed long ago, a block is not in the cache: the first line of one that is taken soon is on its way.
  if (blocks.size() > kPrefetchAhead) __builtin_prefetch(blocks[blocks.size() - 1 - kPrefetchAhead], 1);
  classes_->AddFreeBytes(-block_bytes);
  return block;
}

void SlabCache::Free(std::byte* block, size_t bytes) {
  SlabAllocator::Shared& shared = *allocator_->shared_;
  const size_t size_class = ClassOf(bytes);
  const size_t block_bytes = kTable.block_bytes[size_class];
  const auto offset = static_cast<size_t>(block - shared.heap);
  GANNET_CHECK(offset < shared.heap_bytes && offset % kLineBytes == 0, "freed block at heap offset %d", offset);
  Blocks& blocks = classes_->free[size_class];
  blocks.push_back(block);
  classes_->AddFreeBytes(block_bytes);
  const size_t batch = BatchOf(size_class);
  if (blocks.size() <= 2 * batch) [[likely]]
    return;
  std::lock_guard lock(shared.mutex);
  shared.free[size_class].insert(shared.free[size_class].end(), blocks.end() - static_cast<ptrdiff_t>(batch),
                                 blocks.end());
  shared.free_bytes += batch * block_bytes;
  blocks.resize(blocks.size() - batch);
  classes_->AddFreeBytes(-(batch * block_bytes));
}

}  // namespace gannet::rdma
