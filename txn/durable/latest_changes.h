// The newest change of every key in the log. Filled by several threads at once.
//
// A log has tens of millions of changes, and each is a cache miss somewhere in gigabytes. So no change is a heap object
// of its own, keys and payloads lie in arenas, and the lines that a transaction's changes need are prefetched before
// the first of them is looked up.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bulk_memory.h"
#include "base/keyed_hash.h"
#include "base/thread.h"
#include "log/transaction_format.h"
#include "txn/durable/change_map.h"

namespace gannet::txn {

class LatestChanges {
 public:
  static constexpr size_t kParts = 64;
  using Change = std::pair<RedoKeyView, const LatestChange*>;

  // The changes of one transaction. Thread-safe.
  void Add(uint64_t epoch, std::span<const log::ChangeView> changes) {
    while (!changes.empty()) {
      const size_t n = std::min(changes.size(), kAtOnce);
      std::array<uint64_t, kAtOnce> hashes;
      for (size_t i = 0; i < n; ++i) {
        hashes[i] = RedoKeyView(AsText(changes[i].key())).Hash(hash_);
        const std::atomic<uint64_t>& hint = HintOf(&parts_[PartOf(hashes[i])], changes[i].table);
        if (const uint64_t seen = hint.load(std::memory_order_relaxed); seen != 0)
          ChangeMap::PrefetchAt(seen, hashes[i]);
      }
      for (size_t i = 0; i < n; ++i) AddOne(epoch, changes[i], hashes[i]);
      changes = changes.subspan(n);
    }
  }

  // Must not run while other threads add. Null if there is none.
  const LatestChange* Find(uint16_t table, std::string_view bytes) const {
    const RedoKeyView key(bytes);
    const uint64_t hash = key.Hash(hash_);
    const ChangeMap* map = MapOf(PartOf(hash), table);
    const ChangeMap::Entry* entry = map == nullptr ? nullptr : map->Find(key, hash);
    return entry == nullptr ? nullptr : &entry->change;
  }
  // The changes of one table in the parts [from, to), by key. Must not run while other threads add.
  std::vector<Change> Sorted(uint16_t table, size_t from, size_t to) const {
    size_t changes = 0;
    for (size_t part = from; part < to; ++part) {
      if (const ChangeMap* map = MapOf(part, table); map != nullptr) changes += map->size();
    }
    std::vector<Change> sorted;
    sorted.reserve(changes);
    for (size_t part = from; part < to; ++part) {
      const ChangeMap* map = MapOf(part, table);
      if (map == nullptr) continue;
      map->ForEach([&](const ChangeMap::Entry& entry) { sorted.emplace_back(entry.key, &entry.change); });
    }
    std::sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) { return a.first < b.first; });
    return sorted;
  }

 private:
  static constexpr size_t kAtOnce = 32;
  static constexpr size_t kHints = 16;

  class Arena {
   public:
    char* Allocate(size_t bytes) {
      if (bytes > room_) {
        const size_t chunk = std::max(bytes, std::min(kFirstChunkBytes << chunks_.size(), BulkMemory::kHugePageBytes));
        chunks_.emplace_back(chunk);
        at_ = reinterpret_cast<char*>(chunks_.back().data());
        room_ = chunk;
      }
      char* place = at_;
      at_ += bytes;
      room_ -= bytes;
      return place;
    }
    const char* Copy(std::string_view bytes) {
      char* place = Allocate(bytes.size());
      std::copy_n(bytes.data(), bytes.size(), place);
      return place;
    }

   private:
    static constexpr size_t kFirstChunkBytes = size_t{16} << 10;
    std::vector<BulkMemory> chunks_;
    char* at_ = nullptr;
    size_t room_ = 0;
  };
  struct Part {
    Mutex mutex;  // guards tables and arena
    std::vector<ChangeMap> tables;
    Arena arena;
    // PrefetchAt's hint for a table's map. If there are more tables, several share a hint: that of the map that grew
    // last. Read without the mutex: an old hint, or one of another table, only makes the prefetch useless.
    std::array<std::atomic<uint64_t>, kHints> hints{};
  };

  void AddOne(uint64_t epoch, const log::ChangeView& change, uint64_t hash) {
    const RedoKeyView key(AsText(change.key()));
    Part& part = parts_[PartOf(hash)];
    std::lock_guard lock(part.mutex);
    if (part.tables.size() <= change.table) part.tables.resize(change.table + size_t{1});
    ChangeMap& map = part.tables[change.table];
    ChangeMap::Entry* entry = map.FindOrMakeRoom(key, hash);
    LatestChange& latest = entry->change;
    if (entry->used == 0) {
      map.Use(entry, key.At(part.arena.Copy(key.bytes())), hash);
      std::atomic<uint64_t>& hint = HintOf(&part, change.table);
      if (hint.load(std::memory_order_relaxed) != map.hint()) hint.store(map.hint(), std::memory_order_relaxed);
    } else if (std::pair(epoch, change.version) <= std::pair(latest.epoch, latest.version)) {
      return;
    }
    latest.epoch = epoch;
    latest.version = change.version;
    latest.removed = change.kind == log::ChangeKind::kRemove;
    latest.payload_bytes = static_cast<uint32_t>(change.payload.size());
    if (latest.room < latest.payload_bytes) {
      latest.payload = part.arena.Allocate(latest.payload_bytes);
      latest.room = latest.payload_bytes;
    }
    std::copy_n(AsText(change.payload).data(), latest.payload_bytes, latest.payload);
  }

  // Null if there are none.
  const ChangeMap* MapOf(size_t part, uint16_t table) const {
    const std::vector<ChangeMap>& tables = parts_[part].tables;
    return table < tables.size() ? &tables[table] : nullptr;
  }
  static std::atomic<uint64_t>& HintOf(Part* part, uint16_t table) { return part->hints[table % kHints]; }
  static std::string_view AsText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Uses other bits of the hash than the map does.
  static size_t PartOf(uint64_t hash) { return hash >> 58; }

  const KeyedHash hash_{KeyedHash::DrawSeed()};
  std::array<Part, kParts> parts_;
};

}  // namespace gannet::txn
