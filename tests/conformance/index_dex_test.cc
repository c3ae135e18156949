// DEX passes the common suite.
#include "index/dex/dex.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_dex_test {

IndexFactory DexFactory(const char* name, size_t cache_bytes, IndexRights rights = IndexRights::kClients) {
  return {
      .name = name,
      .ordered = true,
      .replace_changes_word = true,
      .client_writes = rights == IndexRights::kClients,
      .create =
          [=](IndexService* service, const IndexFactory::Shape& shape) {
            return CreateDex(service, shape.id, shape.key_kind,
                             {.max_key_bytes = shape.max_key_bytes, .rights = rights});
          },
      .register_methods = RegisterDexMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectDex(channel, owner, shape.id,
                              {.key_kind = shape.key_kind,
                               .max_key_bytes = shape.max_key_bytes,
                               .cache_bytes = cache_bytes,
                               .rights = rights});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Dex, IndexSuite, testing::ValuesIn(AllCases(DexFactory("dex", size_t{1} << 20))), CaseName);
// Room for a few nodes.
INSTANTIATE_TEST_SUITE_P(DexSmallCache, IndexSuite,
                         testing::ValuesIn(OtherClients(DexFactory("dex_small_cache", 10'000))), CaseName);
// Clients may only READ the nodes.
INSTANTIATE_TEST_SUITE_P(
    DexOwnerOnly, IndexSuite,
    testing::ValuesIn(AllCases(DexFactory("dex_owner_only", size_t{1} << 20, IndexRights::kOwnerOnly))), CaseName);

}  // namespace index_dex_test
}  // namespace gannet::index
