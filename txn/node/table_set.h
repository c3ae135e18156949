// TableSet: the tables of a database, by number. Numbers ascend in the order in which tables were created, and may have
// gaps.
//
// One thread at a time adds or removes; any thread may read at the same time, without a lock. A table stays where it is
// until the set is destroyed, also one that was removed. Its place is stored (release) after it is complete, so a
// reader that finds it (acquire) finds all of it; the bound is raised last, so a reader sees a place below the bound or
// meets null there.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "txn/store/table.h"

namespace gannet::txn {

class TableSet {
 public:
  static constexpr size_t kMost = size_t{1} << 16;  // numbers of 16 bits

  // The number is greater than those of all tables before it.
  Table* Add(std::unique_ptr<Table> table) {
    const TableId id = table->id();
    std::atomic<Chunk*>& place = chunks_[id / kChunk];
    if (place.load(std::memory_order_relaxed) == nullptr) {
      owned_chunks_.push_back(std::make_unique<Chunk>());
      place.store(owned_chunks_.back().get(), std::memory_order_release);
    }
    owned_.push_back(std::move(table));
    Table* const added = owned_.back().get();
    (*place.load(std::memory_order_relaxed))[id % kChunk].store(added, std::memory_order_release);
    size_.fetch_add(1, std::memory_order_relaxed);
    bound_.store(id + size_t{1}, std::memory_order_release);
    return added;
  }

  // Whoever has found the table may keep it. One thread at a time adds or removes.
  void Remove(TableId id) {
    removed_[id / kBits].fetch_or(uint64_t{1} << id % kBits, std::memory_order_release);
    (*chunks_[id / kChunk].load(std::memory_order_relaxed))[id % kChunk].store(nullptr, std::memory_order_release);
    size_.fetch_sub(1, std::memory_order_relaxed);
    removals_.fetch_add(1, std::memory_order_release);
  }

  // Number of tables that were removed. Grows when WasRemoved can tell which.
  size_t removals() const { return removals_.load(std::memory_order_acquire); }

  // True if there was a table with this number, and no longer. False, too, for one that was never added.
  bool WasRemoved(TableId id) const {
    return (removed_[id / kBits].load(std::memory_order_acquire) >> id % kBits & 1) != 0;
  }

  // Null if there is none: a number from a peer may be wrong.
  Table* ById(TableId id) const {
    const Chunk* const chunk = chunks_[id / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : (*chunk)[id % kChunk].load(std::memory_order_acquire);
  }
  // Null if there is none.
  Table* Find(std::string_view name) const {
    for (Table* table : *this) {
      if (table->name() == name) return table;
    }
    return nullptr;
  }

  // Called before the first secondary index of a table is kept.
  void NoteSecondaryIndex() { has_secondary_indexes_.store(true, std::memory_order_release); }
  // False: no table has a secondary index.
  bool has_secondary_indexes() const { return has_secondary_indexes_.load(std::memory_order_acquire); }

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // A bound that is greater than every number: the size of arrays that have a place for each table that there is now.
  size_t id_bound() const { return bound_.load(std::memory_order_acquire); }

  // Iterates over the tables that there were at begin(), by number.
  class Iterator {
   public:
    explicit Iterator(const TableSet* set) : set_(set), bound_(set->id_bound()) { SkipGap(); }
    Table* operator*() const { return table_; }
    Iterator& operator++() {
      ++id_;
      SkipGap();
      return *this;
    }
    bool operator!=(std::default_sentinel_t) const { return id_ < bound_; }

   private:
    // Looks once: the table may be removed at any time.
    void SkipGap() {
      for (; id_ < bound_; ++id_) {
        table_ = set_->ById(static_cast<TableId>(id_));
        if (table_ != nullptr) return;
      }
    }
    const TableSet* set_;
    size_t id_ = 0;
    size_t bound_;
    Table* table_ = nullptr;
  };
  Iterator begin() const { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  static constexpr size_t kChunk = 256;
  static constexpr size_t kBits = 64;
  using Chunk = std::array<std::atomic<Table*>, kChunk>;

  std::array<std::atomic<Chunk*>, kMost / kChunk> chunks_{};
  std::array<std::atomic<uint64_t>, kMost / kBits> removed_{};  // a bit for each number
  std::atomic<size_t> bound_{0};
  std::atomic<size_t> size_{0};
  std::atomic<size_t> removals_{0};
  std::atomic<bool> has_secondary_indexes_{false};
  std::vector<std::unique_ptr<Chunk>> owned_chunks_;  // this and the next: by the thread that adds
  std::vector<std::unique_ptr<Table>> owned_;
};

}  // namespace gannet::txn
