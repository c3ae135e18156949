#include "rdma/slab.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/owner_lock.h"
#include "base/thread.h"
#include "rdma/memory_full.h"
#include "rdma/prefault.h"
#include "rdma/versioned.h"

namespace gannet::rdma {
namespace {

// Multiples of 64 up to 1 KiB, then steps of an eighth: at most 12.5% of a large block is wasted.
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
  std::array<uint8_t, kMaxObjectBytes / kLineBytes + 1> of_lines{};  // size class by an object's number of lines

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

// Blocks that move between a cache and the allocator at once: about 32 KiB.
constexpr size_t kBatchBytes = 32 * 1024;
size_t BatchOf(size_t size_class) {
  return std::max<size_t>(1, kBatchBytes / kTable.block_bytes[size_class]);
}

// A block's first line is prefetched this many allocations ahead.
constexpr size_t kPrefetchAhead = 4;

using Blocks = std::vector<std::byte*>;

// The parts of the heap.
constexpr int kReadOnly = 0;
constexpr int kWritable = 1;
constexpr int kParts = 2;

using FreeBlocks = std::array<Blocks, kClasses>;

// Shortest run of joined free memory, in bytes. Blocks of shorter runs stay in the lists.
constexpr size_t kSmallestRun = 4096;
// Blocks are joined, before fresh memory is taken, if at least this many bytes and this share (one part in ...) of all
// carved memory were returned since the last time. Joining looks at every free block: 150 ms per GiB of the smallest
// ones.
constexpr size_t kWorthJoining = 1 << 20;
constexpr size_t kShareWorthJoining = 8;
// When no fresh memory is left, this share of the free memory is enough.
constexpr size_t kShareWorthJoiningWhenFull = 16;

// One part of the heap: its place, how much of it is carved into blocks, and which of those are free.
struct Part {
  const char* name = nullptr;
  std::byte* begin = nullptr;
  size_t bytes = 0;
  size_t carved = 0;
  std::optional<Prefaulter> prefaulter;
  bool may_join = false;
  bool alone = false;  // no other node writes here
  // Free blocks by class. `listed`: their bytes. `returned`: the bytes that were added since the last Join.
  FreeBlocks free;
  size_t listed = 0;
  size_t returned = 0;
  // Joined free memory without a class, by its bytes.
  std::multimap<size_t, std::byte*> runs;
  size_t run_bytes = 0;  // of all
  // Free memory that is zero, by its addresses, without neighbours: extents that were freed, and trimmed memory. Its
  // huge pages were given back, if the node can do that.
  std::map<std::byte*, size_t> extents;
  size_t extent_bytes = 0;
  // The largest version of trimmed memory, marked; 0: none was trimmed.
  uint64_t trimmed_version = 0;
  size_t left_by_trim = 0;  // of listed and run_bytes, at the last Trim or less

  void Open(const char* its_name, std::byte* its_begin, size_t its_bytes, bool joins) {
    name = its_name;
    begin = its_begin;
    bytes = its_bytes - std::min<size_t>(its_bytes, kReadBeyondBytes);
    may_join = joins;
    if (bytes > 0) prefaulter.emplace(begin, bytes);
  }
  Status Full(size_t wanted) const {
    return absl::ResourceExhaustedError(absl::StrCat("no room for ", wanted, " bytes: ", carved, " of ", bytes,
                                                     kBytesAreTaken, ", which is the node's ", name,
                                                     " part of the heap; ", kGiveMemory));
  }
  size_t fresh() const { return bytes - carved; }

