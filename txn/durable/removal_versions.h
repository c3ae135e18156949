// What keeps the versions of one key ascending when the key is removed and inserted again.
//
// The log orders the changes of a key within an epoch by version. Updates count up in the record; a record that moves
// takes its version along; but a key that comes back gets another block of memory, whose versions count on from where
// that block was. So a removal notes its version here, by the key's hash, before the key leaves its index, and an
// insert looks here after its key has entered the index, and starts above. Keys that share a place only skip versions.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "index/key.h"
#include "rdma/base/random.h"

namespace gannet::txn {

// Thread-safe.
class RemovalVersions {
 public:
  static size_t PlaceOf(uint16_t table, const index::Key& key) {
    uint64_t hash = key.integer() + table;
    if (key.kind() == index::KeyKind::kBytes) {
      hash = table;
      for (const char c : key.bytes()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    return Mix64(hash) % kPlaces;
  }

  void Note(size_t place, uint64_t version) {
    std::atomic<uint64_t>& least = versions_[place];
    uint64_t seen = least.load(std::memory_order_relaxed);
    while (seen < version && !least.compare_exchange_weak(seen, version, std::memory_order_release)) {
    }
  }
  // The greatest version noted for this place.
  uint64_t Of(size_t place) const { return versions_[place].load(std::memory_order_acquire); }

 private:
  static constexpr size_t kPlaces = 8192;  // 64 KiB: stays in a core's cache
  std::array<std::atomic<uint64_t>, kPlaces> versions_{};
};

}  // namespace gannet::txn
