// ROLEX passes the common suite, with integer keys.
#include "index/rolex/rolex.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace {

IndexFactory RolexFactory() {
  return {
      .name = "rolex",
      .ordered = true,
      .replace_changes_word = true,
      .create = [](IndexService* service,
                   const IndexFactory::Shape& shape) { return CreateRolex(service, shape.id, shape.key_kind); },
      .register_methods = RegisterRolexMethods,
      .connect = [](rdma::Channel* channel, rdma::NodeId owner,
                    const IndexFactory::Shape& shape) { return ConnectRolex(channel, owner, shape.id, {}); },
  };
}

INSTANTIATE_TEST_SUITE_P(Rolex, IndexSuite, testing::Values(IndexCase{RolexFactory(), KeyKind::kInteger}), CaseName);

}  // namespace
}  // namespace gannet::index
