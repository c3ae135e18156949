// The keys and payloads of a scan's rows, one after the other.
#pragma once

#include <cstddef>
#include <span>

#include "base/plain_vector.h"

namespace gannet::txn {

// Not thread-safe. Places and sizes have 64 bits: a scan may bring more than 4 GiB.
class RowBytes {
 public:
  // There is always room for so many bytes more, so copies of a fixed size may end there.
  static constexpr size_t kSlackBytes = 64;

  size_t size() const { return bytes_.size(); }
  // Appends `size` bytes of undefined content and returns their place.
  size_t Append(size_t size) {
    const size_t place = bytes_.size();
    Room(size);
    bytes_.Resize(place + size);
    return place;
  }
  // The place of the next byte, with room for `size` and kSlackBytes. Append(size) then leaves what was written there.
  std::byte* Room(size_t size) { return bytes_.Room(size + kSlackBytes); }
  // The end of the room, without kSlackBytes. Only after a call of Room.
  const std::byte* end_of_room() const { return bytes_.data() + (bytes_.capacity() - kSlackBytes); }
  // Afterwards there are `size` bytes: later ones are dropped, and what was written in Room is taken up to there.
  void Cut(size_t size) { bytes_.Resize(size); }
  void Clear() { bytes_.clear(); }
  // Valid until the next Append.
  std::span<std::byte> At(size_t place, size_t size) { return {bytes_.data() + place, size}; }
  std::span<const std::byte> At(size_t place, size_t size) const { return {bytes_.data() + place, size}; }

 private:
  PlainVector<std::byte> bytes_;
};

}  // namespace gannet::txn
