// XStore's entry in the registry.
#include "index/registry.h"
#include "index/xstore/xstore.h"

namespace gannet::index {

IndexKindEntry XStoreKind() {
  return {
      .name = "xstore",
      .traits = {.ordered = true, .keeps_order = true, .learned = true},
      .create = [](IndexService* service, IndexId id,
                   const IndexOptions& options) -> StatusOr<std::unique_ptr<LocalIndex>> {
        return XStore::Create(service, id,
                              {.key_kind = options.key_kind,
                               .max_key_bytes = options.max_key_bytes,
                               .fixed_sub_models = options.fixed_sub_models});
      },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            if (options.learned != nullptr) return ConnectXStore(channel, owner, id, *options.learned);
            return ConnectXStore(channel, owner, id,
                                 {.by_call = options.by_call, .call_timeout = options.call_timeout});
          },
      .register_methods = RegisterXStoreMethods,
      // A leaf of 16 keys, with its share of the tree and of the model.
      .bytes_per_key = [](double fill) { return 400.0 / (16.0 * fill); },
  };
}

}  // namespace gannet::index
