// Registered buffers of a channel. Data in unregistered memory is copied through them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rdma/verbs/resources.h"

namespace gannet::rdma::verbs {

// Not thread-safe.
class Staging {
 public:
  // Size of the largest buffer of Take; larger data is split.
  static constexpr uint32_t kMaxBytes = 64 * 1024;

  struct Buffer {
    std::byte* at = nullptr;
    uint8_t size_class = 0;
    explicit operator bool() const { return at != nullptr; }
  };

  Status Open(ibv_pd* pd);

  // Returns a buffer of at least `bytes` (up to kMaxBytes); none if all buffers of that size and larger are in use.
  Buffer Take(uint32_t bytes);
  void Give(Buffer buffer);
  uint32_t key() const { return region_->lkey; }

 private:
  struct Class {
    uint32_t bytes;
    uint32_t count;
  };
  // 1.1 MiB in all.
  static constexpr std::array<Class, 4> kClasses{{{64, 512}, {1024, 128}, {4096, 128}, {kMaxBytes, 8}}};

  std::vector<std::byte> memory_;
  MemoryRegion region_;
  std::array<std::vector<std::byte*>, kClasses.size()> free_;
};

}  // namespace gannet::rdma::verbs
