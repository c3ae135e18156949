#include "rdma/verb_check.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace gannet::rdma {

const char* NameOf(Verb verb) {
  switch (verb) {
    case Verb::kRead:
      return "READ";
    case Verb::kWrite:
      return "WRITE";
    case Verb::kCompareAndSwap:
      return "CAS";
    case Verb::kFetchAndAdd:
      return "FAA";
  }
  return "unknown verb";
}

Status ConnectionChanged(NodeId node) {
  return absl::UnavailableError(absl::StrCat("the connection to node ", node, " broke"));
}

Status ExplainRefusal(const Operation& operation, const VerbRange& range, NodeId issuer, bool issuer_is_there) {
  const GlobalAddress at = operation.remote;
  const std::string what = absl::StrCat(NameOf(operation.verb), " of ", operation.size, " bytes at ", at.ToString());
  if (at.node() >= range.num_nodes) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the cluster has ", range.num_nodes, " nodes"));
  }
  if (((at.offset() | operation.size) & (kWordBytes - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": address and size must be multiples of 8"));
  }
  const uint64_t end = at.offset() + operation.size;
  if (at.offset() < range.heap_offset || end > range.bytes_per_node) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": outside the node's memory, which is ", range.heap_offset, " to ", range.bytes_per_node));
  }
  if (at.offset() < range.writable_offset && end > range.writable_offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": across the parts of the node's memory, of which the second begins at ", range.writable_offset));
  }
  if (!IsAllowed(operation, range)) {
    return absl::PermissionDeniedError(
        absl::StrCat(what, ": others may only READ what lies below ", range.writable_offset, " in the node's memory"));
  }
  if (!issuer_is_there) {
    return absl::UnavailableError(absl::StrCat(what, ": node ", issuer, ", its issuer, is dead"));
  }
  return absl::UnavailableError(absl::StrCat(what, ": node ", at.node(), " is not there"));
}

}  // namespace gannet::rdma
