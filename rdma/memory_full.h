// The error of an allocation for which there is no registered memory. Other ResourceExhausted ones name a full disk or
// log, or come from programs. It is told by its text, which another node's answer has, too.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace gannet::rdma {

// Part of the text.
inline constexpr absl::string_view kBytesAreTaken = " bytes are taken";

// The end of the text: what to do.
inline constexpr absl::string_view kGiveMemory = "give nodes more memory (DatabaseOptions::memory_bytes)";

inline bool IsMemoryFull(const Status& status) {
  return absl::IsResourceExhausted(status) && absl::StrContains(status.message(), kBytesAreTaken);
}

}  // namespace gannet::rdma
