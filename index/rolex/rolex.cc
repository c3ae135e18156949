// ROLEX's place among the kinds: its construction and its calls.
#include "index/rolex/rolex.h"

#include "index/remote/block_lending.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex_index.h"
#include "index/service_method.h"

namespace gannet::index {

StatusOr<std::unique_ptr<LocalIndex>> CreateRolex(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const RolexOptions& options) {
  if (key_kind != KeyKind::kInteger) {
    return absl::InvalidArgumentError("a rolex index has integer keys; choose xstore for byte keys");
  }
  StatusOr<std::unique_ptr<rolex::RolexIndex>> index = rolex::RolexIndex::Create(service, options);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return *std::move(index);
}

void RegisterRolexMethods(IndexService* service) {
  using rolex::RolexIndex;
  ServeIndexMethod<RolexIndex>(
      service, rolex::kDescribe, "rolex",
      [](RolexIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        response.PutU64(index->directory().root_offset());
        response.PutU64(index->queue_offset());
        return absl::OkStatus();
      });
  remote::RegisterBlockLending(service);
}

}  // namespace gannet::index
