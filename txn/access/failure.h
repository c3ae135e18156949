// Failure: the first failure (transaction.h) of a transaction's operations. Ok: none. Transaction lets no operation
// through after it, and no commit.
#pragma once

#include "base/status.h"

namespace gannet::txn {

class Failure {
 public:
  // Called by an operation that returns `status`, which is not Ok and not what a single request came to: a failure is
  // remembered. (A wrong argument is none.) Returns `status`.
  Status Note(Status status);
  const Status& first() const { return first_; }
  void Clear() { first_ = absl::OkStatus(); }

 private:
  Status first_;
};

}  // namespace gannet::txn
