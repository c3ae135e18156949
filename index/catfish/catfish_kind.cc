// Catfish's entry in the registry.
#include <any>

#include "index/catfish/catfish.h"
#include "index/registry.h"

namespace gannet::index {

IndexKindEntry CatfishKind() {
  return {
      .name = "catfish",
      .traits = {.keeps_order = true, .spatial = true},
      .create = [](IndexService* service, IndexId id,
                   const IndexOptions& options) -> StatusOr<std::unique_ptr<LocalIndex>> {
        const auto* const own = std::any_cast<CatfishOptions>(&options.own);
        return CreateCatfish(service, id, options.key_kind, options.max_key_bytes, options.expected_keys,
                             own != nullptr ? *own : CatfishOptions{});
      },
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, IndexId id, const IndexClientOptions& options) {
            const auto* const own = std::any_cast<CatfishClientOptions>(&options.own);
            return ConnectCatfish(channel, owner, id,
                                  own != nullptr ? *own
                                                 : CatfishClientOptions{.by_call = options.by_call,
                                                                        .call_timeout = options.call_timeout});
          },
      .register_methods = RegisterCatfishMethods,
      // An entry of 48 bytes, and the inner nodes' share.
      .bytes_per_key = [](double fill) { return 60.0 / fill; },
      .read_options = [](std::string_view text) -> StatusOr<OwnOptions> {
        StatusOr<CatfishOptions> options = CatfishOptionsOf(text);
        if (!options.ok()) return options.status();
        return OwnOptions{.options = *options, .text = ToText(*options)};
      },
  };
}

}  // namespace gannet::index
