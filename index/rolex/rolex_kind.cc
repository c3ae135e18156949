// ROLEX's entry in the registry.
#include <any>

#include "index/registry.h"
#include "index/rolex/rolex.h"
#include "index/rolex/shared_models.h"

namespace gannet::index {

IndexKindEntry RolexKind() {
  return {
      .name = "rolex",
      .traits = {.ordered = true, .keeps_order = true, .client_writes = true, .holds_values = true},
      .create =
          [](IndexService* service, IndexId id, const IndexOptions& options) {
            const auto* const own = std::any_cast<RolexOptions>(&options.own);
            RolexOptions all = own != nullptr ? *own : RolexOptions{};
            all.max_key_bytes = options.max_key_bytes;
            all.rights = options.rights;
            return CreateRolex(service, id, options.key_kind, all);
          },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            return ConnectRolex(channel, owner, id, RolexClientOptions::Of(options));
          },
      .register_methods = RegisterRolexMethods,
      // A leaf with 16 of its 18 slots used, and for each 96 leaves a model and its synonym table.
      .bytes_per_key = [](double fill) { return (448.0 + 12 + 5504.0 / 96) / 16 / fill; },
      .read_options = [](std::string_view text) -> StatusOr<OwnOptions> {
        StatusOr<RolexOptions> options = RolexOptionsOf(text);
        if (!options.ok()) return options.status();
        return OwnOptions{.options = *options, .text = ToText(*options)};
      },
      .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeRolexCache(max_bytes); },
  };
}

}  // namespace gannet::index
