#include "txn/access/failure.h"

#include "base/mutant.h"

namespace gannet::txn {

[[gnu::cold]] Status Failure::Note(Status status) {
  const bool is_failure = !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status);
  if (is_failure && !GANNET_MUTANT(kForgetFailure)) Set(status);
  return status;
}

}  // namespace gannet::txn
