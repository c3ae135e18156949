// XStore's entry in the registry.
#include <any>

#include "index/registry.h"
#include "index/xstore/client/cached_model.h"
#include "index/xstore/xstore.h"

namespace gannet::index {

namespace {

// Caches of this kind are made by its make_cache.
std::shared_ptr<xstore::CachedModel> CacheOf(const std::shared_ptr<SharedCache>& cache) {
  return std::static_pointer_cast<xstore::CachedModel>(cache);
}

}  // namespace

IndexKindEntry XStoreKind() {
  return {
      .name = "xstore",
      .traits = {.ordered = true,
                 .keeps_order = true,
                 .learned = true,
                 .scans_records = true,
                 .max_key_bytes = kMaxKeyBytes,
                 .most_own_key_bytes = kMostInlineKeyBytes,
                 .holds_values = true},
      .create = [](IndexService* service, IndexId id,
                   const IndexOptions& options) -> StatusOr<std::unique_ptr<LocalIndex>> {
        const auto* const own = std::any_cast<XStoreOptions>(&options.own);
        XStoreOptions all = own != nullptr ? *own : XStoreOptions{};
        all.key_kind = options.key_kind;
        all.max_key_bytes = options.max_key_bytes;
        return XStore::Create(service, id, all);
      },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            const auto* const own = std::any_cast<XCacheOptions>(&options.own);
            return ConnectXStore(channel, owner, id,
                                 {.key_kind = options.key_kind, .max_key_bytes = options.max_key_bytes},
                                 own != nullptr ? *own
                                                : XCacheOptions{.by_call = options.by_call,
                                                                .call_timeout = options.call_timeout,
                                                                .shared = CacheOf(options.shared_cache)});
          },
      .register_methods = RegisterXStoreMethods,
      // A leaf of 16 keys, with its share of the tree and of the model.
      .bytes_per_key = [](double fill) { return 400.0 / (16.0 * fill); },
      .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> {
        return max_bytes == 0 ? MakeSharedCache({}) : MakeSharedCache({.max_bytes = max_bytes});
      },
  };
}

}  // namespace gannet::index
