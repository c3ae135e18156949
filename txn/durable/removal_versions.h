// RemovalVersions: keeps the versions of one key ascending when the key is removed and inserted again.
//
// The log orders the changes of a key within an epoch by version. Updates increment it in the record, and a record that
// moves takes its version along. But a key that is inserted again gets another block of memory, whose versions continue
// from those of that block. So a removal notes its version here, at the key's owner, by the key's hash, before the key
// leaves its index. An insert looks here after its key has entered the index, or while it holds the lock of the place
// where the key is to enter, and starts above that version. If keys share a place, versions are only skipped. Most
// growing tables have no removals: an insert into them at its own node reads one word that is never written.
//
// The places are in registered memory that only the owner's CPU writes, so an insert by verbs READs its key's place
// (commit/one_sided_inserts.h). A removal raises a place to a maximum, which no verb does, so with a log all removals
// are made by the owner's CPU. The places lie at the same offset on every node: Database::Open allocates them right
// after the log's epochs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/random.h"
#include "index/key.h"
#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::txn {

// Thread-safe.
class RemovalVersions {
 public:
  static constexpr size_t kBytes = size_t{64} << 10;  // stays in a core's cache

  // `places`: kBytes of zeros at `address`. `kept`: false if nothing is logged; then no version is noted, and Of
  // returns 0.
  RemovalVersions(std::byte* places, rdma::GlobalAddress address, bool kept)
      : places_(places), offset_(address.offset()), kept_(kept) {}

  void Note(uint16_t table, const index::Key& key, uint64_t version) {
    if (!kept_) return;
    GANNET_CHECK(version <= rdma::kVersionMask, "a removal from table %d has version %x", table, version);
    std::byte* const place = places_ + PlaceOf(table, key);
    for (uint64_t seen = LoadWord(place); seen < version;) {
      const uint64_t found = CompareAndSwapWord(place, seen, version);
      if (found == seen) break;
      seen = found;
    }
    if ((tables_.load(std::memory_order_relaxed) & BitOf(table)) == 0)
      tables_.fetch_or(BitOf(table), std::memory_order_release);
  }
  // The greatest version noted for this key, or for one that shares its place; 0 if nothing was removed from the table.
  uint64_t Of(uint16_t table, const index::Key& key) const {
    if ((tables_.load(std::memory_order_acquire) & BitOf(table)) == 0) return 0;
    return LoadWord(places_ + PlaceOf(table, key));
  }
  // The place where `node` notes removals of this key: a word with that version.
  rdma::GlobalAddress At(rdma::NodeId node, uint16_t table, const index::Key& key) const {
    return {node, offset_ + PlaceOf(table, key)};
  }

 private:
  static uint64_t BitOf(uint16_t table) { return uint64_t{1} << table % 64; }
  // The offset of the key's place, in bytes.
  static size_t PlaceOf(uint16_t table, const index::Key& key) {
    uint64_t number = key.integer();
    if (key.kind() == index::KeyKind::kBytes) {
      number = 0;
      for (const char c : key.bytes()) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    // Neighbouring keys are neighbours here: a queue's keys are inserted, and removed, one after the other, and one
    // READ brings the places of keys that a transaction inserts together.
    const uint64_t run = Mix64(number / kRun + (uint64_t{table} << 48)) % (kPlaces / kRun);
    return (run * kRun + number % kRun) * kWordBytes;
  }

  static constexpr size_t kPlaces = kBytes / kWordBytes;
  static constexpr size_t kRun = 2 * kLineBytes / kWordBytes;

  std::byte* const places_;
  const uint64_t offset_;
  const bool kept_;
  alignas(kLineBytes) std::atomic<uint64_t> tables_{0};  // bit table % 64: a removal from it was noted
};

}  // namespace gannet::txn
