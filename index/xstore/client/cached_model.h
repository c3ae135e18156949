// CachedModel: a client's cache of an owner's model. 18 bytes per sub-model, and in kWhole mode 8 bytes per entry of
// the translation tables that it has fetched, as far as max_bytes allows.
//
// A stale cache costs READs and never gives a wrong answer, so nothing expires: sub-models are replaced when a lookup
// finds a newer one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
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
  // Of the two postings that bring a sub-model and its table: how many bring what stays in the cache.
  double lasting_postings() const {
    if (mode_ == XCacheMode::kWhole)
      return bytes() < options_.max_bytes / 16 * 15 ? 2 : 0;  // a full cache drops tables
    return mode_ == XCacheMode::kModelOnly ? 1 : 0;
  }

  // The sub-model and the block number of its table, in kModelOnly mode. False if it is not cached.
  bool FindModel(uint32_t sub_model, SubModel* model, uint32_t* table) const;
  // The sub-model and its table, in kWhole mode; the table is valid until the next change. False if not cached.
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
  bool AllocateTable(uint32_t size, uint32_t* at);
  bool GrowTables(uint32_t size);
  void DropAllTables();

  XCacheOptions options_;
  XCacheMode mode_ = XCacheMode::kTopOnly;  // options_.mode, or less if max_bytes does not allow it
  uint64_t generation_ = 0;
  TopModel top_;
  std::vector<uint32_t> directory_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> tables_;                     // entries of all cached tables; also holes
  size_t tables_used_ = 0;                           // entries of tables_ that were ever in use
  std::map<uint32_t, std::vector<uint32_t>> holes_;  // by size
  uint64_t hole_bytes_ = 0;                          // size of holes_ itself
  int credit_ = 0;
};

}  // namespace gannet::index::xstore
