// The B-link tree passes the common suite.
#include "index/blink/blink.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_blink_test {

IndexFactory BlinkFactory(const char* name, size_t cache_bytes, IndexRights rights = IndexRights::kClients) {
  return {
      .name = name,
      .ordered = true,
      .replace_changes_word = true,
      .client_writes = rights == IndexRights::kClients,
      .create =
          [=](IndexService* service, const IndexFactory::Shape& shape) {
            return CreateBlink(service, shape.id, shape.key_kind,
                               {.max_key_bytes = shape.max_key_bytes, .rights = rights});
          },
      .register_methods = RegisterBlinkMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectBlink(channel, owner, shape.id,
                                {.key_kind = shape.key_kind,
                                 .max_key_bytes = shape.max_key_bytes,
                                 .cache_bytes = cache_bytes,
                                 .rights = rights});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Blink, IndexSuite, testing::ValuesIn(AllCases(BlinkFactory("blink", size_t{1} << 20))),
                         CaseName);
// Room for a few inner nodes.
INSTANTIATE_TEST_SUITE_P(BlinkSmallCache, IndexSuite,
                         testing::ValuesIn(OtherClients(BlinkFactory("blink_small_cache", 10'000))), CaseName);
// Clients may only READ the nodes.
INSTANTIATE_TEST_SUITE_P(
    BlinkOwnerOnly, IndexSuite,
    testing::ValuesIn(AllCases(BlinkFactory("blink_owner_only", size_t{1} << 20, IndexRights::kOwnerOnly))), CaseName);

}  // namespace index_blink_test
}  // namespace gannet::index
