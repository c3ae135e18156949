// A sub-model in registered memory: one line, so that a READ gets it whole or shows that it is being written.
//
//   | state | slope, intercept | under, over, spread, size | table, index | generation |
//
// Lines are in blocks of kLinesPerBlock; a model's directory is the list of its blocks (kDescribe in rpc/messages.h).
// Such blocks always stay blocks of lines of the same tree. The generation and the index tell a client whether a line
// is the one it wants.
#pragma once

#include <bit>
#include <cstdint>

#include "base/cache_line.h"
#include "index/xstore/model/sub_model.h"
#include "rdma/fabric.h"
#include "rdma/versioned.h"

namespace gannet::index::xstore {

inline constexpr uint32_t kLinesPerBlock = 1024;  // 64 KiB

struct SubModelLine {
  SubModel model;
  uint32_t table = 0;  // block number of its translation table
  uint32_t index = 0;  // of the sub-model, in its model
  uint64_t generation = 0;

  // Loads from shared memory or from an image. Returns false if the line is being written.
  bool Load(const std::byte* line) {
    const uint64_t state = LoadWord(line);
    const uint64_t parameters = LoadWord(line + 8);
    const uint64_t bounds = LoadWord(line + 16);
    const uint64_t place = LoadWord(line + 24);
    generation = LoadWord(line + 32);
    if ((state & rdma::kLockBit) != 0 || LoadWord(line) != state) return false;
    model.slope = std::bit_cast<float>(static_cast<uint32_t>(parameters));
    model.intercept = std::bit_cast<float>(static_cast<uint32_t>(parameters >> 32));
    model.under = static_cast<uint8_t>(bounds);
    model.over = static_cast<uint8_t>(bounds >> 8);
    model.spread = static_cast<uint8_t>(bounds >> 16);
    model.size = static_cast<uint32_t>(bounds >> 32);
    table = static_cast<uint32_t>(place);
    index = static_cast<uint32_t>(place >> 32);
    return true;
  }

  // Called by the single writer.
  void Store(std::byte* line) const {
    const uint64_t state = LoadWord(line) & ~rdma::kLockBit;
    StoreWord(line, rdma::kLineBusy);
    StoreWord(line + 8,
              uint64_t{std::bit_cast<uint32_t>(model.intercept)} << 32 | std::bit_cast<uint32_t>(model.slope));
    StoreWord(line + 16, uint64_t{model.size} << 32 | uint64_t{model.spread} << 16 | uint64_t{model.over} << 8 |
                             uint64_t{model.under});
    StoreWord(line + 24, uint64_t{index} << 32 | table);
    StoreWord(line + 32, generation);
    PreemptionPoint();
    StoreWord(line, state + 1);
  }
};

}  // namespace gannet::index::xstore
