// Memory for File::Write: aligned to disk blocks, initially zero.
#pragma once

#include <cstddef>
#include <span>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "log/file/file_system.h"

namespace gannet::log {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Allocates `bytes`, rounded up to blocks.
  explicit AlignedBuffer(size_t bytes) : size_(RoundUp(bytes, kDiskBlockBytes)) {
    if (size_ != 0) memory_ = BulkMemory(size_, kDiskBlockBytes);
  }

  std::byte* data() { return memory_.data(); }
  const std::byte* data() const { return memory_.data(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() { return {memory_.data(), size_}; }
  std::span<const std::byte> span() const { return {memory_.data(), size_}; }

 private:
  size_t size_ = 0;
  BulkMemory memory_;
};

}  // namespace gannet::log
