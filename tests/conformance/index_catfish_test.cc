// Catfish passes the common suite and the spatial one, in its three variants. Nodes of few entries make high trees of
// few keys.
#include "index/catfish/catfish.h"
#include "tests/conformance/index_suite.h"
#include "tests/conformance/spatial_suite.h"

namespace gannet::index {
namespace index_catfish_test {

IndexCase Case(const char* name, CatfishVariant variant, uint32_t node_entries, bool by_call = false) {
  IndexFactory factory;
  factory.name = name;
  factory.spatial = true;
  factory.long_changes = true;
  factory.key = RectangleTestKey;
  factory.create = [=](IndexService* service,
                       const IndexFactory::Shape& shape) -> StatusOr<std::unique_ptr<LocalIndex>> {
    return CreateCatfish(service, shape.id, shape.key_kind, shape.max_key_bytes, shape.expected_keys,
                         {.variant = variant, .node_entries = node_entries});
  };
  factory.register_methods = RegisterCatfishMethods;
  factory.connect = [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
    return ConnectCatfish(channel, owner, shape.id, {.by_call = by_call});
  };
  return {factory, KeyKind::kBytes};
}

const IndexCase kCases[] = {
    Case("guttman", CatfishVariant::kGuttman, 6),
    Case("rstar", CatfishVariant::kRStar, 5),
    Case("rstar_30", CatfishVariant::kRStar, 30),
    Case("hilbert", CatfishVariant::kHilbert, 6),
};

INSTANTIATE_TEST_SUITE_P(Catfish, IndexSuite, testing::ValuesIn(kCases), CaseName);
INSTANTIATE_TEST_SUITE_P(Catfish, SpatialSuite, testing::ValuesIn(kCases), CaseName);
INSTANTIATE_TEST_SUITE_P(CatfishByCall, SpatialSuite,
                         testing::Values(Case("by_call", CatfishVariant::kRStar, 30, /*by_call=*/true)), CaseName);

}  // namespace index_catfish_test
}  // namespace gannet::index
