// Memory for File::Write: aligned to disk blocks, zeros at first.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "log/file/file_system.h"
#include "rdma/base/check.h"

namespace gannet::log {

constexpr size_t RoundUpToBlocks(size_t bytes) {
  return (bytes + kDiskBlockBytes - 1) / kDiskBlockBytes * kDiskBlockBytes;
}

class AlignedBuffer {
 public:
  // At least `bytes`, rounded up to blocks.
  explicit AlignedBuffer(size_t bytes) : size_(RoundUpToBlocks(bytes)) {
    if (size_ == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kDiskBlockBytes, size_)));
    GANNET_CHECK(data_ != nullptr, "no memory for a buffer of %d bytes", size_);
    std::memset(data_.get(), 0, size_);
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace gannet::log
