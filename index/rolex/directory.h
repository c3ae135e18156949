// The directory of a ROLEX index: which model is for which keys. The models of an index are for intervals that follow
// each other, from key 0 to the last one (FAST'23, 3.3: the upper models; here two levels of tables).
//
// In registered memory that other nodes may only READ:
//
//   root      pointer to the top
//   top       | checksum | pages | per page: first key 8, pointer 8 |        one block that does not change
//   page      | models | 0 | per model: first key 8, pointer 8 |             the pointers change
//
//   pointer   offset / 64 of a block (40) | its lines (24) |
//
// The words with the numbers of pages and models also have the blocks' masks (quiet_lines.h).
//
// A model is replaced by one store of its pointer (the paper's shadow redirection, 3.5). If it becomes several models,
// or is merged with another, the page is written anew, and so is the top. A client that follows an old pointer finds
// the old model, which still leads somewhere near, or another block, which the checksum and the first key show.
#pragma once

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

namespace gannet::index::rolex {

inline constexpr size_t kMostModels = 256;  // of a page
inline constexpr size_t kMostPages = 8000;
inline constexpr size_t kPageHeaderBytes = 16;
inline constexpr size_t kPageBytes = kPageHeaderBytes + kMostModels * 16;

struct DirectoryEntry {
  uint64_t first = 0;    // key
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

// The index of the last entry whose first key is at most `key`; 0 if there is none. `entries` is not empty.
size_t FindEntry(std::span<const DirectoryEntry> entries, uint64_t key);

// Decodes a top or a page that was READ. Empty: it is none.
std::vector<DirectoryEntry> DecodeTop(std::span<const std::byte> block);
std::vector<DirectoryEntry> DecodePage(std::span<const std::byte> block);

// A model at its owner.
struct OwnModel {
  Model model;
  std::byte* block = nullptr;     // the model in registered memory
  std::byte* synonyms = nullptr;  // its synonym table
};

// The owner's side. Readers are in any threads, inside the epoch; one thread at a time changes it.
class Directory {
 public:
  explicit Directory(IndexService* service);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // The first content, and any later one: models whose intervals follow each other from 0 to UINT64_MAX.
  // ResourceExhausted: the heap is full, or there are too many; then nothing is changed.
  Status Fill(Context& context, std::vector<std::unique_ptr<OwnModel>> models);
  // Replaces models that follow each other, of one page, by others for the same keys. Those replaced are destroyed
  // after the grace period, and their blocks in registered memory given back.
  Status Replace(Context& context, std::span<const OwnModel* const> old, std::vector<std::unique_ptr<OwnModel>> fresh);

  // A new model, in registered memory, with an empty synonym table.
  StatusOr<std::unique_ptr<OwnModel>> Make(Context& context, Model model);
  // Gives back a model that Make has made, and that is not part of the directory.
  void Discard(std::unique_ptr<OwnModel> model);

  // The model for a key; null before Fill.
  const OwnModel* Find(uint64_t key) const;
  // The models before and after this one, if they are in the same page; null otherwise.
  struct Neighbours {
    const OwnModel* before = nullptr;
    const OwnModel* after = nullptr;
  };
  Neighbours NeighboursOf(const OwnModel& model) const;
  // All models in order.
  std::vector<const OwnModel*> All() const;

  uint64_t root_offset() const { return static_cast<uint64_t>(root_ - memory_); }
  // Registered memory of the directory and the models.
  uint64_t bytes() const { return pages_->bytes() + models_->bytes() + synonyms_->bytes(); }

 private:
  struct Page {
    std::byte* block = nullptr;
    std::vector<uint64_t> firsts;
    std::vector<std::atomic<const OwnModel*>> models;

    explicit Page(size_t n) : firsts(n), models(n) {}
  };
  struct Top {
    std::byte* block = nullptr;
    size_t block_bytes = 0;
    std::vector<uint64_t> firsts;
    std::vector<Page*> pages;
  };

  static size_t FindFirst(std::span<const uint64_t> firsts, uint64_t key);
  StatusOr<std::unique_ptr<Page>> MakePage(Context& context, std::span<const OwnModel* const> models);
  // Publishes a top over `pages`.
  Status Publish(Context& context, std::vector<Page*> pages);
  uint64_t OffsetOf(const std::byte* block) const { return static_cast<uint64_t>(block - memory_); }
  uint64_t PointerTo(const OwnModel& model) const {
    return BlockPointer::Pack(OffsetOf(model.block), model.model.bytes());
  }
  void RetireModel(Context& context, const OwnModel* model);
  void RetirePage(Context& context, Page* page);

  IndexService* service_;
  std::byte* memory_;
  std::shared_ptr<BlockPool> pages_ = std::make_shared<BlockPool>();  // root, tops, pages
  std::shared_ptr<BlockPool> models_ = std::make_shared<BlockPool>();
  std::shared_ptr<BlockPool> synonyms_ = std::make_shared<BlockPool>(BlockPool::Part::kWritable);
  std::byte* root_ = nullptr;
  std::atomic<const Top*> top_{nullptr};
};

}  // namespace gannet::index::rolex
