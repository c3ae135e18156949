// The directory of a ROLEX index: which model is for which keys. The models of an index are for intervals that follow
// each other, from the least key to the greatest (FAST'23, 3.3: the upper models; here two levels of tables).
//
// The form in registered memory that other nodes may only READ:
//
//   root      pointer to the top
//   top       | checksum | pages | pointer 8, per page | first key, per page |       one block that does not change
//   page      | 0 | models | pointer 8, per model | first key, per model |           the pointers change
//
//   pointer   offset / 64 of a block (40) | its lines (24) |
//   key       an integer 8; of byte keys a length 1, and as many bytes
//
// The words with the numbers of pages and models also have the blocks' masks (quiet_lines.h).
//
// A model is replaced by one store of its pointer (the paper's shadow redirection, 3.5). If it becomes several models,
// or is merged with another, the page is written again, and so is the top. A client that follows an old pointer finds
// the old model, which still leads somewhere near, or another block, which the checksum and the first key show.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/block_pool.h"
#include "index/index.h"
#include "index/rolex/model.h"
#include "index/service.h"
#include "index/types.h"

namespace gannet::index::rolex {

inline constexpr size_t kMostModels = 256;  // of a page
inline constexpr size_t kMostPages = 8000;  // and whose first keys have room in the largest block there is

template <class Keys>
struct DirectoryEntry {
  typename Keys::Key first{};
  uint64_t pointer = 0;  // to a model, or a page
};

struct BlockPointer {
  static constexpr int kLinesBits = 24;

  uint64_t offset = 0;
  size_t bytes = 0;  // of whole lines

  static uint64_t Pack(uint64_t offset, size_t bytes) {
    return offset / kLineBytes << kLinesBits | (bytes + kLineBytes - 1) / kLineBytes;
  }
  static BlockPointer Unpack(uint64_t word) {
    return {.offset = (word >> kLinesBits) * kLineBytes,
            .bytes = (word & ((uint64_t{1} << kLinesBits) - 1)) * kLineBytes};
  }
};

// The index of the last entry whose first key is at most that of `point`; 0 if there is none. `entries` is not empty.
template <class Keys>
size_t FindEntry(std::span<const DirectoryEntry<Keys>> entries, const typename Keys::Point& point) {
  const auto after = std::partition_point(entries.begin(), entries.end(), [&point](const DirectoryEntry<Keys>& entry) {
    return Keys::IsAtMost(entry.first, point);
  });
  return after == entries.begin() ? 0 : static_cast<size_t>(after - entries.begin() - 1);
}

// Decodes a top or a page that was READ. Empty: it is none.
template <class Keys>
std::vector<DirectoryEntry<Keys>> DecodeTop(std::span<const std::byte> block);
template <class Keys>
std::vector<DirectoryEntry<Keys>> DecodePage(std::span<const std::byte> block);

// A model at its owner.
template <class Keys>
struct OwnModel {
  BasicModel<Keys> model;
  std::byte* block = nullptr;     // the model in registered memory
  std::byte* synonyms = nullptr;  // its synonym table
};

// The owner's side. Readers are in any threads, inside the epoch; one thread at a time changes it.
// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class Directory {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Own = OwnModel<Keys>;

  // `rights`: of the synonym tables.
  explicit Directory(IndexService* service, IndexRights rights = IndexRights::kClients);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // The first content, and any later one: models whose intervals follow each other, for all keys.
  // ResourceExhausted: the heap is full, or there are too many; then nothing is changed.
  Status Fill(Context& context, std::vector<std::unique_ptr<Own>> models);
  // Replaces models that follow each other, of one page, by others for the same keys. Those replaced are destroyed
  // after the grace period, and their blocks in registered memory given back.
  Status Replace(Context& context, std::span<const Own* const> old, std::vector<std::unique_ptr<Own>> fresh);

  // A new model, in registered memory, with an empty synonym table.
  StatusOr<std::unique_ptr<Own>> Make(Context& context, BasicModel<Keys> model);
  // Gives back a model that Make has made, and that is not part of the directory.
  void Discard(std::unique_ptr<Own> model);

  // The model for a point; null before Fill.
  const Own* Find(const Point& point) const;
  // The models before and after this one, if they are in the same page; null otherwise.
  struct Neighbours {
    const Own* before = nullptr;
    const Own* after = nullptr;
  };
  Neighbours NeighboursOf(const Own& model) const;
  // All models in order.
  std::vector<const Own*> All() const;

  uint64_t root_offset() const { return static_cast<uint64_t>(root_ - memory_); }
  // Registered memory of the directory and the models.
  uint64_t bytes() const { return pages_->bytes() + models_->bytes() + synonyms_->bytes(); }

 private:
  struct Page {
    std::byte* block = nullptr;
    size_t block_bytes = 0;
    uint64_t mask = 0;  // of the block (quiet_lines.h)
    std::vector<Key> firsts;
    std::vector<std::atomic<const Own*>> models;

    explicit Page(size_t n) : firsts(n), models(n) {}
  };
  struct Top {
    std::byte* block = nullptr;
    size_t block_bytes = 0;
    std::vector<Key> firsts;
    std::vector<Page*> pages;
  };

  static size_t FindFirst(std::span<const Key> firsts, const Point& point);
  StatusOr<std::unique_ptr<Page>> MakePage(Context& context, std::span<const Own* const> models);
  // Publishes a top over `pages`.
  Status Publish(Context& context, std::vector<Page*> pages);
  uint64_t OffsetOf(const std::byte* block) const { return static_cast<uint64_t>(block - memory_); }
  uint64_t PointerTo(const Own& model) const { return BlockPointer::Pack(OffsetOf(model.block), model.model.bytes()); }
  void RetireModel(Context& context, const Own* model);
  void RetirePage(Context& context, Page* page);

  IndexService* service_;
  std::byte* memory_;
  const IndexRights rights_;
  std::shared_ptr<BlockPool> pages_ = std::make_shared<BlockPool>();  // root, tops, pages
  std::shared_ptr<BlockPool> models_ = std::make_shared<BlockPool>();
  std::shared_ptr<BlockPool> synonyms_;
  std::byte* root_ = nullptr;
  std::atomic<const Top*> top_{nullptr};
};

}  // namespace gannet::index::rolex
