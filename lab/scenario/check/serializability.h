// The checker of strict serializability: is there a serial order of all committed transactions that explains everything
// they read and that respects real time?
//
// It builds the version order of each key and the graph of the dependencies (Adya's ww, wr, rw; and real time), and
// searches for cycles. Scans and missed Gets read absences, so phantoms are ordinary cycles. Linear in the history
// except for sorting: about a second for a million accesses.
//
// kViolated and kSerializable are proofs. A history leaves choices where it does not tell which of several absences a
// read saw, in which order concurrent inserts and removals of a key took place, or which of several unknown removals
// took place (history.h says how to avoid them); they are guessed. A guess that explains everything is a proof, too; so
// is the failure of all possible guesses. If not all were tried, the verdict is kUnknown.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/history.h"

namespace gannet::scenario {

struct CheckOptions {
  size_t max_anomalies = 10;
  int max_tries = 32;  // limit of guesses
  uint64_t seed = 1;   // for guesses
};

Report CheckSerializability(const History& history, const CheckOptions& options = {});

}  // namespace gannet::scenario
