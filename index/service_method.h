// ServeIndexMethod: registers a method of an index kind, whose requests begin with the number of an index.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"

namespace gannet::index {

// `method` gets the index, which is a Target, a context inside the epoch, the rest of the request, and the response to
// write. A request that names no such index is answered with NotFound, which says `kind`.
template <class Target>
void ServeIndexMethod(IndexService* service, rdma::MethodId id, const char* kind,
                      std::function<Status(Target*, Context&, rdma::WireReader&, rdma::WireWriter&)> method) {
  service->node().Handle(
      id,
      [service, kind, method = std::move(method)](rdma::NodeId, std::span<const std::byte> request,
                                                  std::span<std::byte> response) -> StatusOr<size_t> {
        rdma::WireReader reader(request);
        const IndexId index = reader.GetU16();
        IndexService::Guard guard(service);  // before it finds the index, which may be removed
        auto* target = dynamic_cast<Target*>(service->Find(index));
        if (!reader.ok() || target == nullptr) {
          return absl::NotFoundError(absl::StrCat("node ", service->node().id(), " has no ", kind, " index ", index));
        }
        rdma::WireWriter writer(response);
        GANNET_RETURN_IF_ERROR(method(target, guard.context(), reader, writer));
        return writer.Finish();
      });
}

}  // namespace gannet::index
