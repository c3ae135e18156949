#include "cli/common/machine_memory.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/usable_memory.h"

namespace gannet::cli {

uint64_t DefaultMemoryPerNode() {
  constexpr uint64_t kLargePage = uint64_t{2} << 20;
  return (UsableMemoryBytes() / 4 * 3) & ~(kLargePage - 1);
}

// Errors about memory end with what to do: rdma/memory_full.h and rdma/shm/region.cc.
Status NameMemoryFlag(const Status& status) {
  absl::string_view message = status.message();
  if (!absl::IsResourceExhausted(status)) return status;
  if (!absl::ConsumeSuffix(&message, " (DatabaseOptions::memory_bytes)") &&
      !absl::EndsWith(message, "nodes less memory")) {
    return status;
  }
  return absl::ResourceExhaustedError(absl::StrCat(message, " (--memory-per-node)"));
}

}  // namespace gannet::cli
