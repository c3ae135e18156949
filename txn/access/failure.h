// Failure: the first failure (transaction.h) of a transaction's operations. Ok: there is none. After it, Transaction
// allows no operation and no commit.
#pragma once

#include "base/status.h"

namespace gannet::txn {

class Failure {
 public:
  // Called by an operation that returns `status`, which is neither Ok nor the result of a single request. Remembers a
  // failure; a wrong argument is none. Returns `status`.
  Status Note(Status status);
  const Status& first() const { return first_; }
  void Clear() { first_ = absl::OkStatus(); }

 private:
  Status first_;
};

}  // namespace gannet::txn
