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

// Of the heap.
constexpr int kReadOnly = 0;
constexpr int kWritable = 1;
constexpr int kParts = 2;

using FreeBlocks = std::array<Blocks, kClasses>;

// Where one part of the heap lies, and what was taken of it.
struct Part {
  const char* name = nullptr;
  std::byte* begin = nullptr;
  size_t bytes = 0;
  size_t carved = 0;
  std::optional<Prefaulter> prefaulter;
  FreeBlocks free;

  void Open(const char* its_name, std::byte* its_begin, size_t its_bytes) {
    name = its_name;
    begin = its_begin;
    bytes = its_bytes - std::min<size_t>(its_bytes, kReadBeyondBytes);
    if (bytes > 0) prefaulter.emplace(begin, bytes);
  }
  Status Full(size_t wanted) const {
    return absl::ResourceExhaustedError(absl::StrCat("no room for ", wanted, " bytes: ", carved, " of ", bytes,
                                                     " bytes are taken, which is the node's ", name,
                                                     " part of the heap; give nodes more memory"));
  }
};

}  // namespace

// The free blocks are listed outside of the blocks, so that nobody but their users ever writes into them.
struct SlabAllocator::Shared {
  Mutex mutex;
  std::array<Part, kParts> parts;
  uint64_t free_bytes = 0;
  std::vector<const std::atomic<uint64_t>*> cached_bytes;  // of the caches there are
  std::function<void()> when_full;

  int PartOf(const std::byte* block) const { return block < parts[kWritable].begin ? kReadOnly : kWritable; }
  // Moves up to a batch of blocks to `out`; an error if the part is full.
  Status Refill(int part, size_t size_class, Blocks* out);
  // Calls when_full. False if there is none.
  bool Collect();
};

bool SlabAllocator::Shared::Collect() {
  std::function<void()> collect;
  {
    std::lock_guard lock(mutex);
    collect = when_full;
  }
  if (collect == nullptr) return false;
  collect();
  return true;
}

Status SlabAllocator::Shared::Refill(int part, size_t size_class, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  std::lock_guard lock(mutex);
  Part& from = parts[part];
  Blocks& list = from.free[size_class];
  size_t count = BatchOf(size_class);
  if (!list.empty()) {
    count = std::min(count, list.size());
    out->insert(out->end(), list.end() - static_cast<ptrdiff_t>(count), list.end());
    list.resize(list.size() - count);
    free_bytes -= count * block_bytes;
    return absl::OkStatus();
  }
  count = std::min(count, (from.bytes - from.carved) / block_bytes);
  if (count == 0) return from.Full(block_bytes);
  // The last one in is the first one out: neighbours are handed out in the order of their addresses.
  for (size_t i = count; i > 0; --i) out->push_back(from.begin + from.carved + (i - 1) * block_bytes);
  from.carved += count * block_bytes;
  from.prefaulter->Advance(from.carved);
  return absl::OkStatus();
}

SlabAllocator::SlabAllocator(Node* node) : node_(node), shared_(std::make_unique<Shared>()) {
  const uint64_t begin = RoundUp(node->heap_offset(), kLineBytes);
  const uint64_t middle = RoundUp(node->writable_offset(), kLineBytes);
  std::byte* const memory = node->memory().data();
  GANNET_CHECK(begin <= middle && middle < node->memory().size(), "node %d has %d bytes of memory, none of them heap",
               node->id(), node->memory().size());
  shared_->parts[kReadOnly].Open("read-only", memory + begin, middle - begin);
  shared_->parts[kWritable].Open("writable", memory + middle, node->memory().size() - middle);
}

SlabAllocator::~SlabAllocator() {
  GANNET_CHECK(shared_->cached_bytes.empty(), "%d caches outlive their allocator", shared_->cached_bytes.size());
}

size_t SlabAllocator::BlockBytes(size_t bytes) {
  return kTable.block_bytes[ClassOf(bytes)];
}

void SlabAllocator::Prefault(uint64_t bytes) {
  const uint64_t capacity = shared_->parts[kReadOnly].bytes + shared_->parts[kWritable].bytes;
  {
    std::lock_guard lock(shared_->mutex);
    for (Part& part : shared_->parts) {
      const auto share = static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(part.bytes) /
                                               static_cast<double>(capacity));
      if (part.bytes > 0) part.prefaulter->Reserve(part.carved + std::min<uint64_t>(share, part.bytes - part.carved));
    }
  }
  for (Part& part : shared_->parts) {
    if (part.bytes > 0) part.prefaulter->Drain();
  }
}

