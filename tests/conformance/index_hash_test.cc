// The hash index passes the common suite.
#include <memory>

#include "index/hash/hash_client.h"
#include "index/hash/hash_index.h"
#include "index/hash/hash_rpc.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_hash_test {

IndexFactory HashFactory(const char* name, size_t location_cache_bytes) {
  return {
      .name = name,
      .ordered = false,
      .max_key_bytes = kMaxKeyBytes,
      .create = [](IndexService* service, const IndexFactory::Shape& shape) -> StatusOr<std::unique_ptr<LocalIndex>> {
        return HashIndex::Create(
            service, shape.id,
            {.key_kind = shape.key_kind, .max_key_bytes = shape.max_key_bytes, .expected_keys = shape.expected_keys});
      },
      .register_methods = RegisterHashMethods,
      .connect =
          [=](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
            return ConnectHash(channel, owner, shape.id, {.location_cache_bytes = location_cache_bytes});
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Hash, IndexSuite, testing::ValuesIn(AllCases(HashFactory("hash", 1 << 16))), CaseName);
INSTANTIATE_TEST_SUITE_P(HashUncached, IndexSuite, testing::ValuesIn(OtherClients(HashFactory("hash_uncached", 0))),
                         CaseName);

}  // namespace index_hash_test
}  // namespace gannet::index
