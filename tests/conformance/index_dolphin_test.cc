// Dolphin passes the common suite.
#include "index/dolphin/dolphin.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_dolphin_test {

IndexFactory DolphinFactory(const char* name, size_t cache_bytes, IndexRights rights = IndexRights::kClients,
                            size_t key_lines = dolphin::kDefaultKeyLines) {
  return {
      .name = name,
      .ordered = true,
      .replace_changes_word = true,
      .client_writes = rights == IndexRights::kClients,
      .create =
          [=](IndexService* service, const IndexFactory::Shape& shape) {
            return CreateDolphin(service, shape.id, shape.key_kind,
                                 {.max_key_bytes = shape.max_key_bytes, .key_lines = key_lines, .rights = rights});
          },
      .register_methods = RegisterDolphinMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectDolphin(channel, owner, shape.id,
                                  {.key_kind = shape.key_kind,
                                   .max_key_bytes = shape.max_key_bytes,
                                   .cache_bytes = cache_bytes,
                                   .patience = absl::Seconds(1),  // with a dead owner, of which no node tells it
                                   .rights = rights});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Dolphin, IndexSuite, testing::ValuesIn(AllCases(DolphinFactory("dolphin", size_t{1} << 20))),
                         CaseName);
// Room for a few inner nodes.
INSTANTIATE_TEST_SUITE_P(DolphinSmallCache, IndexSuite,
                         testing::ValuesIn(OtherClients(DolphinFactory("dolphin_small_cache", 4'000))), CaseName);
// Clients may only READ the nodes; leaves are those of the paper.
INSTANTIATE_TEST_SUITE_P(DolphinOwnerOnly, IndexSuite,
                         testing::ValuesIn(AllCases(DolphinFactory("dolphin_owner_only", size_t{1} << 20,
                                                                   IndexRights::kOwnerOnly, 7))),
                         CaseName);

}  // namespace index_dolphin_test
}  // namespace gannet::index
