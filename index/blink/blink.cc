// The B-link tree's place among the kinds: its construction and its calls.
#include "index/blink/blink.h"

#include "index/blink/blink_index.h"
#include "index/blink/remote_blink.h"
#include "index/remote/block_lending.h"
#include "index/service_method.h"

namespace gannet::index {

StatusOr<std::unique_ptr<LocalIndex>> CreateBlink(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const BlinkOptions& options) {
  if (key_kind != KeyKind::kInteger) {
    return absl::InvalidArgumentError("a blink index has integer keys; choose xstore for byte keys");
  }
  StatusOr<std::unique_ptr<blink::BlinkIndex>> index = blink::BlinkIndex::Create(service, options);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return *std::move(index);
}

void RegisterBlinkMethods(IndexService* service) {
  using blink::BlinkIndex;
  ServeIndexMethod<BlinkIndex>(
      service, blink::kDescribe, "blink",
      [](BlinkIndex* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) -> Status {
        GANNET_RETURN_IF_ERROR(request.Finish());
        response.PutU64(index->root().offset());
        return absl::OkStatus();
      });
  remote::RegisterBlockLending(service);
}

}  // namespace gannet::index
