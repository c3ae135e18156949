// CachedGeneration: what the clients of a process have cached of one generation of an owner's model. 24 bytes per
// sub-model, and in kWhole mode 8 bytes per entry of the translation tables that they have fetched, as far as max_bytes
// allows (table_store.h).
//
// A stale cache costs READs and never gives a wrong answer, so nothing expires: sub-models are replaced when a lookup
// finds a newer one.
//
// Any thread may call anything. The top model and the directory do not change. Each sub-model has a slot of three
// words:
//
//   place    | version, lower bits (17) | size (15) | table (32) |      size 0: not cached
//   line     | intercept (32) | slope (32) |
//   errors   | version, upper bits (39) | used (1) | spread (8) | over (8) | under (8) |      used: for CLOCK
//
// Writers hold the mutex. A reader takes no lock and does not write, apart from setting `used` where it is not set. It
// is a seqlock for each slot, which also covers the slot's table:
//
//   writer   place = odd version;  errors, line, table's words = new;  place = next even version, size, table
//   reader   errors;  place: even;  line, some of the table's words;  place and errors again: the same, or all is void
//
// All these accesses are atomic: loads are acquires, stores are releases. If the reader loads a word that a writer has
// stored, the writer's earlier store of an odd version happens before the reader's second load of `place`, which then
// gets that version or a later one. (As all loads are acquires, none is moved behind that second load: the fence of
// Boehm's seqlock, MSPC'12, is not needed. On x86-64 all are plain moves.) A table that is evicted gets a new version
// before its words are overwritten, so the same holds for them. The first load of `place` makes what was written before
// it visible.
//
// Size and table are in one word. So a reader never leaves the memory of the table store, also while it computes with
// values that are void. (Void words may be those of another table, or a header of the store: nothing is READ by them.)
//
// A version does not repeat, also while a reader sleeps: it has 56 bits. Its upper bits change only while the lower
// ones are odd. A reader that loads the same upper bits before and after both loads of `place` has thus loaded both
// between two changes of the upper bits, and there the lower bits do not repeat.
//
// A reader that meets a writer tries again a few times, then does as if the sub-model were not cached. A writer that
// finds another writer does not wait: it leaves the cache as it is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/thread.h"
#include "index/xstore/client/table_store.h"
#include "index/xstore/model/sub_model.h"
#include "index/xstore/model/sub_model_line.h"
#include "index/xstore/model/top_model.h"
#include "index/xstore/model/translation_table.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

// A sub-model with its translation table, while a reader looks at them.
class CachedTable {
 public:
  CachedTable(const SubModel& model, const uint64_t* entries) : model_(model), entries_(entries) {}

  const SubModel& model() const { return model_; }
  // `i` < model().size.
  uint64_t word(uint32_t i) const { return LoadWord(entries_ + i); }
  TableEntry entry(uint32_t i) const { return TableEntry::Unpack(word(i)); }

 private:
  SubModel model_;
  const uint64_t* entries_;
};

class CachedGeneration {
 public:
  // Begins with nothing but the top model and the places of the sub-models' lines.
  CachedGeneration(XCacheMode mode, size_t max_bytes, uint64_t number, TopModel top, std::vector<uint32_t> directory);
  CachedGeneration(const CachedGeneration&) = delete;
  CachedGeneration& operator=(const CachedGeneration&) = delete;

  // 0: no model yet.
  uint64_t number() const { return number_; }
  const TopModel& top() const { return top_; }
  const std::vector<uint32_t>& directory() const { return directory_; }
  // Offset of a sub-model's line in the owner's memory.
  uint64_t LineOffset(uint32_t sub_model) const {
    return (uint64_t{directory_[sub_model / kLinesPerBlock]} + sub_model % kLinesPerBlock) * kLineBytes;
  }

  bool keeps_tables() const { return mode_ == XCacheMode::kWhole; }
  // A lookup of an uncached sub-model has two postings, one for the model and one for its table. Returns how many of
  // them bring what stays in the cache.
  double lasting_postings() const {
    if (mode_ == XCacheMode::kWhole) return bytes() < max_bytes_ / 16 * 15 ? 2 : 0;  // if it is full, others go
    return mode_ == XCacheMode::kModelOnly ? 1 : 0;
  }

  // The sub-model and the block number of its table, in kModelOnly mode. False if it is not cached.
  bool FindModel(uint32_t sub_model, SubModel* model, uint32_t* table) const;
  // Calls look(const CachedTable&) in kWhole mode. True: the last call saw a sub-model with its table; what earlier
  // calls saw is void. False: not cached; what all calls saw is void. Void values are within the bounds that are stated
  // for them, so `look` may compute with them. It must not keep the CachedTable. Counts as a use of the table. In other
  // modes `look` is not called.
  template <class Look>
  bool FindTable(uint32_t sub_model, const Look& look) const {
    return mode_ == XCacheMode::kWhole && ReadSlot(slots_[sub_model], [&](const SubModel& model, uint32_t table) {
             look(CachedTable(model, tables_.At(table)));
           });
  }

