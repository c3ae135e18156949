// Memory for the tens of millions of changes that recovery collects: zeros, each page of which costs something only
// when it is touched; in huge pages where it is large, since what lies there is visited in no order.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "rdma/base/cache_line.h"
#include "rdma/base/check.h"

namespace gannet::txn {

class BulkMemory {
 public:
  static constexpr size_t kHugePageBytes = size_t{2} << 20;

  BulkMemory() = default;
  // At least `bytes`, which is not 0, aligned to a cache line (from kHugePageBytes on, to a huge page).
  explicit BulkMemory(size_t bytes) {
    if (bytes < kMappedFrom) {
      bytes_ = RoundUp(bytes, kLineBytes);
      data_ = static_cast<std::byte*>(std::aligned_alloc(kLineBytes, bytes_));
      GANNET_CHECK(data_ != nullptr, "no memory for %d bytes of changes", bytes);
      std::memset(data_, 0, bytes_);
      return;
    }
    const bool huge = bytes >= kHugePageBytes;
    bytes_ = RoundUp(bytes, huge ? kHugePageBytes : kPageBytes);
    // mmap aligns to small pages only: ask for more, and give back what lies outside of the aligned part.
    const size_t asked = bytes_ + (huge ? kHugePageBytes : 0);
    void* mapping = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GANNET_CHECK(mapping != MAP_FAILED, "no memory for %d bytes of changes", bytes);
    data_ = static_cast<std::byte*>(mapping);
    if (!huge) return;
    const auto address = reinterpret_cast<uintptr_t>(data_);
    const size_t before = RoundUp(address, kHugePageBytes) - address;
    if (before != 0) munmap(data_, before);
    data_ += before;
    if (before != kHugePageBytes) munmap(data_ + bytes_, kHugePageBytes - before);
    (void)madvise(data_, bytes_, MADV_HUGEPAGE);  // only a wish
  }
  BulkMemory(BulkMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BulkMemory& operator=(BulkMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BulkMemory() {
    if (bytes_ < kMappedFrom) {
      std::free(data_);
    } else {
      munmap(data_, bytes_);
    }
  }

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kMappedFrom = size_t{64} << 10;

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gannet::txn
