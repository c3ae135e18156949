// ROLEX passes the common suite.
#include "index/rolex/rolex.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace {

IndexFactory RolexFactory() {
  return {
      .name = "rolex",
      .ordered = true,
      .replace_changes_word = true,
      .create =
          [](IndexService* service, const IndexFactory::Shape& shape) {
            return CreateRolex(service, shape.id, shape.key_kind, {.max_key_bytes = shape.max_key_bytes});
          },
      .register_methods = RegisterRolexMethods,
      .connect =
          [](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectRolex(channel, owner, shape.id,
                                {.key_kind = shape.key_kind, .max_key_bytes = shape.max_key_bytes});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Rolex, IndexSuite, testing::ValuesIn(AllCases(RolexFactory())), CaseName);

}  // namespace
}  // namespace gannet::index
