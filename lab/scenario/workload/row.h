// A row of the scenario workloads: each of its words is the id of the write that made it, so that a torn row is
// detected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lab/scenario/check/history.h"

namespace gannet::scenario {

template <size_t kWords>
struct Row {
  std::array<uint64_t, kWords> words{};

  static Row Of(WriteId id) {
    Row row;
    row.words.fill(id);
    return row;
  }
  // The write that made it; empty if it is a mixture of several.
  std::optional<WriteId> id() const {
    for (const uint64_t word : words) {
      if (word != words[0]) return std::nullopt;
    }
    return words[0];
  }
};

}  // namespace gannet::scenario