  // Adds blocks of the class to its list.
  void List(size_t size_class, std::span<std::byte* const> blocks) {
    free[size_class].insert(free[size_class].end(), blocks.begin(), blocks.end());
    const size_t their_bytes = blocks.size() * kTable.block_bytes[size_class];
    listed += their_bytes;
    returned += their_bytes;
  }
  // Each of these moves at most `count` blocks from the source in its name to *out, and returns their number.
  size_t TakeListed(size_t size_class, size_t count, Blocks* out);
  size_t TakeFromRun(size_t size_class, size_t count, Blocks* out);
  // Takes at most `room` bytes.
  size_t TakeFresh(size_t size_class, size_t count, size_t room, Blocks* out);
  size_t TakeFromExtent(size_t size_class, size_t count, Blocks* out);
  size_t TakeFree(size_t size_class, size_t count, Blocks* out) {
    const size_t listed_ones = TakeListed(size_class, count, out);
    return listed_ones > 0 ? listed_ones : TakeFromRun(size_class, count, out);
  }

  bool IsWorthJoining(bool full) const {
    if (!may_join || returned == 0) return false;
    return full ? returned >= listed / kShareWorthJoiningWhenFull
                : returned >= std::max<size_t>(kWorthJoining, carved / kShareWorthJoining);
  }
  // Turns free neighbours of any class into runs.
  void Join();

  // Moves the huge pages of runs to `extents`, if the node takes them, and returns their bytes.
  size_t TrimRuns(Node& node);

