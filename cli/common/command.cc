#include "cli/common/command.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "cli/common/exit_codes.h"
#include "cli/common/interrupt.h"

namespace gannet::cli {

int Fail(std::string_view name, const Status& status) {
  if (absl::IsCancelled(status)) return Fail(name, status, InterruptGuard::exit_code());
  return Fail(name, status, absl::IsInvalidArgument(status) ? kExitBadFlags : kExitFailed);
}

int Fail(std::string_view name, const Status& status, int exit_code) {
  std::fflush(stdout);  // the output comes before its error
  absl::FPrintF(stderr, "gannet %s: %s\n", name, status.message());
  return exit_code;
}

Status WithRest(const Status& status, const std::string& rest) {
  if (!absl::IsCancelled(status)) return status;
  return absl::CancelledError(absl::StrFormat("%s; %s", status.message(), rest));
}

}  // namespace gannet::cli
