// The result of a checker: named anomalies, and the verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario/check/history.h"

namespace gannet::scenario {

enum class AnomalyKind : uint8_t {
  // Anomalies of one read or write.
  kUnwrittenRead,      // saw a write id that was never written, or written to another key, or a removal as a row
  kAbortedRead,        // G1a: saw a write of a transaction, or of an attempt, that failed
  kIntermediateRead,   // G1b: saw a write that its own transaction overwrote
  kInternal,           // a transaction did not see its own write, or saw two versions of a key
  kMalformedScan,      // rows out of order, twice, or outside of the range
  kDuplicateWrite,     // one write id was written twice: the workload is wrong
  kDivergentVersions,  // two writes of a key have the same version number
  kIncompatibleOrder,  // list-append: two reads of one key, neither a prefix of the other
  // Anomalies of a cycle.
  kLostUpdate,               // two committed writes based on the same version
  kDirtyWrite,               // G0: only ww
  kCircularInformationFlow,  // G1c: ww and wr
  kReadSkew,                 // G-single: one rw
  kWriteSkew,                // G2: several rw
  kPhantom,                  // an absence that a Get or a scan saw is part of the cycle
  kStaleRead,                // a read did not see a write that was complete before the read began
  kLostWrite,                // the same, and no read ever saw that write
  kRealTime,                 // any other cycle that needs the order of real time
};

const char* NameOf(AnomalyKind kind);

struct Anomaly {
  AnomalyKind kind;
  std::vector<OperationId> operations;  // in the order of the cycle, where there is one
  std::string text;                     // several lines, for humans
};

enum class Verdict : uint8_t {
  kSerializable,  // a serial order of all committed transactions exists that explains every read and respects real time
  kViolated,      // no such order exists
  kUnknown,       // the history does not tell enough, and no order was found
};

struct Report {
  Verdict verdict = Verdict::kSerializable;
  std::vector<Anomaly> anomalies;  // with guesses: the anomalies of the last try
  size_t operations = 0;
  size_t committed = 0;       // operations counted as committed
  size_t info_committed = 0;  // of these, operations whose client does not know the outcome
  size_t edges = 0;           // of the dependency graph
  int tries = 0;              // number of guesses, where the history left a choice

  bool ok() const { return verdict == Verdict::kSerializable; }
  bool Has(AnomalyKind kind) const;
  std::string ToString() const;
};

}  // namespace gannet::scenario
