// A request to stop early. A long function gets the address of a flag and checks it regularly. It returns Cancelled
// soon after another thread, or a signal handler, has set the flag.
#pragma once

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace gannet {

// `stop` may be null: then there is never a request.
inline bool IsStopRequested(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// Returns Cancelled, "stopped while <what>", once *stop is true.
inline Status CheckStop(const std::atomic<bool>* stop, absl::string_view what) {
  if (!IsStopRequested(stop)) [[likely]]
    return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("stopped while ", what));
}

}  // namespace gannet
