// The rows of a table that is measured with each kind of index (lab/experiments/kind_rack/rack.h): the same ones for
// all kinds with points as keys. For a spatial kind each row has a small square in place of its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/random.h"
#include "base/status.h"
#include "index/key.h"
#include "index/rectangle.h"
#include "ycsb/key_space.h"
#include "ycsb/permutation.h"
#include "ycsb/zipf.h"

namespace gannet::experiments::kind_rack {

// Rows that a scan reads; rectangles that a window meets on average.
inline constexpr size_t kScanRows = 100;
inline constexpr size_t kPayloadBytes = 100;

// The key of one row.
class RowKey {
 public:
  explicit RowKey(uint64_t integer) : integer_(integer) {}
  explicit RowKey(const index::RectangleKey& key) : integer_(key.id), rectangle_(key) {}
  // Valid as long as this object.
  index::Key view() const { return rectangle_.has_value() ? rectangle_->view() : index::Key(integer_); }
  // An integer key, or the id of a rectangle.
  uint64_t integer() const { return integer_; }

 private:
  uint64_t integer_;
  std::optional<index::RectangleKeyBytes> rectangle_;
};

// Immutable: a pure function of its arguments. Thread-safe.
class Rows {
 public:
  // Rows 0 to `loaded` - 1 are loaded, in ascending order if the keys are integers; clients insert further ones.
  Rows(uint64_t loaded, bool spatial, uint64_t seed);

  uint64_t loaded() const { return loaded_; }
  bool spatial() const { return spatial_; }
  // The key of a row. Integers lie at random distances, and those of inserted rows between them or, with
  // kAppend, behind them.
  RowKey KeyOf(uint64_t row, ycsb::InsertPlace inserts = ycsb::InsertPlace::kSpread) const;
  // A loaded row, drawn by YCSB's Zipf distribution. Popular rows are scattered over all keys.
  uint64_t DrawLoaded(Random& random) const;
  // A square around that of a row.
  index::Rectangle WindowAround(uint64_t row) const;

  // Fills a payload of kPayloadBytes: the integer, then bytes of `contents`.
  static void MakePayload(uint64_t integer, uint64_t contents, std::span<std::byte> payload);
  // DataLoss if the payload was not made for this key.
  static Status CheckPayload(const index::Key& key, std::span<const std::byte> payload);

 private:
  index::Rectangle BoxOf(uint64_t row) const;

  const uint64_t loaded_;
  const bool spatial_;
  const uint64_t seed_;
  const double edge_;    // of a row's square
  const double window_;  // edge of a window
  const ycsb::KeySpace space_;
  const ycsb::Permutation scatter_;
  const ycsb::Zipf zipf_{ycsb::kYcsbTheta};
};

}  // namespace gannet::experiments::kind_rack
