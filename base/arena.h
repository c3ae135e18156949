// Arena: scratch memory by bump allocation. All of it is freed at once, and kept for the next use. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/cache_line.h"

namespace gannet {

class Arena {
 public:
  // 8-byte aligned, uninitialised; valid until Reset().
  std::byte* Allocate(size_t bytes) {
    bytes = RoundUp(std::max<size_t>(bytes, 1), kWordBytes);
    if (used_ + bytes > size_) [[unlikely]]
      NextBlock(bytes);
    std::byte* result = block_ + used_;
    used_ += bytes;
    return result;
  }

  std::span<std::byte> Copy(std::span<const std::byte> data) {
    std::byte* copy = Allocate(data.size());
    if (!data.empty()) std::memcpy(copy, data.data(), data.size());
    return {copy, data.size()};
  }

  void Reset() {
    next_ = 0;
    used_ = size_ = 0;
    if (!blocks_.empty()) UseBlock();
  }

 private:
  static constexpr size_t kBlockBytes = 16 * 1024;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t size;
  };

  void UseBlock() {
    block_ = blocks_[next_].memory.get();
    size_ = blocks_[next_].size;
    used_ = 0;
    ++next_;
  }
  void NextBlock(size_t bytes) {
    while (next_ < blocks_.size()) {
      UseBlock();
      if (bytes <= size_) return;
    }
    const size_t size = std::max(bytes, kBlockBytes);
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    next_ = blocks_.size() - 1;
    UseBlock();
  }

  std::vector<Block> blocks_;
  size_t next_ = 0;  // index of the block after the current one
  std::byte* block_ = nullptr;
  size_t used_ = 0;
  size_t size_ = 0;
};

}  // namespace gannet
