// XStore passes the common suite in each of its three cache modes.
#include "index/xstore/xstore.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace {

IndexFactory Factory(const char* name, const XCacheOptions& cache) {
  IndexFactory factory;
  factory.name = name;
  factory.ordered = true;
  factory.create = [](IndexService* service,
                      const IndexFactory::Shape& shape) -> StatusOr<std::unique_ptr<LocalIndex>> {
    return XStore::Create(service, shape.id, {.key_kind = shape.key_kind, .max_key_bytes = shape.max_key_bytes});
  };
  factory.register_methods = RegisterXStoreMethods;
  factory.connect = [cache](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
    return ConnectXStore(channel, owner, shape.id, {.key_kind = shape.key_kind, .max_key_bytes = shape.max_key_bytes},
                         cache);
  };
  return factory;
}

INSTANTIATE_TEST_SUITE_P(XStore, IndexSuite, testing::ValuesIn(AllCases(Factory("xstore", {}))), CaseName);
INSTANTIATE_TEST_SUITE_P(XStoreModelOnly, IndexSuite,
                         testing::ValuesIn(AllCases(Factory("xstore_model_only", {.mode = XCacheMode::kModelOnly}))),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(XStoreTopOnly, IndexSuite,
                         testing::ValuesIn(AllCases(Factory("xstore_top_only", {.mode = XCacheMode::kTopOnly}))),
                         CaseName);
// A cache with room for the tables of only a few sub-models.
INSTANTIATE_TEST_SUITE_P(XStoreSmallCache, IndexSuite,
                         testing::ValuesIn(AllCases(Factory("xstore_small_cache", {.max_bytes = 3000}))), CaseName);

}  // namespace
}  // namespace gannet::index
