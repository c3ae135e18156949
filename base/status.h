// Recoverable errors: absl::Status with a message that says what to do.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

using absl::Status;
using absl::StatusOr;

}  // namespace gannet

// This is for plain functions: `expr` must not contain co_await (g++ 12 miscompiles that in macros of this kind).
#define GANNET_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::gannet::Status gannet_status_ = (expr); !gannet_status_.ok()) return gannet_status_; \
  } while (false)

// GANNET_RETURN_IF_ERROR for a coroutine. Await first, name the result, then test it.
#define GANNET_CO_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                            \
    if (::gannet::Status gannet_status_ = (expr); !gannet_status_.ok()) co_return gannet_status_; \
  } while (false)
