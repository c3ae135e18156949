// What the files that read and lock records share.
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"

namespace gannet::txn {

// How often a read looks again at a record that is locked or being removed before it gives up (Aborted).
inline constexpr int kLookAgain = 64;
// READs of one record that is locked or being written before the access gives up.
inline constexpr int kReadAgain = 16;
// Looks of an owner at a record that is locked, for a request: as long as a CPU takes to install one. It must not wait
// for a lock of a transaction that may be waiting for a call to the same owner: then all its threads do.
inline constexpr int kOwnersSpins = 16;

// Of a transaction that met another: Session::Run runs it again.
inline Status Conflict() {
  return Status(absl::StatusCode::kAborted, "");
}

// Of a transaction that met a record whose state word stayed `state`: Unavailable if a worker of a dead node has locked
// it, else a conflict.
Status LockedTooLong(const rdma::Fabric& fabric, uint64_t state);

// `what`: was asked for, such as "a read".
inline Status MalformedReply(rdma::NodeId node, const char* what) {
  return absl::InternalError(absl::StrCat("node ", node, " answered ", what, " with a malformed message"));
}

}  // namespace gannet::txn