  // Null if no freed extent is large enough. `rounded`: whole lines.
  std::byte* TakeExtent(size_t rounded);
  void AddExtent(std::byte* extent, size_t rounded);
};

size_t Part::TakeListed(size_t size_class, size_t count, Blocks* out) {
  Blocks& list = free[size_class];
  count = std::min(count, list.size());
  out->insert(out->end(), list.end() - static_cast<ptrdiff_t>(count), list.end());
  list.resize(list.size() - count);
  listed -= count * kTable.block_bytes[size_class];
  returned = std::min(returned, listed);
  return count;
}

// Takes from the smallest run that is large enough.
size_t Part::TakeFromRun(size_t size_class, size_t count, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  const auto found = runs.lower_bound(block_bytes);
  if (found == runs.end()) return 0;
  const auto [its_bytes, run] = *found;
  runs.erase(found);
  count = std::min(count, its_bytes / block_bytes);
  run_bytes -= count * block_bytes;
  for (size_t i = count; i > 0; --i) {
    std::byte* const block = run + (i - 1) * block_bytes;
    // A line that looks busy here was left so by a client that does not keep the rules. Without clients none may be.
    if (alone) {
      ContinueVersions(block, block_bytes / kLineBytes);
    } else {
      AbandonObject(block, block_bytes / kLineBytes);
    }
    out->push_back(block);
  }
  const size_t rest = its_bytes - count * block_bytes;
  if (rest > 0) runs.emplace(rest, run + count * block_bytes);
  return count;
}

size_t Part::TakeFresh(size_t size_class, size_t count, size_t room, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  count = std::min(count, room / block_bytes);
  // Caches allocate from the end of a list: neighbours are handed out in the order of their addresses.
  for (size_t i = count; i > 0; --i) out->push_back(begin + carved + (i - 1) * block_bytes);
  carved += count * block_bytes;
  GANNET_CHECK(carved <= bytes, "%d bytes of the %s part are carved, of %d", carved, name, bytes);
  if (count > 0) prefaulter->Advance(carved);
  return count;
}

std::byte* Part::TakeExtent(size_t rounded) {
  auto best = extents.end();
  for (auto at = extents.begin(); at != extents.end(); ++at) {
    if (at->second >= rounded && (best == extents.end() || at->second < best->second)) best = at;
  }
  if (best == extents.end()) return nullptr;
  const auto [taken, its_bytes] = *best;
  extents.erase(best);
  extent_bytes -= rounded;
  if (its_bytes > rounded) extents.emplace(taken + rounded, its_bytes - rounded);
  return taken;
}

void Part::AddExtent(std::byte* extent, size_t rounded) {
  extent_bytes += rounded;
  auto next = extents.lower_bound(extent);
  // Overlapping extents would be handed out twice.
  GANNET_CHECK(next == extents.end() || extent + rounded <= next->first,
               "%d bytes at %d are freed; those at %d are free", rounded, extent - begin, next->first - begin);
  const auto last = next == extents.begin() ? extents.end() : std::prev(next);
  GANNET_CHECK(last == extents.end() || last->first + last->second <= extent,
               "%d bytes at %d are freed; %d at %d are free", rounded, extent - begin, last->second,
               last->first - begin);
  if (next != extents.end() && next->first == extent + rounded) {
    rounded += next->second;
    next = extents.erase(next);
  }
  if (next != extents.begin()) {
    if (const auto before = std::prev(next); before->first + before->second == extent) {
      before->second += rounded;
      return;
    }
  }
  extents.emplace(extent, rounded);
}

// An extent is zero, as fresh memory is, so its blocks may be of any class.
size_t Part::TakeFromExtent(size_t size_class, size_t count, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  std::byte* extent = nullptr;
  for (; count > 0; count /= 2) {
    extent = TakeExtent(count * block_bytes);
    if (extent != nullptr) break;
  }
  for (size_t i = count; i > 0; --i) {
    std::byte* const block = extent + (i - 1) * block_bytes;
    // All lines: the block's user may leave some of them as they are.
    for (size_t at = 0; at < block_bytes && trimmed_version != 0; at += kLineBytes) {
      StoreWord(block + at, trimmed_version);
    }
    out->push_back(block);
  }
  return count;
}

// The whole huge pages of some memory.
std::span<std::byte> HugePagesOf(std::byte* memory, size_t bytes) {
  constexpr size_t kPage = BulkMemory::kHugePageBytes;
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(memory) % kPage) % kPage;
  if (bytes < before + kPage) return {};
  return {memory + before, (bytes - before) / kPage * kPage};
}

size_t Part::TrimRuns(Node& node) {
  size_t trimmed = 0;
  std::multimap<size_t, std::byte*> rest;
  for (const auto& [its_bytes, run] : runs) {
    const std::span<std::byte> pages = HugePagesOf(run, its_bytes);
    uint64_t newest = trimmed_version;
    for (size_t at = 0; at < pages.size(); at += kLineBytes) {
      newest = std::max(newest, (LoadWord(pages.data() + at) & kVersionMask) | kNotAState);
    }
    if (pages.empty() || !node.GiveBack(pages)) {
      rest.emplace(its_bytes, run);
      continue;
    }
    trimmed_version = newest;
    trimmed += pages.size();
    AddExtent(pages.data(), pages.size());
    const auto before = static_cast<size_t>(pages.data() - run);
    const size_t after = its_bytes - before - pages.size();
    if (before > 0) rest.emplace(before, run);
    if (after > 0) rest.emplace(after, pages.data() + pages.size());
  }
  runs = std::move(rest);
  run_bytes -= trimmed;
  return trimmed;
}

// A bitmap of the free lines of a part.
class FreeLines {
 public:
  explicit FreeLines(size_t lines) : lines_(lines), words_(lines / kBits + 1) {}
  void Add(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) words_[i / kBits] |= uint64_t{1} << i % kBits;
  }
  void Remove(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) words_[i / kBits] &= ~(uint64_t{1} << i % kBits);
  }
  bool Has(size_t line) const { return (words_[line / kBits] >> line % kBits & 1) != 0; }
  // The first free (or taken) line at or after `from`; end() if there is none.
  size_t NextFree(size_t from) const { return Next(from, 0); }
  size_t NextTaken(size_t from) const { return Next(from, ~uint64_t{0}); }
  size_t end() const { return lines_; }

 private:
  static constexpr size_t kBits = 64;
  size_t Next(size_t from, uint64_t flip) const {
    if (from >= lines_) return lines_;
    uint64_t word = (words_[from / kBits] ^ flip) >> from % kBits << from % kBits;
    for (size_t at = from / kBits;; word = words_[at] ^ flip) {
      if (word != 0) return std::min(lines_, at * kBits + static_cast<size_t>(__builtin_ctzll(word)));
      if (++at == words_.size()) return lines_;
    }
  }

  size_t lines_;
  std::vector<uint64_t> words_;
};

