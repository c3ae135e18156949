// Definitions that the workload of bulk loads and its judge share.
//
// Each table is filled once by a BulkLoader, on each node separately, while workers change existing rows. A node's part
// is there as a whole or not at all. It must be there if a checkpoint was taken after its load, or if an operation that
// changed one of its rows is there.
#pragma once

#include <cstdint>
#include <memory>

#include "lab/scenario/crash/judge.h"
#include "lab/scenario/crash/options.h"

namespace gannet::scenario::crash {

inline constexpr uint64_t kLoadTables = 10;  // even: hash, odd: ordered
inline constexpr uint64_t kLoadRows = 400;   // of a table, on all nodes
// After this many cycles a new directory is used, because the tables of the old one are full.
inline constexpr uint64_t kLoadCycles = 8;

inline uint64_t NodeOfLoadRow(uint64_t key, int nodes) {
  return key % static_cast<uint64_t>(nodes);
}
// The only worker that changes it.
inline uint32_t WorkerOfLoadRow(uint64_t key, int workers) {
  return static_cast<uint32_t>(key / 4 % static_cast<uint64_t>(workers));
}

// The content of a row, as a child reports it (Message::c of kRow).
struct LoadRow {
  uint32_t load = 0;    // the load that made it
  uint32_t number = 0;  // the operation that changed it last; 0: none

  uint64_t content() const { return uint64_t{load} << 32 | number; }
  static LoadRow Of(uint64_t content) { return {static_cast<uint32_t>(content >> 32), static_cast<uint32_t>(content)}; }
};

std::unique_ptr<Judge> MakeLoadJudge(const CrashOptions& options);

}  // namespace gannet::scenario::crash
