// Owners of the objects of libibverbs and librdmacm, and the limits of a device.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gannet::rdma::verbs {

template <auto kDestroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    (void)kDestroy(object);  // fails only if a part of it is still in use, which the order of the owners excludes
  }
};

using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using CompletionEvents = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CmEvents = std::unique_ptr<rdma_event_channel, Destroyer<rdma_destroy_event_channel>>;
using CmId = std::unique_ptr<rdma_cm_id, Destroyer<rdma_destroy_id>>;

inline Status SystemError(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
}

// Registers memory of this process.
inline StatusOr<MemoryRegion> Register(ibv_pd* pd, void* at, size_t bytes, int access) {
  MemoryRegion region(ibv_reg_mr(pd, at, bytes, access));
  if (region == nullptr) {
    const int error = errno;
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot register ", bytes, " bytes of memory",
                            error == ENOMEM ? ": raise the limit of locked memory (ulimit -l), or use less" : ""));
  }
  return region;
}

}  // namespace gannet::rdma::verbs
