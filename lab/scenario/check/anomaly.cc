#include "lab/scenario/check/anomaly.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::scenario {

const char* NameOf(AnomalyKind kind) {
  switch (kind) {
    case AnomalyKind::kUnwrittenRead:
      return "read of a value that was never written";
    case AnomalyKind::kAbortedRead:
      return "aborted read (G1a)";
    case AnomalyKind::kIntermediateRead:
      return "intermediate read (G1b)";
    case AnomalyKind::kInternal:
      return "internal inconsistency";
    case AnomalyKind::kMalformedScan:
      return "malformed scan";
    case AnomalyKind::kDuplicateWrite:
      return "write id used twice";
    case AnomalyKind::kDivergentVersions:
      return "divergent versions";
    case AnomalyKind::kIncompatibleOrder:
      return "incompatible order";
    case AnomalyKind::kLostUpdate:
      return "lost update";
    case AnomalyKind::kDirtyWrite:
      return "dirty write (G0)";
    case AnomalyKind::kCircularInformationFlow:
      return "circular information flow (G1c)";
    case AnomalyKind::kReadSkew:
      return "read skew (G-single)";
    case AnomalyKind::kWriteSkew:
      return "write skew (G2)";
    case AnomalyKind::kPhantom:
      return "phantom";
    case AnomalyKind::kStaleRead:
      return "stale read";
    case AnomalyKind::kLostWrite:
      return "lost write";
    case AnomalyKind::kRealTime:
      return "cycle with real time";
  }
  return "?";
}

bool Report::Has(AnomalyKind kind) const {
  return std::ranges::any_of(anomalies, [&](const Anomaly& anomaly) { return anomaly.kind == kind; });
}

std::string Report::ToString() const {
  std::string text;
  switch (verdict) {
    case Verdict::kSerializable:
      text = "strictly serializable";
      break;
    case Verdict::kViolated:
      text = "NOT strictly serializable";
      break;
    case Verdict::kUnknown:
      text = "undecided: no order was found, but the history leaves choices that were not all tried";
      break;
  }
  absl::StrAppend(&text, ": ", operations, " transactions, ", committed, " committed (", info_committed,
                  " of them unknown to their client), ", edges, " edges\n");
  for (const Anomaly& anomaly : anomalies) absl::StrAppend(&text, NameOf(anomaly.kind), ": ", anomaly.text, "\n");
  return text;
}

}  // namespace gannet::scenario
