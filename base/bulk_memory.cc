#include "base/bulk_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace gannet {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kMappedFrom = size_t{64} << 10;

}  // namespace

BulkMemory::BulkMemory(size_t bytes, size_t alignment) {
  GANNET_CHECK(bytes != 0 && alignment <= kPageBytes, "%d bytes aligned to %d", bytes, alignment);
  if (bytes < kMappedFrom) {
    bytes_ = RoundUp(bytes, alignment);
    data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, bytes_));
    GANNET_CHECK(data_ != nullptr, "no memory for %d bytes", bytes);
    std::memset(data_, 0, bytes_);
    return;
  }
  const bool huge = bytes >= kHugePageBytes;
  bytes_ = RoundUp(bytes, huge ? kHugePageBytes : kPageBytes);
  // mmap aligns to small pages only: map more, and unmap what lies outside of the aligned part.
  const size_t asked = bytes_ + (huge ? kHugePageBytes : 0);
  void* mapping = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  GANNET_CHECK(mapping != MAP_FAILED, "no memory for %d bytes", bytes);
  data_ = static_cast<std::byte*>(mapping);
  if (!huge) return;
  const auto address = reinterpret_cast<uintptr_t>(data_);
  const size_t before = RoundUp(address, kHugePageBytes) - address;
  if (before != 0) munmap(data_, before);
  data_ += before;
  if (before != kHugePageBytes) munmap(data_ + bytes_, kHugePageBytes - before);
  (void)madvise(data_, bytes_, MADV_HUGEPAGE);  // only advice
}

void BulkMemory::Grow(size_t bytes) {
  GANNET_CHECK(bytes > bytes_, "%d bytes are to grow to %d", bytes_, bytes);
  BulkMemory larger(bytes);
  // Less than a huge page is copied: its small pages would stay small, and keep their neighbours small.
  if (bytes_ >= kHugePageBytes || (bytes_ >= kMappedFrom && larger.bytes_ < kHugePageBytes)) {
    // The pages move to the new memory's address, because that is aligned.
    void* moved = mremap(data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, larger.data_);
    GANNET_CHECK(moved == larger.data_, "no memory for %d bytes", bytes);
    (void)madvise(larger.data_ + bytes_, larger.bytes_ - bytes_, MADV_POPULATE_WRITE);
    data_ = nullptr;
    bytes_ = 0;
  } else if (bytes_ != 0) {
    std::memcpy(larger.data_, data_, bytes_);
    if (larger.bytes_ >= kHugePageBytes) (void)madvise(larger.data_, larger.bytes_, MADV_POPULATE_WRITE);
  }
  *this = std::move(larger);
}

BulkMemory::~BulkMemory() {
  if (bytes_ < kMappedFrom) {
    std::free(data_);
  } else {
    munmap(data_, bytes_);
  }
}

}  // namespace gannet
