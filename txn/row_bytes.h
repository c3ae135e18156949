// The payloads of a scan's rows, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gannet::txn {

// Not thread-safe. Places and sizes have 64 bits: a scan may bring more than 4 GiB.
class RowBytes {
 public:
  size_t size() const { return size_; }
  // Appends `size` bytes of undefined content and returns their place.
  size_t Append(size_t size) {
    const size_t place = size_;
    size_ += size;
    if (size_ > room_.size()) [[unlikely]]
      Grow(place);
    return place;
  }
  // Drops everything after the first `size` bytes.
  void Cut(size_t size) { size_ = size; }
  void Clear() { size_ = 0; }
  // Valid until the next Append.
  std::span<std::byte> At(size_t place, size_t size) { return {room_.data() + place, size}; }
  std::span<const std::byte> At(size_t place, size_t size) const { return {room_.data() + place, size}; }

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
  using Room = std::vector<std::byte, Uninitialized>;

  void Grow(size_t used) {
    Room larger(std::max(2 * room_.size(), size_));
    if (used > 0) std::memcpy(larger.data(), room_.data(), used);
    room_ = std::move(larger);
  }

  Room room_;
  size_t size_ = 0;  // of what is used
};

}  // namespace gannet::txn