void Part::Join() {
  returned = 0;
  const auto line_of = [this](const std::byte* at) { return static_cast<size_t>(at - begin) / kLineBytes; };
  FreeLines lines(carved / kLineBytes);
  for (const auto& [its_bytes, run] : runs) lines.Add(line_of(run), its_bytes / kLineBytes);
  for (size_t i = 0; i < kClasses; ++i) {
    for (const std::byte* block : free[i]) lines.Add(line_of(block), kTable.block_bytes[i] / kLineBytes);
  }
  // Runs that are too short are not joined: their blocks stay in the lists, their rests stay runs.
  std::multimap<size_t, std::byte*> joined;
  for (size_t first = lines.NextFree(0); first < lines.end();) {
    const size_t end = lines.NextTaken(first);
    const size_t joined_bytes = (end - first) * kLineBytes;
    if (joined_bytes >= kSmallestRun) {
      joined.emplace(joined_bytes, begin + first * kLineBytes);
    } else {
      lines.Remove(first, end - first);
    }
    first = lines.NextFree(end);
  }
  for (const auto& [its_bytes, run] : runs) {
    if (!lines.Has(line_of(run))) joined.emplace(its_bytes, run);
  }
  runs = std::move(joined);
  for (size_t i = 0; i < kClasses; ++i) {
    const size_t gone = std::erase_if(free[i], [&](const std::byte* block) { return lines.Has(line_of(block)); });
    listed -= gone * kTable.block_bytes[i];
    run_bytes += gone * kTable.block_bytes[i];
  }
}

}  // namespace

// Owned by a SlabCache. Other threads take its free blocks when memory is full.
struct SlabCache::Classes {
  OwnerLock lock;  // guards `free`; owned by the cache's thread
  std::array<FreeBlocks, kParts> free;
  // Bytes in `free`. Only the lock's holder writes it; statistics() may read it at any time.
  std::atomic<uint64_t> free_bytes = 0;

