// What a checker says: anomalies by their names, and the verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scenario/check/history.h"

namespace gannet::scenario {

enum class AnomalyKind : uint8_t {
  // Of one read or write.
  kUnwrittenRead,      // saw a write id that nobody wrote, wrote to another key, or a removal as if it were a row
  kAbortedRead,        // G1a: saw a write of a transaction, or of an attempt, that failed
  kIntermediateRead,   // G1b: saw a write that its own transaction overwrote
  kInternal,           // a transaction did not see its own write, or saw two versions of one key
  kMalformedScan,      // rows out of order, twice, or outside of the range
  kDuplicateWrite,     // one write id written twice: the workload is wrong
  kDivergentVersions,  // two writes of a key with one version number
  kIncompatibleOrder,  // list-append: two reads of one key, neither a prefix of the other
  // Of a cycle.
  kLostUpdate,               // two committed writes made from the same version
  kDirtyWrite,               // G0: only ww
  kCircularInformationFlow,  // G1c: ww and wr
  kReadSkew,                 // G-single: one rw
  kWriteSkew,                // G2: several rw
  kPhantom,                  // an absence that a Get or a scan saw is part of the cycle
  kStaleRead,                // a read did not see what was complete before it began
  kLostWrite,                // the same, and nobody ever saw that write
  kRealTime,                 // any other cycle that needs the order of real time
};

const char* NameOf(AnomalyKind kind);

struct Anomaly {
  AnomalyKind kind;
  std::vector<OperationId> operations;  // in the order of the cycle, where there is one
  std::string text;                     // several lines, for people
};

enum class Verdict : uint8_t {
  kSerializable,  // an order of all committed transactions exists that explains all and respects real time
  kViolated,      // none exists
  kUnknown,       // the history does not tell enough, and no order was found
};

struct Report {
  Verdict verdict = Verdict::kSerializable;
  std::vector<Anomaly> anomalies;  // of guesses: what stood in the way of the last
  size_t operations = 0;
  size_t committed = 0;       // of them, those that were counted as committed
  size_t info_committed = 0;  // of these, those whose client did not know
  size_t edges = 0;           // of the graph
  int tries = 0;              // of guesses, where the history left a choice

  bool ok() const { return verdict == Verdict::kSerializable; }
  bool Has(AnomalyKind kind) const;
  std::string ToString() const;
};

}  // namespace gannet::scenario
