// The B-link tree's place among the kinds: its construction and its calls.
#include "index/blink/blink.h"

#include "index/blink/blink_index.h"
#include "index/blink/remote_blink.h"
#include "index/service_method.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"

namespace gannet::index {

namespace {

template <class Keys>
StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, const typename Keys::Schema& schema,
                                             const BlinkOptions& options) {
  auto index = blink::BasicBlinkIndex<Keys>::Create(service, schema, options);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return *std::move(index);
}

}  // namespace

StatusOr<std::unique_ptr<LocalIndex>> CreateBlink(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const BlinkOptions& options) {
  if (key_kind == KeyKind::kInteger) return Create<blink::IntegerKeys>(service, id, {}, options);
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return Create<blink::ByteKeys>(service, id, {KeyedHash::DrawSeed(), options.max_key_bytes}, options);
}

void RegisterBlinkMethods(IndexService* service) {
  ServeIndexMethod<blink::BlinkTree>(
      service, blink::kDescribe, "blink",
      [](blink::BlinkTree* tree, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        tree->Describe(response);
        return absl::OkStatus();
      });
  shared_leaf::RegisterBlockLending(service);
  shared_leaf::RegisterChangeCalls(service);
}

}  // namespace gannet::index
