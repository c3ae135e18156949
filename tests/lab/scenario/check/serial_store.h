// A store that executes one transaction after the other, and the history that its clients would record: each
// transaction takes effect at one moment between its invocation and its completion.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lab/scenario/check/history.h"

namespace gannet::scenario {

struct Step {
  enum class Kind : uint8_t { kGet, kUpdate, kInsert, kRemove, kScan } kind;
  RowKey row = {};
  WriteId seen = kAbsent;
  WriteId id = kAbsent;
  uint64_t version = 0;
  ScanQuery query = {};
  std::vector<std::pair<uint64_t, WriteId>> rows = {};
};

struct Transaction {
  uint64_t invoked = 0;
  uint64_t completed = 0;
  Outcome outcome = Outcome::kOk;
  std::vector<Step> steps;
};

struct WorkloadOptions {
  uint64_t seed = 1;
  size_t transactions = 100;
  uint64_t keys = 10;
  uint64_t max_steps = 4;
  uint64_t overlap = 50;  // number of transactions that take effect during the longest one
  uint32_t info_percent = 0;
  uint32_t remove_percent = 10;
  uint32_t scan_percent = 10;
  bool versions = false;  // writes are numbered, and rows are written without a read
};

// Returns the transactions in the order in which they took effect. Half of the kInfo transactions never did.
std::vector<Transaction> RunSerially(const WorkloadOptions& options);

// The history of the transactions, which may be in any order, recorded in the order of invocation.
History Record(const std::vector<Transaction>& transactions);

}  // namespace gannet::scenario
