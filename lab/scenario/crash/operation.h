// The operations of the workloads kv and bank. Operation `number` of a worker is a pure function of the seed, so the
// child need not report it and the parent knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gannet::scenario::crash {

// ---------------------------------------------------------------------------------------------------------------------
// kv: every worker has its own rows in two tables, and changes one to four of them at once.

inline constexpr uint64_t kKeysPerWorker = 24;  // in each table
enum KvTable : uint64_t { kHashTable, kOrderedTable, kKvTables };

struct KvChange {
  uint64_t table = kHashTable;
  uint64_t key = 0;
  bool remove = false;  // possibly of a row that is not there
  uint64_t content = 0;
};
std::vector<KvChange> KvOperation(uint64_t seed, uint32_t worker, uint64_t number);

// A row's payload is its content and bytes that follow from it: 8 to 232 bytes.
inline constexpr size_t kMostPayloadBytes = 232;
std::string PayloadOf(uint64_t content);
// The content, or kBrokenContent if the payload is not what PayloadOf makes.
uint64_t ContentOf(std::span<const std::byte> payload);

// ---------------------------------------------------------------------------------------------------------------------
// bank: transfers between accounts that all workers share. The journal has the last transfers of each worker.

inline constexpr uint64_t kAccounts = 60;
inline constexpr int64_t kOpeningBalance = 1000;
inline constexpr uint64_t kJournalEntries = 12;  // per worker

struct Transfer {
  uint64_t from = 0;
  uint64_t to = 0;  // differs from `from`
  int64_t amount = 0;
};
Transfer BankOperation(uint64_t seed, uint32_t worker, uint64_t number);
// The content of its journal line.
uint64_t ContentOf(const Transfer& transfer);

}  // namespace gannet::scenario::crash
