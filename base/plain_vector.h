// PlainVector: a vector of plain data whose new elements may stay undefined.
//
// std::vector gives every element a value before its owner writes it, and looks at its end for each. This one has room
// made for many elements at once, which the caller writes, and grows where it lies if the allocator can do that: large
// ones move by page tables, without a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace gannet {

// Not thread-safe. Throws std::bad_alloc. Pointers and references to elements are valid until the next call that may
// grow it.
template <class T>
class PlainVector {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));

 public:
  PlainVector() = default;
  PlainVector(const PlainVector& other) {
    std::copy_n(other.data_, other.size_, Room(other.size_));
    size_ = other.size_;
  }
  PlainVector(PlainVector&& other) noexcept { swap(other); }
  PlainVector& operator=(PlainVector other) noexcept {
    swap(other);
    return *this;
  }
  ~PlainVector() { std::free(data_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  // The place after the last element, with room for at least `count` more. Resize says how many were written.
  T* Room(size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      Grow(count);
    return data_ + size_;
  }
  // Elements that are new are undefined, unless they were written in Room.
  void Resize(size_t size) {
    if (size > size_) Room(size - size_);
    size_ = size;
  }
  void push_back(const T& element) {
    const T copy = element;  // which may be one of these
    *Room(1) = copy;
    ++size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void erase(T* element) {
    std::copy(element + 1, end(), element);
    --size_;
  }
  void swap(PlainVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void Grow(size_t count) {
    constexpr size_t kLeastBytes = 64;
    constexpr size_t kMost = SIZE_MAX / 2 / sizeof(T);
    if (count > kMost - size_) throw std::bad_alloc();
    const size_t capacity = std::max({size_ + count, std::min(2 * capacity_, kMost), kLeastBytes / sizeof(T)});
    void* const grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace gannet