  // Add them if the mode asks for it, there is room and no other thread writes. What is there already is not written
  // again.
  void PutModel(uint32_t sub_model, const SubModel& model, uint32_t table);
  void PutTable(uint32_t sub_model, const SubModel& model, std::span<const uint64_t> table);

  // Puts all that `other`, of the same generation, has.
  void FillFrom(const CachedGeneration& other);

  // All memory of this object.
  uint64_t bytes() const { return own_bytes_ + tables_.bytes(); }

 private:
  struct Slot {
    uint64_t place = 0;  // of the table: kWhole: in tables_; kModelOnly: its block number
    uint64_t line = 0;
    mutable uint64_t errors = 0;  // readers set `used`
  };
  static constexpr int kSizeBits = 15;
  static constexpr uint64_t kSizeMask = (uint64_t{1} << kSizeBits) - 1;
  static constexpr int kVersionShift = 32 + kSizeBits;
  static constexpr uint64_t kLastLowerVersion = UINT64_MAX >> kVersionShift;  // odd
  static constexpr uint64_t kUsed = uint64_t{1} << 24;
  static constexpr uint64_t kUpperVersion = uint64_t{1} << 25;  // its unit
  static_assert(sizeof(Slot) == kCachedSubModelBytes && kMaxTableEntries <= kSizeMask);
  static constexpr int kTries = 16;  // with pauses, about a microsecond

  static constexpr uint32_t TableIn(uint64_t place) { return static_cast<uint32_t>(place); }
  static constexpr uint32_t SizeIn(uint64_t place) { return static_cast<uint32_t>(place >> 32 & kSizeMask); }
  static constexpr bool IsBeingWritten(uint64_t place) { return (place >> kVersionShift & 1) != 0; }
  // The next version, with this size and table. Its lower bits may be 0 again.
  static constexpr uint64_t After(uint64_t place, uint32_t size, uint32_t table) {
    return ((place >> kVersionShift) + 1) << kVersionShift | uint64_t{size} << 32 | table;
  }

  static SubModel ModelFrom(uint64_t line, uint64_t errors, uint64_t place) {
    return {.slope = std::bit_cast<float>(static_cast<uint32_t>(line)),
            .intercept = std::bit_cast<float>(static_cast<uint32_t>(line >> 32)),
            .under = static_cast<uint8_t>(errors),
            .over = static_cast<uint8_t>(errors >> 8),
            .spread = static_cast<uint8_t>(errors >> 16),
            .size = SizeIn(place)};
  }
  // Calls look(const SubModel&, uint32_t table) as FindTable does.
  template <class Look>
  static bool ReadSlot(const Slot& slot, const Look& look) {
    for (int i = 0; i < kTries; ++i) {
      const uint64_t errors = LoadWord(&slot.errors);
      const uint64_t place = LoadWord(&slot.place);
      if (IsBeingWritten(place)) [[unlikely]] {
        CpuRelax();
        continue;
      }
      if (SizeIn(place) == 0) return false;
      look(ModelFrom(LoadWord(&slot.line), errors, place), TableIn(place));
      if (LoadWord(&slot.place) != place || ((LoadWord(&slot.errors) ^ errors) & ~kUsed) != 0) [[unlikely]]
        continue;
      // If this fails, the mark is there, or was just taken away, or the slot has changed.
      if ((errors & kUsed) == 0) CompareAndSwapWord(&slot.errors, errors, errors | kUsed);
      return true;
    }
    return false;
  }
  // The rest is called by writers.
  static uint64_t BeginWrite(Slot& slot);
  bool Has(const Slot& slot, const SubModel& model, uint32_t table, std::span<const uint64_t> entries) const;
  void Write(Slot& slot, const SubModel& model, uint32_t table, std::span<const uint64_t> entries);
  static void Drop(Slot& slot);
  bool MayEvict(uint32_t sub_model, bool must);

  const uint64_t number_;
  const TopModel top_;
  const std::vector<uint32_t> directory_;
  const size_t max_bytes_;
  const XCacheMode mode_;  // that of the options, or less if max_bytes does not allow it
  std::vector<Slot> slots_;
  const uint64_t own_bytes_;  // of all but the tables
  TableStore tables_;
  Mutex mutex_;  // held by writers; behind tables_, away from what readers load
};

}  // namespace gannet::index::xstore
