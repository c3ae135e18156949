// The adversary makes the shm fabric behave as badly as the contract of fabric.h allows: it accesses the lines of a
// READ or WRITE in random order, yields the CPU in between, and reorders a batch where the contract promises no order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "rdma/fabric.h"
#include "rdma/shm/line_copy.h"

namespace gannet::rdma::shm {

// One per channel; not thread-safe.
class Adversary {
 public:
  explicit Adversary(uint64_t seed) : random_(seed) {}

  void Read(const std::byte* at, std::byte* to, size_t bytes);
  void Write(const LineWriter& writer, std::byte* at, const std::byte* from, size_t bytes);

  // A random order in which the batch may take effect: indexes into `operations`. Valid until the next call.
  std::span<const uint32_t> Order(std::span<const Operation> operations);

 private:
  // The lines of [at, at + bytes) by number, in random order: an operation begins.
  std::span<const uint32_t> ShuffledLines(const std::byte* at, size_t bytes);
  void MaybeYield();

  Random random_;
  uint64_t yield_one_in_ = 1;  // lines and half lines of this operation
  std::vector<uint32_t> lines_;
  std::vector<uint32_t> remaining_;
  std::vector<uint32_t> order_;
};

}  // namespace gannet::rdma::shm
