// Failure: the first failure (transaction.h) of a transaction's operations. Ok: there is none. After it, Transaction
// allows no operation and no commit.
#pragma once

#include "base/status.h"

namespace gannet::txn {

// True if an operation that returns `status`, which is not Ok, has a result (transaction.h).
inline bool IsResult(const Status& status) {
  return absl::IsNotFound(status) || absl::IsOutOfRange(status) || absl::IsAlreadyExists(status) ||
         absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

class Failure {
 public:
  // Called by an operation that returns `status`, which is neither Ok nor the result of a single request. Remembers a
  // failure; a wrong argument, or a table that cannot be used, is none. Returns `status`.
  Status Note(Status status);
  // Remembers what is a failure whatever its code.
  void Set(const Status& status) {
    if (first_.ok()) first_ = status;
  }
  const Status& first() const { return first_; }
  void Clear() { first_ = absl::OkStatus(); }

 private:
  Status first_;
};

}  // namespace gannet::txn
