// Places reads that found a key absent in the order. A key is absent before its first insert and between each removal
// and the next insert:
//
//     gap 0 | insert .. remove | gap 1 | insert .. remove | gap 2 ...
//              presence 1                 presence 2
//
// Nothing in such a read says which gap it saw. Real time leaves a range of gaps, mostly of one gap; then the read
// follows that gap's removal and precedes its insert. If no gap is left, the edges for the nearest one close a cycle.
// If several are left, the read is loose: it follows the removal of the first one and precedes the insert of the last
// one, and serial_order.h decides the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/dependency_graph.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/version_order.h"

namespace gannet::scenario {

// A presence of a key during which an operation that found the key absent cannot be placed: the operation precedes
// `insert` or follows `remove`.
struct LooseAbsence {
  OperationId reader;
  OperationId insert;
  OperationId remove;
  KeyIndex key;
  bool by_scan;
  bool guessed;
};

// Adds the edges that are known; returns the remaining choices.
std::vector<LooseAbsence> PlaceAbsences(const History& history, const WriteIndex& index, const Commits& commits,
                                        const VersionOrder& order, DependencyGraph* graph);

}  // namespace gannet::scenario
