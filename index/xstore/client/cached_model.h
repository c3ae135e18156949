// CachedModel: a client's cache of an owner's model. 18 bytes per sub-model, and in kWhole mode 8 bytes per entry of
// the translation tables that it has fetched, as far as max_bytes allows.
//
// A stale cache costs READs and never gives a wrong answer, so nothing expires: sub-models are replaced when a lookup
// finds a newer one.
//
// When max_bytes is reached, a new table takes the place of others that were not used for a while: CLOCK over the
// tables in the order of their places. The tables lie side by side, each behind a header that says whose it is. A hand
// goes around. It passes tables that were used since its last visit, once. From the others, and from free places, it
// makes one place after the other until they are long enough together; what is left over stays free in front of the
// hand. So neighbouring free places join again and no list of them is needed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "index/xstore/model/sub_model.h"
#include "index/xstore/model/top_model.h"
#include "index/xstore/model/translation_table.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

// Not thread-safe.
class CachedModel {
 public:
  explicit CachedModel(const XCacheOptions& options) : options_(options) {}

  // Begins a new generation with only the top model and the places of the sub-models' lines.
  void Reset(uint64_t generation, TopModel top, std::vector<uint32_t> directory);

  // 0: no model yet.
  uint64_t generation() const { return generation_; }
  const TopModel& top() const { return top_; }
  // Offset of a sub-model's line in the owner's memory.
  uint64_t LineOffset(uint32_t sub_model) const;

  bool keeps_tables() const { return mode_ == XCacheMode::kWhole; }
  // A lookup of an uncached sub-model has two postings, one for the model and one for its table. Returns how many of
  // them bring what stays in the cache.
  double lasting_postings() const {
    if (mode_ == XCacheMode::kWhole) return bytes() < options_.max_bytes / 16 * 15 ? 2 : 0;  // if it is full, others go
    return mode_ == XCacheMode::kModelOnly ? 1 : 0;
  }

  // The sub-model and the block number of its table, in kModelOnly mode. False if it is not cached.
  bool FindModel(uint32_t sub_model, SubModel* model, uint32_t* table) const;
  // The sub-model and its table, in kWhole mode; the table is valid until the next change. False if not cached. Counts
  // as a use of the table.
  bool FindTable(uint32_t sub_model, SubModel* model, std::span<const uint64_t>* table) const;

  // Adds them if the mode asks for it and there is room.
  void PutModel(uint32_t sub_model, const SubModel& model, uint32_t table);
  void PutTable(uint32_t sub_model, const SubModel& model, std::span<const uint64_t> table);

  // True if it pays to READ only the predicted slots of a leaf. It does, unless many of the keys looked up are absent
  // or were inserted after the training. Both are also noticed while whole leaves are READ.
  bool trusts_slots() const { return credit_ >= 0; }
  void NoteSlots(bool held) {
    constexpr int kMostCredit = 256;
    constexpr int kMissCost = 15;  // a miss costs a round trip; a hit saves some lines
    credit_ = held ? std::min(credit_ + 1, kMostCredit) : std::max(credit_ - kMissCost, -kMostCredit);
  }

  // All memory of this object.
  uint64_t bytes() const;

 private:
  // `table`: the place of the table (kWhole: in tables_; kModelOnly: its block number).
  struct __attribute__((packed)) Slot {
    float slope;
    float intercept;
    uint8_t under;
    uint8_t over;
    uint32_t spread : 8;
    uint32_t size : 24;  // 0: not cached
    uint32_t table;
  };
  static_assert(sizeof(Slot) == kCachedSubModelBytes && kMaxTableEntries < 1u << 24);

  static SubModel ModelOf(const Slot& slot);
  void Store(uint32_t sub_model, const SubModel& model, uint32_t table);
  void FreeTable(Slot& slot);
  bool AllocateTable(uint32_t sub_model, uint32_t size, uint32_t* at);
  bool GrowTables(size_t words);
  size_t MakePlace(size_t words);
  void DropAllTables();

  XCacheOptions options_;
  XCacheMode mode_ = XCacheMode::kTopOnly;  // options_.mode, or less if max_bytes does not allow it
  uint64_t generation_ = 0;
  TopModel top_;
  std::vector<uint32_t> directory_;
  std::vector<Slot> slots_;
  // Header of a piece of tables_: a table, or a free place.
  struct Header {
    uint32_t words = 0;  // of the piece, with this one
    uint32_t sub_model : 31 = kFree;
    uint32_t used : 1 = 0;  // since the hand was here
  };
  static constexpr uint32_t kFree = (uint32_t{1} << 31) - 1;
  static_assert(sizeof(Header) == sizeof(uint64_t));
  Header HeaderAt(size_t at) const { return std::bit_cast<Header>(tables_[at]); }
  void SetHeader(size_t at, const Header& header) const { tables_[at] = std::bit_cast<uint64_t>(header); }

  // Pieces, each a header and the entries of a table, up to tables_end_. (Mutable for Header::used.)
  mutable std::vector<uint64_t> tables_;
  size_t tables_end_ = 0;
  size_t hand_ = 0;  // the next piece that CLOCK visits
  int credit_ = 0;
};

}  // namespace gannet::index::xstore
