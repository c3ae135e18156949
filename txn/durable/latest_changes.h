// The newest change of every key in the log. Filled by several threads at once.
//
// A log has tens of millions of changes, and each is a cache miss somewhere in gigabytes. So:
//   - What a change wrote goes into a record at once, which later enters the table's index: it is copied once, and no
//     other memory is filled with it.
//   - The keys are divided into parts. A thread collects changes, sorts them by part, and takes one part's lock for all
//     of its changes. It has the lines of their entries and records fetched before it needs them.
//   - Neighbouring integer keys are in one part, so that their records, which are made in the order of the log, lie
//     side by side: a scan of other nodes reads such records together (txn/access/neighbour_reads.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/keyed_hash.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/key.h"
#include "log/format/transaction_format.h"
#include "txn/durable/change_map.h"
#include "txn/durable/record_maker.h"
#include "txn/node/local_node.h"
#include "txn/store/table.h"

namespace gannet::txn {

class LatestChanges {
 public:
  class Adder;

  // Keeps the changes of `tables`; those of others are left out. `directory`: for messages. `threads`: number of those
  // that add. The rest must outlive this.
  LatestChanges(const LocalNode* local, std::string directory, const std::vector<const Table*>& tables, int threads,
                RecordCounts* counts);

  // The parts are numbered from 0.
  size_t parts() const { return parts_.size(); }

  // The functions below must not run while threads add.
  HashedKey Hashed(const index::Key& key) const { return HashedKey(key, hash_); }
  // Null if there is none.
  const ChangeMap::Entry* Find(const Table& table, const HashedKey& key) const {
    const ChangeMap* map = MapOf(table, PartOf(key.number));
    return map == nullptr ? nullptr : map->Find(key);
  }
  // Starts the cache miss of a Find.
  void PrefetchFor(const Table& table, const HashedKey& key) const {
    const ChangeMap* map = MapOf(table, PartOf(key.number));
    if (map != nullptr) ChangeMap::PrefetchAt(map->hint(), key.hash);
  }
  // Number of keys of a table, removed ones too.
  size_t size(const Table& table) const;
  // The changes of a part of the keys of a table. Null if there are none.
  const ChangeMap* MapOf(const Table& table, size_t part) const {
    const auto& maps = parts_[part].maps;
    return table.id() < maps.size() ? maps[table.id()].get() : nullptr;
  }
  // Frees the memory of these changes, and the records that only keep removed keys; the others are the caller's.
  // Different parts may be dropped at the same time.
  void Drop(const Table& table, size_t part, RecordMaker* maker);
  // Drops all changes of a table, and frees their records, which are in no index.
  void Discard(const Table& table);

 private:
  // Parts for each thread: enough that threads seldom meet, and not so many that the maps are scattered over small
  // pages.
  static constexpr size_t kPartsPerThread = 4;
  static constexpr size_t kMostParts = 256;
  static constexpr size_t kHints = 32;

  struct alignas(kLineBytes) Part {
    Mutex mutex;                                   // guards `maps` while threads add
    std::vector<std::unique_ptr<ChangeMap>> maps;  // by table
    // PrefetchAt's hint for a table's map. If there are more tables, several share a hint: that of the map that grew
    // last. Read without the mutex: an old hint, or one of another table, only makes the prefetch useless.
    std::array<std::atomic<uint64_t>, kHints> hints{};
  };

  // Null if the table's changes are left out.
  const Table* Wanted(uint16_t table) const { return table < tables_.size() ? tables_[table] : nullptr; }
  ChangeMap* MakeMap(Part* part, const Table& table);
  // Takes HashedKey::number. A peer may guess it: the maps use the hash, which it cannot guess.
  size_t PartOf(uint64_t number) const { return ((number >> 4) * 0x9e3779b97f4a7c15 >> 32) & (parts_.size() - 1); }
  static std::atomic<uint64_t>& HintOf(Part* part, uint16_t table) { return part->hints[table % kHints]; }

  const LocalNode* local_;
  const std::string directory_;
  RecordCounts* counts_;
  std::vector<const Table*> tables_;  // by id
  const KeyedHash hash_{KeyedHash::DrawSeed()};
  std::vector<Part> parts_;  // a power of two
};

// Adds changes, many at a time. One thread; many adders may work at the same time.
class LatestChanges::Adder {
 public:
  // `to` must outlive this. `number`: of the thread.
  Adder(LatestChanges* to, size_t number);

  // The views must stay until Flush. DataLoss: a change does not fit its table. ResourceExhausted: no memory.
  Status Add(uint64_t epoch, std::span<const log::ChangeView> changes);
  // After this all that was added is there.
  Status Flush();

 private:
  // About what a core's second-level cache holds, with the changes and the bytes that they were read from.
  static constexpr size_t kMostItems = 2048;

  struct Item {
    uint64_t hash;
    uint64_t number;
    uint64_t epoch;
    const log::ChangeView* change;
  };

  // Some items of one part, for which the same step is done at once.
  using Group = std::span<const uint16_t>;

  void SortByPart();
  void PrefetchEntries(size_t part, Group group);
  void PrefetchRecords(const Part& part, Group group) const;
  Status ApplyAll(size_t part, Group items, size_t next_part, Group next_items);
  Status Apply(Part* part, const Item& item);

  LatestChanges* to_;
  RecordMaker maker_;
  std::vector<Item> items_;
  std::vector<uint16_t> order_;   // items by part
  std::vector<uint32_t> begins_;  // of each part in order_
  size_t first_part_;             // with which Flush begins: threads begin with different ones
};

}  // namespace gannet::txn
