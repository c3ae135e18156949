// ROLEX passes the common suite.
#include "index/rolex/rolex.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_rolex_test {

IndexFactory RolexFactory(const char* name, IndexRights rights) {
  return {
      .name = name,
      .ordered = true,
      .replace_changes_word = true,
      .client_writes = rights == IndexRights::kClients,
      .create =
          [=](IndexService* service, const IndexFactory::Shape& shape) {
            return CreateRolex(service, shape.id, shape.key_kind,
                               {.max_key_bytes = shape.max_key_bytes, .rights = rights});
          },
      .register_methods = RegisterRolexMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectRolex(channel, owner, shape.id,
                                {.key_kind = shape.key_kind, .max_key_bytes = shape.max_key_bytes, .rights = rights});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Rolex, IndexSuite, testing::ValuesIn(AllCases(RolexFactory("rolex", IndexRights::kClients))),
                         CaseName);
// Clients may only READ the leaves and the tables.
INSTANTIATE_TEST_SUITE_P(RolexOwnerOnly, IndexSuite,
                         testing::ValuesIn(AllCases(RolexFactory("rolex_owner_only", IndexRights::kOwnerOnly))),
                         CaseName);

}  // namespace index_rolex_test
}  // namespace gannet::index
