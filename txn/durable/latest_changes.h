// Of every key in the log, the newest change. Filled by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "log/format.h"

namespace gannet::txn {

struct LatestChange {
  uint64_t epoch = 0;
  uint64_t version = 0;
  bool removed = false;
  std::string payload;

  bool IsNewerThan(uint64_t other_epoch, uint64_t other_version) const {
    return std::pair(epoch, version) > std::pair(other_epoch, other_version);
  }
};

class LatestChanges {
 public:
  static constexpr size_t kParts = 64;
  using Map = absl::flat_hash_map<std::string, LatestChange>;

  // Thread-safe.
  void Add(uint64_t epoch, const log::ChangeView& change) {
    const std::string_view key(reinterpret_cast<const char*>(change.key.data()), change.key.size());
    Part& part = parts_[PartOf(key)];
    std::lock_guard lock(part.mutex);
    if (part.tables.size() <= change.table) part.tables.resize(change.table + size_t{1});
    auto [at, fresh] = part.tables[change.table].try_emplace(absl::string_view(key.data(), key.size()));
    LatestChange& latest = at->second;
    if (!fresh && !(std::pair(epoch, change.version) > std::pair(latest.epoch, latest.version))) return;
    latest.epoch = epoch;
    latest.version = change.version;
    latest.removed = change.kind == log::ChangeKind::kRemove;
    latest.payload.assign(reinterpret_cast<const char*>(change.payload.data()), change.payload.size());
  }

  // Not while others add. Null if there is none.
  LatestChange* Find(uint16_t table, std::string_view key) {
    Map* map = MapOf(PartOf(key), table);
    if (map == nullptr) return nullptr;
    const auto at = map->find(absl::string_view(key.data(), key.size()));
    return at == map->end() ? nullptr : &at->second;
  }
  // The changes of one table in one part; null if there are none.
  Map* MapOf(size_t part, uint16_t table) {
    std::vector<Map>& tables = parts_[part].tables;
    return table < tables.size() ? &tables[table] : nullptr;
  }

 private:
  struct Part {
    std::mutex mutex;
    std::vector<Map> tables;
  };
  static size_t PartOf(std::string_view key) {
    return absl::Hash<absl::string_view>()(absl::string_view(key.data(), key.size())) >> 32 & (kParts - 1);
  }

  std::array<Part, kParts> parts_;
};

}  // namespace gannet::txn
