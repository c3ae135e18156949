// The payloads of a scan's rows, one after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gannet::txn {

// Not thread-safe. Places and sizes have 64 bits: a scan may bring more than 4 GiB.
class RowBytes {
 public:
  size_t size() const { return bytes_.size(); }
  // Appends `size` bytes of undefined content and returns their place.
  size_t Append(size_t size) {
    const size_t place = bytes_.size();
    bytes_.resize(place + size);
    return place;
  }
  // Drops everything after the first `size` bytes.
  void Cut(size_t size) { bytes_.resize(size); }
  void Clear() { bytes_.clear(); }
  // Valid until the next Append.
  std::span<std::byte> At(size_t place, size_t size) { return {bytes_.data() + place, size}; }
  std::span<const std::byte> At(size_t place, size_t size) const { return {bytes_.data() + place, size}; }

 private:
  // Leaves new bytes as they are: the caller of Append writes each of them.
  struct Uninitialized : std::allocator<std::byte> {
    template <class T>
    struct rebind {
      using other = Uninitialized;
    };
    template <class T>
    void construct(T* at) {
      ::new (static_cast<void*>(at)) T;
    }
    template <class T, class... Arguments>
    void construct(T* at, Arguments&&... arguments) {
      ::new (static_cast<void*>(at)) T(std::forward<Arguments>(arguments)...);
    }
  };
  std::vector<std::byte, Uninitialized> bytes_;
};

}  // namespace gannet::txn
