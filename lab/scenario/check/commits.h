// Determines which transactions count as committed, what they wrote, and what they read from each other.
//
// A transaction counts if its client knows that it committed. A transaction with an unknown outcome (kInfo) counts if
// and only if a transaction that counts saw one of its writes. A removal cannot be seen: it counts if a key that was
// present is later found absent and no other removal explains that. If several removals would explain it, one of them
// is chosen, which is a guess.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/choices.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/transaction_walk.h"
#include "lab/scenario/check/write_index.h"

namespace gannet::scenario {

struct Commits {
  std::vector<uint8_t> committed;          // by operation
  std::vector<uint8_t> guessed;            // by operation: committed by a guess
  std::vector<uint8_t> absence_uncertain;  // by key: an unknown removal that is not counted may explain absences
  // The time by which the effect of each operation was visible; kNever if that is not known.
  std::vector<uint64_t> applied_by;
  size_t info_committed = 0;
  std::vector<Anomaly> doubts;    // anomalies of transactions that are committed by a guess
  bool unknown_removals = false;  // there are some, and not all ways to count them are tried
  // Reads and writes of committed transactions.
  std::vector<ExternalRead> reads;
  std::vector<KeyWrite> writes;

  bool Certain(OperationId op) const { return !guessed[op]; }
};

// Time at which the client knew that it committed.
inline uint64_t CompletionOf(const Operation& operation) {
  return operation.outcome == Outcome::kOk ? operation.completed : kNever;
}

// Appends the anomalies of single reads and writes.
Commits FindCommits(const History& history, const WriteIndex& index, Choices* choices, std::vector<Anomaly>* anomalies);

}  // namespace gannet::scenario
