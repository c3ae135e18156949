// Of every key in the log, the newest change. Filled by several threads at once.
//
// A log has tens of millions of changes, so nothing here is a heap object of its own: keys and payloads lie in arenas,
// and a probe compares the first eight bytes of a key, which for an integer key is all, without following a pointer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "log/transaction_format.h"
#include "rdma/base/random.h"
#include "rdma/base/thread.h"

namespace gannet::txn {

// A key of the log; its bytes belong to somebody else.
class RedoKeyView {
 public:
  explicit RedoKeyView(std::string_view bytes) : data_(bytes.data()), size_(bytes.size()) {
    std::memcpy(&first_, bytes.data(), std::min(bytes.size(), sizeof first_));
    first_ = __builtin_bswap64(first_);
  }
  std::string_view bytes() const { return {data_, size_}; }

  friend bool operator==(const RedoKeyView& a, const RedoKeyView& b) {
    return a.first_ == b.first_ && a.size_ == b.size_ && (a.size_ <= sizeof a.first_ || a.bytes() == b.bytes());
  }
  // As the bytes compare.
  friend bool operator<(const RedoKeyView& a, const RedoKeyView& b) {
    return a.first_ != b.first_ ? a.first_ < b.first_ : a.bytes() < b.bytes();
  }
  uint64_t Hash() const {
    uint64_t hash = Mix64(first_ ^ size_);
    for (size_t at = sizeof first_; at < size_; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, data_ + at, std::min(size_ - at, sizeof word));
      hash = Mix64(hash ^ word);
    }
    return hash;
  }

 private:
  uint64_t first_ = 0;  // the first eight bytes, as a number that compares as they do
  const char* data_;
  size_t size_;
};

struct RedoKeyHash {
  size_t operator()(const RedoKeyView& key) const { return key.Hash(); }
};

struct LatestChange {
  uint64_t epoch = 0;
  uint64_t version = 0;
  char* payload = nullptr;
  uint32_t payload_bytes = 0;
  uint32_t room = 0;  // at `payload`
  bool removed = false;

  std::string_view bytes() const { return {payload, payload_bytes}; }
};

class LatestChanges {
 public:
  static constexpr size_t kParts = 64;
  using Map = absl::flat_hash_map<RedoKeyView, LatestChange, RedoKeyHash>;

  // Thread-safe.
  void Add(uint64_t epoch, const log::ChangeView& change) {
    const RedoKeyView key(AsText(change.key()));
    Part& part = parts_[PartOf(key)];
    std::lock_guard lock(part.mutex);
    if (part.tables.size() <= change.table) part.tables.resize(change.table + size_t{1});
    Map& map = part.tables[change.table];
    auto at = map.find(key);
    if (at == map.end()) {
      at = map.try_emplace(RedoKeyView(part.arena.Copy(key.bytes()))).first;
    } else if (std::pair(epoch, change.version) <= std::pair(at->second.epoch, at->second.version)) {
      return;
    }
    LatestChange& latest = at->second;
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

  // Not while others add. Null if there is none.
  const LatestChange* Find(uint16_t table, std::string_view bytes) {
    const RedoKeyView key(bytes);
    const Map* map = MapOf(PartOf(key), table);
    if (map == nullptr) return nullptr;
    const auto at = map->find(key);
    return at == map->end() ? nullptr : &at->second;
  }
  // The changes of one table in one part; null if there are none.
  const Map* MapOf(size_t part, uint16_t table) const {
    const std::vector<Map>& tables = parts_[part].tables;
    return table < tables.size() ? &tables[table] : nullptr;
  }

 private:
  class Arena {
   public:
    char* Allocate(size_t bytes) {
      if (bytes > room_) {
        const size_t chunk = std::max(bytes, kChunkBytes);
        chunks_.emplace_back(new char[chunk]);
        at_ = chunks_.back().get();
        room_ = chunk;
      }
      char* place = at_;
      at_ += bytes;
      room_ -= bytes;
      return place;
    }
    std::string_view Copy(std::string_view bytes) {
      char* place = Allocate(bytes.size());
      std::copy_n(bytes.data(), bytes.size(), place);
      return {place, bytes.size()};
    }

   private:
    static constexpr size_t kChunkBytes = size_t{256} << 10;
    std::vector<std::unique_ptr<char[]>> chunks_;
    char* at_ = nullptr;
    size_t room_ = 0;
  };
  struct Part {
    Mutex mutex;
    std::vector<Map> tables;
    Arena arena;
  };

  static std::string_view AsText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Other bits than the map uses.
  static size_t PartOf(const RedoKeyView& key) { return key.Hash() >> 58; }

  std::array<Part, kParts> parts_;
};

}  // namespace gannet::txn
