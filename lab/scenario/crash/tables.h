// Names of rows in the messages from the child to the judge.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gannet::scenario::crash {

// kv has KvTable. bank: an account's row is reported as two, with one number each.
enum BankTable : uint64_t { kBalances, kMoves, kJournal };

// tpcc: a "worker" is a district, its operations are its orders, which have numbers without gaps.
inline constexpr uint32_t kTpccWarehouses = 2;
inline constexpr size_t kTpccWorkers = size_t{kTpccWarehouses} * 10;

}  // namespace gannet::scenario::crash
