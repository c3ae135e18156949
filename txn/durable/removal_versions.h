// RemovalVersions: keeps the versions of one key ascending when the key is removed and inserted again.
//
// The log orders the changes of a key within an epoch by version. Updates increment it in the record, and a record that
// moves takes its version along. But a key that is inserted again gets another block of memory, whose versions continue
// from those of that block. So a removal notes its version here, by the key's hash, before the key leaves its index. An
// insert looks here after its key has entered the index, and starts above that version. If keys share a place, versions
// are only skipped. Most growing tables have no removals: an insert into them reads one word that is never written.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/random.h"
#include "index/key.h"

namespace gannet::txn {

// Thread-safe.
class RemovalVersions {
 public:
  // `kept`: false if nothing is logged; then no version is noted, and Of returns 0.
  explicit RemovalVersions(bool kept) : versions_(kept ? std::make_unique<Versions>() : nullptr) {}

  void Note(uint16_t table, const index::Key& key, uint64_t version) {
    if (versions_ == nullptr) return;
    std::atomic<uint64_t>& least = versions_->of[PlaceOf(table, key)];
    uint64_t seen = least.load(std::memory_order_relaxed);
    while (seen < version && !least.compare_exchange_weak(seen, version, std::memory_order_release)) {
    }
    if ((tables_.load(std::memory_order_relaxed) & BitOf(table)) == 0)
      tables_.fetch_or(BitOf(table), std::memory_order_release);
  }
  // The greatest version noted for this key, or for one that shares its place; 0 if nothing was removed from the table.
  uint64_t Of(uint16_t table, const index::Key& key) const {
    if ((tables_.load(std::memory_order_acquire) & BitOf(table)) == 0) return 0;
    return versions_->of[PlaceOf(table, key)].load(std::memory_order_acquire);
  }

 private:
  static uint64_t BitOf(uint16_t table) { return uint64_t{1} << table % 64; }
  static size_t PlaceOf(uint16_t table, const index::Key& key) {
    uint64_t number = key.integer();
    if (key.kind() == index::KeyKind::kBytes) {
      number = 0;
      for (const char c : key.bytes()) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    // Neighbouring keys share a line: a queue's keys are inserted, and removed, one after the other.
    const uint64_t line = Mix64(number / kPlacesPerLine + (uint64_t{table} << 48)) % (kPlaces / kPlacesPerLine);
    return line * kPlacesPerLine + number % kPlacesPerLine;
  }

  static constexpr size_t kPlaces = 8192;  // 64 KiB: stays in a core's cache
  static constexpr size_t kPlacesPerLine = 8;
  struct Versions {
    alignas(64) std::array<std::atomic<uint64_t>, kPlaces> of{};
  };
  const std::unique_ptr<Versions> versions_;
  alignas(64) std::atomic<uint64_t> tables_{0};  // bit table % 64: a removal from it was noted
};

}  // namespace gannet::txn
