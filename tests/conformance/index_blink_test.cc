// The B-link tree passes the common suite, with integer keys.
#include "index/blink/blink.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace {

IndexFactory BlinkFactory(const char* name, size_t cache_bytes) {
  return {
      .name = name,
      .ordered = true,
      .replace_changes_word = true,
      .create = [](IndexService* service,
                   const IndexFactory::Shape& shape) { return CreateBlink(service, shape.id, shape.key_kind); },
      .register_methods = RegisterBlinkMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectBlink(channel, owner, shape.id, {.cache_bytes = cache_bytes});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Blink, IndexSuite,
                         testing::Values(IndexCase{BlinkFactory("blink", size_t{1} << 20), KeyKind::kInteger}),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(BlinkSmallCache, IndexSuite,
                         testing::Values(IndexCase{BlinkFactory("blink_small_cache", 2000), KeyKind::kInteger}),
                         CaseName);

}  // namespace
}  // namespace gannet::index