  void AddFreeBytes(uint64_t bytes) {
    free_bytes.store(free_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

// Free blocks are listed outside of the blocks, so that only the users of a block write into it.
struct SlabAllocator::Shared {
  // Taken in this order: caches_mutex, a cache's lock, mutex.
  Mutex caches_mutex;
  std::vector<SlabCache::Classes*> caches;  // also guarded by `mutex`: a reader needs only one of them
  Mutex mutex;                              // guards the members below
  std::array<Part, kParts> parts;
  uint64_t free_bytes = 0;
  uint64_t most_bytes = UINT64_MAX;  // of both parts together
  std::function<void()> when_full;

  int PartOf(const std::byte* block) const { return block < parts[kWritable].begin ? kReadOnly : kWritable; }
  // Bytes of both parts that count for the limit: trimmed memory does not.
  size_t Taken() const { return parts[kReadOnly].carved + parts[kWritable].carved - parts[kWritable].extent_bytes; }
  // Bytes of fresh memory that the part may still take.
  size_t Room(const Part& part) const {
    GANNET_CHECK(Taken() <= most_bytes, "%d bytes of at most %d are taken", Taken(), most_bytes);
    return std::min(part.fresh(), most_bytes - Taken());
  }
  Status Full(const Part& part, size_t wanted) const {
    if (Room(part) == part.fresh()) return part.Full(wanted);
    return absl::ResourceExhaustedError(absl::StrCat("no room for ", wanted, " bytes: ", Taken(), " of ", most_bytes,
                                                     kBytesAreTaken, "; ", kGiveMemory));
  }
  // Moves up to a batch of blocks to `out`. Tries free blocks first, then joins free neighbours if that is worth it,
  // then takes fresh memory. `full`: no fresh memory is left and CollectAll has been called, so joining is worth more.
  // An error if no block is left.
  Status Refill(int part, size_t size_class, bool full, Blocks* out);
  // Does what AllocateExtent does, without trimming.
  StatusOr<std::byte*> TakeExtent(size_t bytes);
  // Collects all free memory: retired blocks that are free, and the caches' free blocks.
  void CollectAll();
  void EmptyCaches();
  // The read-only part is full because of the limit: trims the writable part if enough of it is free. Called after
  // CollectAll.
  void TrimForReadOnly(Node& node);
  // Moves the cache's free blocks to the lists. Called by the holder of the cache's lock.
  void Empty(SlabCache::Classes& cache);
};

Status SlabAllocator::Shared::Refill(int part, size_t size_class, bool full, Blocks* out) {
  const size_t block_bytes = kTable.block_bytes[size_class];
  const size_t batch = BatchOf(size_class);
  std::lock_guard lock(mutex);
  Part& from = parts[part];
  size_t count = from.TakeFree(size_class, batch, out);
  if (count == 0 && from.IsWorthJoining(full)) {
    from.Join();
    count = from.TakeFree(size_class, batch, out);
  }
  // Extents of the read-only part are rather kept for other extents.
  if (count == 0 && part == kWritable) {
    count = from.TakeFromExtent(size_class, std::min(batch, (most_bytes - Taken()) / block_bytes), out);
  }
  if (count == 0) {
    count = from.TakeFresh(size_class, batch, Room(from), out);
    if (count > 0) return absl::OkStatus();
    if (part == kReadOnly) count = from.TakeFromExtent(size_class, batch, out);
  }
  GANNET_CHECK(count * block_bytes <= free_bytes, "%d blocks of %d bytes were free, of %d free bytes", count,
               block_bytes, free_bytes);
  free_bytes -= count * block_bytes;
  return count > 0 ? absl::OkStatus() : Full(from, block_bytes);
}

void SlabAllocator::Shared::CollectAll() {
  std::function<void()> collect;
  {
    std::lock_guard lock(mutex);
    collect = when_full;
  }
  if (collect != nullptr) collect();
  EmptyCaches();
}

void SlabAllocator::Shared::TrimForReadOnly(Node& node) {
  std::lock_guard lock(mutex);
  if (most_bytes == UINT64_MAX) return;
  Part& part = parts[kWritable];
  const size_t free = part.listed + part.run_bytes;
  part.left_by_trim = std::min(part.left_by_trim, free);
  // Joining looks at all free blocks, so it must not be repeated for a few.
  if (free - part.left_by_trim < std::max(BulkMemory::kHugePageBytes, free / kShareWorthJoiningWhenFull)) return;
  if (part.returned > 0) part.Join();
  part.TrimRuns(node);
  part.left_by_trim = part.listed + part.run_bytes;
}

void SlabAllocator::Shared::EmptyCaches() {
  std::lock_guard lock(caches_mutex);
  for (SlabCache::Classes* cache : caches) {
    const OwnerLock::Visit visit(cache->lock);
    if (visit.entered()) Empty(*cache);
  }
}

void SlabAllocator::Shared::Empty(SlabCache::Classes& cache) {
  std::lock_guard lock(mutex);
  for (int part = 0; part < kParts; ++part) {
    for (size_t i = 0; i < kClasses; ++i) {
      parts[part].List(i, cache.free[part][i]);
      cache.free[part][i].clear();
    }
  }
  free_bytes += cache.free_bytes.exchange(0, std::memory_order_relaxed);
}

SlabAllocator::SlabAllocator(Node* node, uint64_t most_bytes) : node_(node), shared_(std::make_unique<Shared>()) {
  // With a limit, no other node reads this one's memory (Database::Open(directory, ...), OpenInMemory).
  if (most_bytes != 0) shared_->most_bytes = most_bytes;
  shared_->parts[kWritable].alone = most_bytes != 0;
  const uint64_t begin = RoundUp(node->heap_offset(), kLineBytes);
  const uint64_t middle = RoundUp(node->writable_offset(), kLineBytes);
  std::byte* const memory = node->memory().data();
  GANNET_CHECK(begin <= middle && middle < node->memory().size(), "node %d has %d bytes of memory, none of them heap",
               node->id(), node->memory().size());
  shared_->parts[kReadOnly].Open("read-only", memory + begin, middle - begin, false);
  shared_->parts[kWritable].Open("writable", memory + middle, node->memory().size() - middle, true);
}

SlabAllocator::~SlabAllocator() {
  GANNET_CHECK(shared_->caches.empty(), "%d caches outlive their allocator", shared_->caches.size());
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

StatusOr<std::byte*> SlabAllocator::AllocateExtent(size_t bytes) {
  StatusOr<std::byte*> extent = shared_->TakeExtent(bytes);
  if (extent.ok()) return extent;
  shared_->CollectAll();
  shared_->TrimForReadOnly(*node_);
  return shared_->TakeExtent(bytes);
}

StatusOr<std::byte*> SlabAllocator::Shared::TakeExtent(size_t bytes) {
  std::lock_guard lock(mutex);
  Part& part = parts[kReadOnly];
  if (std::byte* const freed = part.TakeExtent(RoundUp(bytes, kLineBytes)); freed != nullptr) {
    free_bytes -= RoundUp(bytes, kLineBytes);
    return freed;
  }
  const size_t room = Room(part);
  if (bytes > room) return Full(part, bytes);
  const size_t rounded = std::min(RoundUp(bytes, kLineBytes), room);
  return part.begin + std::exchange(part.carved, part.carved + rounded);
}

void SlabAllocator::FreeExtent(std::byte* extent, size_t bytes) {
  Part& part = shared_->parts[kReadOnly];
  // The last extent of the part may have ended with it, in the middle of a line: that line is not given back.
  const auto offset = static_cast<size_t>(extent - part.begin);
  const size_t rounded = std::min(RoundUp(bytes, kLineBytes), (part.bytes - offset) / kLineBytes * kLineBytes);
  GANNET_CHECK(offset < part.bytes && offset % kLineBytes == 0, "freed extent at offset %d", offset);
  if (rounded == 0) return;
  const std::span<std::byte> pages = HugePagesOf(extent, rounded);
  if (!pages.empty() && node_->GiveBack(pages)) {
    std::fill(extent, pages.data(), std::byte{0});
    std::fill(pages.data() + pages.size(), extent + rounded, std::byte{0});
  } else {
    std::fill_n(extent, rounded, std::byte{0});
  }
  std::lock_guard lock(shared_->mutex);
  GANNET_CHECK(offset < part.carved, "the extent at offset %d is freed; %d bytes are carved", offset, part.carved);
  part.AddExtent(extent, rounded);
  shared_->free_bytes += rounded;
}

uint64_t SlabAllocator::Trim(bool alone) {
  if (!alone) return 0;  // extents have been given back already
  // A cache has few blocks, but they may lie in as many pages.
  shared_->EmptyCaches();
  std::lock_guard lock(shared_->mutex);
  Part& part = shared_->parts[kWritable];
  if (part.returned > 0) part.Join();
  const size_t trimmed = part.TrimRuns(*node_);
  part.left_by_trim = part.listed + part.run_bytes;
  return trimmed;
}

uint64_t SlabAllocator::TrimIfWorth(bool alone) {
  {
    std::lock_guard lock(shared_->mutex);
    Part& part = shared_->parts[kWritable];
    const size_t free = part.listed + part.run_bytes;
    part.left_by_trim = std::min(part.left_by_trim, free);
    const size_t resident = part.carved - part.extent_bytes;
    if (free - part.left_by_trim < std::max<uint64_t>(kWorthTrimming, resident / 2)) return 0;
  }
  return Trim(alone);
}

SlabStatistics SlabAllocator::statistics() const {
  std::lock_guard lock(shared_->mutex);
  const Part& read_only = shared_->parts[kReadOnly];
  const Part& writable = shared_->parts[kWritable];
  SlabStatistics result{.capacity_bytes = std::min<uint64_t>(read_only.bytes + writable.bytes, shared_->most_bytes),
                        .carved_bytes = read_only.carved + writable.carved,
                        .free_bytes = shared_->free_bytes,
                        .trimmed_bytes = writable.extent_bytes,
                        .read_only_capacity_bytes = std::min<uint64_t>(read_only.bytes, shared_->most_bytes),
                        .read_only_carved_bytes = read_only.carved};
  for (const auto* cache : shared_->caches) result.free_bytes += cache->free_bytes.load(std::memory_order_relaxed);
  return result;
}

SlabCache::SlabCache(SlabAllocator* allocator) : allocator_(allocator), classes_(std::make_unique<Classes>()) {
  SlabAllocator::Shared& shared = *allocator_->shared_;
  std::lock_guard caches_lock(shared.caches_mutex);
  std::lock_guard lock(shared.mutex);
  shared.caches.push_back(classes_.get());
}

SlabCache::~SlabCache() {
  GiveBack();
  SlabAllocator::Shared& shared = *allocator_->shared_;
  std::lock_guard caches_lock(shared.caches_mutex);
  std::lock_guard lock(shared.mutex);
  std::erase(shared.caches, classes_.get());
}

void SlabCache::GiveBack() {
  std::lock_guard lock(classes_->lock);
  allocator_->shared_->Empty(*classes_);
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
  {
    std::lock_guard lock(classes_->lock);
    Blocks& blocks = classes_->free[kPart][size_class];
    if (!blocks.empty()) [[likely]]
      return TakeLast(blocks, size_class);
    if (Refill(kPart, size_class, false).ok()) return TakeLast(blocks, size_class);
  }
  // Outside of the lock, because this cache is emptied like all others.
  allocator_->shared_->CollectAll();
  if (kPart == kReadOnly) allocator_->shared_->TrimForReadOnly(*allocator_->node_);
  std::lock_guard lock(classes_->lock);
  GANNET_RETURN_IF_ERROR(Refill(kPart, size_class, true));
  return TakeLast(classes_->free[kPart][size_class], size_class);
}

// Called by the holder of the lock.
Status SlabCache::Refill(int part, size_t size_class, bool full) {
  Blocks& blocks = classes_->free[part][size_class];
  blocks.reserve(2 * BatchOf(size_class) + 1);
  const size_t before = blocks.size();
  GANNET_RETURN_IF_ERROR(allocator_->shared_->Refill(part, size_class, full, &blocks));
  classes_->AddFreeBytes((blocks.size() - before) * kTable.block_bytes[size_class]);
  return absl::OkStatus();
}

std::byte* SlabCache::TakeLast(std::vector<std::byte*>& blocks, size_t size_class) {
  std::byte* block = blocks.back();
  blocks.pop_back();
  // A fresh block, or one that was freed long ago, is not in the CPU's cache: prefetch the first line of one that will
  // be taken soon.
  if (blocks.size() > kPrefetchAhead) PrefetchToWrite(blocks[blocks.size() - 1 - kPrefetchAhead]);
  classes_->AddFreeBytes(-static_cast<uint64_t>(kTable.block_bytes[size_class]));
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
  std::lock_guard own_lock(classes_->lock);
  Blocks& blocks = classes_->free[part][size_class];
  blocks.push_back(block);
  classes_->AddFreeBytes(block_bytes);
  const size_t batch = BatchOf(size_class);
  if (blocks.size() <= 2 * batch) [[likely]]
    return;
  std::lock_guard lock(shared.mutex);
  shared.parts[part].List(size_class, std::span(blocks).last(batch));
  shared.free_bytes += batch * block_bytes;
  blocks.resize(blocks.size() - batch);
  classes_->AddFreeBytes(-(batch * block_bytes));
}

}  // namespace gannet::rdma
