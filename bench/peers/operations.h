// The operations that are measured, in the order in which each engine does them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/peers/data.h"
#include "bench/peers/engine.h"

namespace gannet::bench::peers {

enum class Action : uint8_t {
  kLoad,          // transactions of kLoadBatch rows, in random order
  kRead,          // one row
  kReadMany,      // kReadBatch rows one after the other
  kReadTogether,  // kReadBatch rows at once
  kScanAll,
  kScanSome,  // kScanRows rows
  kUpdate,
  kTransfer,
};

inline constexpr uint64_t kLoadBatch = 1000;
inline constexpr uint64_t kReadBatch = 100;
inline constexpr uint64_t kScanRows = 100;

struct Operation {
  std::string id;  // "words.read"; stable
  Action action = Action::kRead;
  Table table = Table::kWords;
  Durability durability = Durability::kMemory;
  int threads = 1;

  bool is_scan() const { return action == Action::kScanAll || action == Action::kScanSome; }
  bool writes() const { return action == Action::kUpdate || action == Action::kTransfer; }
};

// Texts for people. Describe: "read a word". Unit: what the operation's rate counts, "rows".
std::string Describe(const Operation& operation);
std::string Unit(const Operation& operation);

// The operations whose id contains `only`; loads are always there. Operations of one durability are neighbours.
std::vector<Operation> Operations(const std::string& only);

}  // namespace gannet::bench::peers
