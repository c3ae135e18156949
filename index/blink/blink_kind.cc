// The B-link tree's entry in the registry.
#include "index/blink/blink.h"
#include "index/blink/shared_cache.h"
#include "index/registry.h"

namespace gannet::index {

IndexKindEntry BlinkKind() {
  return {
      .name = "blink",
      .traits = {.ordered = true, .keeps_order = true, .client_writes = true, .holds_values = true},
      .create =
          [](IndexService* service, IndexId id, const IndexOptions& options) {
            return CreateBlink(service, id, options.key_kind,
                               {.max_key_bytes = options.max_key_bytes, .rights = options.rights});
          },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            return ConnectBlink(channel, owner, id, BlinkClientOptions::Of(options));
          },
      .register_methods = RegisterBlinkMethods,
      // A leaf of 18 slots, and a seventeenth of that for the levels above.
      .bytes_per_key = [](double fill) { return 448.0 / 18 / fill * 1.06; },
      .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeBlinkCache(max_bytes); },
  };
}

}  // namespace gannet::index
