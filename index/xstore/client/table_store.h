// TableStore: the memory of the translation tables that a client has cached.
//
// Tables lie in chunks, each table whole in one chunk. Chunks neither move nor are freed before the store is. So a
// reader may load words of a table while a writer gives its place to another one. The reader learns that from the
// version of the sub-model's slot (cached_generation.h), and discards what it loaded.
//
// When the limit is reached, a new table takes the place of others that were not used for a while: CLOCK over the
// tables in the order of their places. In a chunk the tables lie side by side, each behind a header that says whose it
// is. A hand goes around. It passes tables that were used since its last visit, once. From the others, and from free
// places, it makes one place after the other until they are long enough together; what is left over stays free in front
// of the hand. So neighbouring free places join again and no list of them is needed.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/cache_line.h"

namespace gannet::index::xstore {

// At may be called by any thread. All other calls come from one thread at a time, except bytes().
class TableStore {
 public:
  // Asked whether the table of this sub-model may give its place away. True: no reader will find it any more. `must`:
  // the answer has to be true.
  using Evict = absl::FunctionRef<bool(uint32_t sub_model, bool must)>;

  explicit TableStore(uint64_t max_bytes) : max_bytes_(max_bytes) {}
  TableStore(const TableStore&) = delete;
  TableStore& operator=(const TableStore&) = delete;

  // Makes room for a table of `entries` words and returns its place; nothing if the limit does not allow that.
  std::optional<uint32_t> Allocate(uint32_t sub_model, uint32_t entries, Evict evict);
  // The table at `place` is not used any more.
  void Free(uint32_t place);

  // The words of the table at a place that Allocate returned. They are accessed by LoadWord and StoreWord only. The
  // caller has loaded the place by an acquire from where the caller of Allocate stored it by a release.
  uint64_t* At(uint32_t place) const {
    return directory_.load(std::memory_order_acquire)[place >> kOffsetBits] + (place & kOffsetMask);
  }

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A place is the number of a chunk and an offset in it, in words.
  static constexpr int kOffsetBits = 22;
  static constexpr uint32_t kOffsetMask = (uint32_t{1} << kOffsetBits) - 1;
  static constexpr size_t kMostChunks = size_t{1} << (32 - kOffsetBits);
  static constexpr uint32_t kMostChunkWords = uint32_t{1} << kOffsetBits;  // 32 MiB
  static constexpr uint32_t kLeastChunkWords = 256;                        // 2 KiB
  // Most bytes that a chunk takes in directory_, its predecessors and chunks_.
  static constexpr uint64_t kChunkBytes = 64;

  // A piece of a chunk is a table behind its header, or a free place.
  struct Header {
    uint32_t words = 0;  // of the piece, with this one
    uint32_t sub_model = kFree;
  };
  static constexpr uint32_t kFree = UINT32_MAX;
  static_assert(sizeof(Header) == kWordBytes);

  struct Chunk {
    std::unique_ptr<uint64_t[]> memory;
    uint32_t words = 0;
  };

  static uint32_t PlaceOf(size_t chunk, uint32_t offset) {
    return static_cast<uint32_t>(chunk << kOffsetBits) | offset;
  }
  Header HeaderAt(uint32_t place) const { return std::bit_cast<Header>(LoadWord(At(place))); }
  void SetHeader(uint32_t place, const Header& header) { StoreWord(At(place), std::bit_cast<uint64_t>(header)); }
  uint32_t room() const { return chunks_.empty() ? 0 : chunks_.back().words - end_; }
  void CloseLast();
  bool Grow(uint32_t words);
  void Publish(uint64_t* chunk);
  uint32_t MakePlace(uint32_t words, Evict evict);

  const uint64_t max_bytes_;
  // The chunks' memory, for readers. It is replaced by a longer one when it is full. Readers may still be in the old
  // ones, so these stay.
  std::atomic<uint64_t**> directory_{nullptr};
  // The rest changes with each table, so it is in other lines than what readers load.
  alignas(kLineBytes) std::atomic<uint64_t> bytes_{0};
  std::vector<std::unique_ptr<uint64_t*[]>> directories_;
  size_t directory_size_ = 0;
  std::vector<Chunk> chunks_;
  uint32_t largest_ = 0;  // words of the largest chunk
  uint32_t end_ = 0;      // of the pieces of the last chunk
  size_t hand_chunk_ = 0;
  uint32_t hand_ = 0;  // offset of the next piece that CLOCK visits
};

}  // namespace gannet::index::xstore
