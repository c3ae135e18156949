// Reads that found a key absent. A key is absent before its first insert and between each removal and the next insert:
//
//     gap 0 | insert .. remove | gap 1 | insert .. remove | gap 2 ...
//              presence 1                 presence 2
//
// Nothing in such a read says which gap it saw. Real time leaves a range of gaps, mostly one; then it follows that
// gap's removal and precedes its insert. If it leaves none, the edges added for the nearest one close a cycle. If it
// leaves several, the read is loose: it follows the first one's removal and precedes the last one's insert, and
// serial_order.h decides the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "scenario/check/commits.h"
#include "scenario/check/dependency_graph.h"
#include "scenario/check/history.h"
#include "scenario/check/version_order.h"

namespace gannet::scenario {

// During one presence of a key the operation that found it absent cannot be placed: it precedes `insert` or follows
// `remove`.
struct LooseAbsence {
  OperationId reader;
  OperationId insert;
  OperationId remove;
  KeyIndex key;
  bool by_scan;
  bool guessed;
};

// Adds the edges that are known; returns the choices that are left.
std::vector<LooseAbsence> PlaceAbsences(const History& history, const WriteIndex& index, const Commits& commits,
                                        const VersionOrder& order, DependencyGraph* graph);

}  // namespace gannet::scenario
