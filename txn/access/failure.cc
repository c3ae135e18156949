#include "txn/access/failure.h"

#include "base/mutant.h"

namespace gannet::txn {

[[gnu::cold]] Status Failure::Note(Status status) {
  if (first_.ok() && !absl::IsInvalidArgument(status) && !GANNET_MUTANT(kForgetFailure)) first_ = status;
  return status;
}

}  // namespace gannet::txn