void SlabAllocator::WhenFull(std::function<void()> collect) {
  std::lock_guard lock(shared_->mutex);
  shared_->when_full = std::move(collect);
}

StatusOr<std::byte*> SlabAllocator::AllocatePermanent(size_t bytes) {
  std::lock_guard lock(shared_->mutex);
  Part& part = shared_->parts[kReadOnly];
  if (bytes > part.bytes - part.carved) return part.Full(bytes);
  const size_t rounded = std::min(RoundUp(bytes, kLineBytes), part.bytes - part.carved);
  return part.begin + std::exchange(part.carved, part.carved + rounded);
}

SlabStatistics SlabAllocator::statistics() const {
  std::lock_guard lock(shared_->mutex);
  const Part& read_only = shared_->parts[kReadOnly];
  const Part& writable = shared_->parts[kWritable];
  SlabStatistics result{.capacity_bytes = read_only.bytes + writable.bytes,
                        .carved_bytes = read_only.carved + writable.carved,
                        .free_bytes = shared_->free_bytes,
                        .read_only_capacity_bytes = read_only.bytes,
                        .read_only_carved_bytes = read_only.carved};
  for (const auto* bytes : shared_->cached_bytes) result.free_bytes += bytes->load(std::memory_order_relaxed);
  return result;
}

struct SlabCache::Classes {
  std::array<FreeBlocks, kParts> free;
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
  GiveBack();
  std::lock_guard lock(allocator_->shared_->mutex);
  std::erase(allocator_->shared_->cached_bytes, &classes_->free_bytes);
}

void SlabCache::GiveBack() {
  SlabAllocator::Shared& shared = *allocator_->shared_;
  std::lock_guard lock(shared.mutex);
  for (int part = 0; part < kParts; ++part) {
    for (size_t i = 0; i < kClasses; ++i) {
      Blocks& blocks = classes_->free[part][i];
      Blocks& back = shared.parts[part].free[i];
      back.insert(back.end(), blocks.begin(), blocks.end());
      blocks.clear();
    }
  }
  shared.free_bytes += classes_->free_bytes.exchange(0, std::memory_order_relaxed);
}

StatusOr<std::byte*> SlabCache::Allocate(size_t bytes) {
  return AllocateFrom<kWritable>(bytes);
}
StatusOr<std::byte*> SlabCache::AllocateReadOnly(size_t bytes) {
  return AllocateFrom<kReadOnly>(bytes);
}

template <int kPart>
StatusOr<std::byte*> SlabCache::AllocateFrom(size_t bytes) {
  const size_t size_class = ClassOf(bytes);
  const size_t block_bytes = kTable.block_bytes[size_class];
  Blocks& blocks = classes_->free[kPart][size_class];
  if (blocks.empty()) [[unlikely]] {
    blocks.reserve(2 * BatchOf(size_class) + 1);
    Status refilled = allocator_->shared_->Refill(kPart, size_class, &blocks);
    if (!refilled.ok() && allocator_->shared_->Collect()) {
      refilled = allocator_->shared_->Refill(kPart, size_class, &blocks);
    }
    GANNET_RETURN_IF_ERROR(refilled);
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
  const int part = shared.PartOf(block);
  const auto offset = static_cast<size_t>(block - shared.parts[part].begin);
  GANNET_CHECK(offset < shared.parts[part].bytes && offset % kLineBytes == 0, "freed block at offset %d of part %d",
               offset, part);
  Blocks& blocks = classes_->free[part][size_class];
  blocks.push_back(block);
  classes_->AddFreeBytes(block_bytes);
  const size_t batch = BatchOf(size_class);
  if (blocks.size() <= 2 * batch) [[likely]]
    return;
  std::lock_guard lock(shared.mutex);
  Blocks& back = shared.parts[part].free[size_class];
  back.insert(back.end(), blocks.end() - static_cast<ptrdiff_t>(batch), blocks.end());
  shared.free_bytes += batch * block_bytes;
  blocks.resize(blocks.size() - batch);
  classes_->AddFreeBytes(-(batch * block_bytes));
}

}  // namespace gannet::rdma
