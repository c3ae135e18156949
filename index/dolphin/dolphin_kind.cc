// Dolphin as an entry of the registry.
#include <any>

#include "index/dolphin/dolphin.h"
#include "index/dolphin/shared_inner.h"

namespace gannet::index {

IndexKindEntry DolphinKind() {
  return {
      .name = "dolphin",
      .traits = {.ordered = true, .keeps_order = true, .client_writes = true, .holds_values = true},
      .create =
          [](IndexService* service, IndexId id, const IndexOptions& options) {
            const auto* const own = std::any_cast<DolphinOptions>(&options.own);
            DolphinOptions all = own != nullptr ? *own : DolphinOptions{};
            all.max_key_bytes = options.max_key_bytes;
            all.rights = options.rights;
            return CreateDolphin(service, id, options.key_kind, all);
          },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            return ConnectDolphin(channel, owner, id, DolphinClientOptions::Of(options));
          },
      .register_methods = RegisterDolphinMethods,
      // A leaf of 21 slots, and about 2 bytes of inner nodes for each key.
      .bytes_per_key = [](double fill) { return dolphin::LeafBytes(dolphin::kDefaultKeyLines) / 21.0 / fill + 2; },
      .read_options = [](std::string_view text) -> StatusOr<OwnOptions> {
        StatusOr<DolphinOptions> options = DolphinOptionsOf(text);
        if (!options.ok()) return options.status();
        return OwnOptions{.options = *options, .text = ToText(*options)};
      },
      .make_cache = [](size_t max_bytes) -> std::shared_ptr<SharedCache> { return MakeDolphinCache(max_bytes); },
  };
}

}  // namespace gannet::index
