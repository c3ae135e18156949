// The checks that every backend makes before it performs a verb, and the counts of verbs. Shared, so that the backends
// agree.
#pragma once

#include <cstdint>

#include "base/cache_line.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/statistics.h"

namespace gannet::rdma {

// "READ", "CAS", ...
const char* NameOf(Verb verb);

// The memory that verbs may access (heap_parts.h).
struct VerbRange {
  int num_nodes = 0;
  uint64_t heap_offset = 0;
  uint64_t writable_offset = 0;
  uint64_t bytes_per_node = 0;
};

// True if `operation` is aligned, lies within one part of the heap of a node that can exist, and is allowed there.
inline bool IsAllowed(const Operation& operation, const VerbRange& range) {
  const GlobalAddress at = operation.remote;
  const uint64_t end = at.offset() + operation.size;
  return at.node() < range.num_nodes && ((at.offset() | operation.size) & (kWordBytes - 1)) == 0 &&
         end <= range.bytes_per_node &&
         (at.offset() >= range.writable_offset ||
          (operation.verb == Verb::kRead && at.offset() >= range.heap_offset && end <= range.writable_offset));
}

// Status of a verb or call whose connection has ended.
Status ConnectionChanged(NodeId node);

// Reason for a refused verb: it is not allowed, or its issuer or its target is not attached.
Status ExplainRefusal(const Operation& operation, const VerbRange& range, NodeId issuer, bool issuer_is_there);

inline void CountVerb(const Operation& operation, VerbCounters* counters) {
  switch (operation.verb) {
    case Verb::kRead:
      ++counters->reads;
      counters->bytes_in += operation.size;
      break;
    case Verb::kWrite:
      ++counters->writes;
      counters->bytes_out += operation.size;
      break;
    case Verb::kCompareAndSwap:
      ++counters->compare_and_swaps;
      counters->bytes_out += 2 * kWordBytes;
      counters->bytes_in += kWordBytes;
      break;
    case Verb::kFetchAndAdd:
      ++counters->fetch_and_adds;
      counters->bytes_out += kWordBytes;
      counters->bytes_in += kWordBytes;
      break;
  }
}

}  // namespace gannet::rdma
