// UpperModel: finds the place of a key among ascending ones, by linear models over them, and models over the first keys
// of those, until a few are left (FAST'23, 3.3, as in a PGM-index). Each level is one cache miss or two: the piece, and
// the keys around its prediction, of which there are 2 epsilon + 3.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/rolex/plr.h"

namespace gannet::index::rolex {

// Does not change.
class UpperModel {
 public:
  // `keys` do not descend. Of equal ones Find returns the last.
  UpperModel(std::vector<uint64_t> keys, uint32_t epsilon);

  // Number of the last key that is at most `key`; 0 if there is none. There is at least one key.
  size_t Find(uint64_t key) const;
  std::span<const uint64_t> keys() const { return keys_; }
  size_t bytes() const;

 private:
  using Pieces = std::vector<PlrPiece>;

  std::vector<uint64_t> keys_;
  uint32_t epsilon_;
  std::vector<Pieces> levels_;  // the first is over keys_, each other one over the first keys of the one before
};

// The quick way to most of the values of a map that changes slowly, by upper models over the keys that it had when they
// were built. A hint: a value that is found is in the map, and mostly the last that begins at most at the key. Of
// values with keys that have come since nothing is known; when they are many, all is built again. Guarded by the lock
// of the map.
template <class T>
class UpperPlaces {
 public:
  // Null if nothing is known.
  T* Find(uint64_t key) const { return upper_.has_value() ? places_[upper_->Find(key)] : nullptr; }

  // A value has come into the map, which has `size` of them now. True: Build is due.
  bool Add(uint64_t first, T* value, size_t size) {
    if (T** const place = PlaceOf(first); place != nullptr) {
      *place = value;
      return false;
    }
    // A value takes part in a few builds, however large the map becomes.
    return ++others_ > std::max(kFew, size / 8);
  }
  // Called before a value leaves the map.
  void Remove(uint64_t first, const T* value) {
    if (T** const place = PlaceOf(first); place != nullptr && *place == value) *place = nullptr;
  }
  // Builds the places over all of a map from keys, which ascend, to pointers.
  template <class Map>
  void Build(const Map& map) {
    std::vector<uint64_t> firsts;
    places_.clear();
    for (const auto& [first, value] : map) {
      firsts.push_back(first);
      places_.push_back(value.get());
    }
    upper_.emplace(std::move(firsts), kEpsilon);
    others_ = 0;
  }
  size_t bytes() const { return upper_.has_value() ? upper_->bytes() + places_.size() * sizeof(T*) : 0; }

 private:
  static constexpr uint32_t kEpsilon = 16;  // as fast as any, with few pieces (bench/rolex_bench.cc)
  static constexpr size_t kFew = 16;        // values that need no upper models

  T** PlaceOf(uint64_t first) {
    if (!upper_.has_value()) return nullptr;
    const size_t at = upper_->Find(first);
    return upper_->keys()[at] == first ? &places_[at] : nullptr;
  }

  std::optional<UpperModel> upper_;
  std::vector<T*> places_;  // by the number of the key; null: the value has left the map
  size_t others_ = 0;       // values that have come since
};

}  // namespace gannet::index::rolex
