// The oracle of strict serializability: is there an order of all committed transactions, one after the other, that
// explains all that they read and that respects real time?
//
// It builds the version order of each key and the graph of what must come before what (Adya's ww, wr, rw; and real
// time), and looks for cycles. Scans and missed Gets read absences, so phantoms are cycles like others. Linear in the
// history but for sorting: about a second for a million accesses.
//
// kViolated and kSerializable are proofs. A history leaves choices where it does not tell which of several absences a
// read saw, in which order concurrent inserts and removals of a key were, or which of several unknown removals happened
// (history.h says how to avoid them); they are then guessed. A guess that explains all is a proof, too; so is it if all
// that are possible fail. If not all were tried, the verdict is kUnknown.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scenario/check/anomaly.h"
#include "scenario/check/history.h"

namespace gannet::scenario {

struct CheckOptions {
  size_t max_anomalies = 10;
  int max_tries = 32;  // of guesses
  uint64_t seed = 1;   // of guesses
};

Report CheckSerializability(const History& history, const CheckOptions& options = {});

}  // namespace gannet::scenario
