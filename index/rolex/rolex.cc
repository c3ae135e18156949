// ROLEX's place among the kinds: its construction and its calls.
#include "index/rolex/rolex.h"

#include "index/rolex/model_cache.h"
#include "index/rolex/rolex_index.h"
#include "index/service_method.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"

namespace gannet::index {

namespace {

template <class Keys>
StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, const typename Keys::Schema& schema,
                                             const RolexOptions& options) {
  auto index = rolex::BasicRolexIndex<Keys>::Create(service, schema, options);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return *std::move(index);
}

}  // namespace

StatusOr<std::unique_ptr<LocalIndex>> CreateRolex(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const RolexOptions& options) {
  if (key_kind == KeyKind::kInteger) return Create<rolex::IntegerKeys>(service, id, {}, options);
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return Create<rolex::ByteKeys>(service, id, {KeyedHash::DrawSeed(), options.max_key_bytes}, options);
}

void RegisterRolexMethods(IndexService* service) {
  using rolex::RolexIndex;
  ServeIndexMethod<RolexIndex>(
      service, rolex::kDescribe, "rolex",
      [](RolexIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        index->Describe(response);
        return absl::OkStatus();
      });
  shared_leaf::RegisterBlockLending(service);
  shared_leaf::RegisterChangeCalls(service);
}

}  // namespace gannet::index
