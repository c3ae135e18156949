// XStore passes the common suite in each of its three cache modes, and with byte keys that its leaves have themselves
// (up to 39 bytes) or leave in the records (longer ones, as the suite's own), which may share a long start.
#include <string>

#include "absl/strings/str_cat.h"
#include "index/xstore/xstore.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_xstore_test {

IndexFactory Factory(const char* name, const XCacheOptions& cache) {
  IndexFactory factory;
  factory.name = name;
  factory.ordered = true;
  factory.scans_records = true;
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

// Longest keys that leaves have themselves.
constexpr size_t kShortBytes = 39;

// The key of TestKey, but of at most that many bytes.
OwnedKey ShortKey(uint64_t n) {
  if (n == UINT64_MAX) return OwnedKey(Key(std::string_view(std::string(kShortBytes, '\xff'))));
  std::string bytes;
  if (n > 0) {
    if (n % 3 == 1) bytes = "name-";
    if (n % 3 == 2) bytes = "many share: ";
    absl::StrAppend(&bytes, n);
    bytes.append(n % 7, '\0');
  }
  return OwnedKey(Key(std::string_view(bytes)));
}

IndexCase ShortKeys() {
  IndexFactory factory = Factory("xstore_short", {});
  factory.key = ShortKey;
  factory.create = [](IndexService* service,
                      const IndexFactory::Shape& shape) -> StatusOr<std::unique_ptr<LocalIndex>> {
    return XStore::Create(service, shape.id, {.key_kind = shape.key_kind, .max_key_bytes = kShortBytes});
  };
  factory.connect = [](rdma::Channel* channel, rdma::NodeId owner, const IndexFactory::Shape& shape) {
    return ConnectXStore(channel, owner, shape.id, {.key_kind = shape.key_kind, .max_key_bytes = kShortBytes}, {});
  };
  return {factory, KeyKind::kBytes};
}

// Most keys share their first 990 bytes; the others are those of the suite, of every length.
OwnedKey LongKey(uint64_t n) {
  if (n % 3 == 1 || n == 0 || n == UINT64_MAX) return TestKey(KeyKind::kBytes, n, kMaxKeyBytes);
  std::string bytes(990, 's');
  absl::StrAppend(&bytes, n);
  bytes.append(n % 7, '\0');
  return OwnedKey(Key(std::string_view(bytes)));
}

IndexCase LongKeys(const char* name, const XCacheOptions& cache, bool client_differs = true) {
  IndexFactory factory = Factory(name, cache);
  factory.client_differs = client_differs;
  factory.max_key_bytes = kMaxKeyBytes;
  factory.key = LongKey;
  return {factory, KeyKind::kBytes};
}

IndexCase LongerKeys() {
  IndexFactory factory = Factory("xstore_256", {});
  factory.max_key_bytes = 256;
  return {factory, KeyKind::kBytes};
}

INSTANTIATE_TEST_SUITE_P(XStoreShort, IndexSuite, testing::Values(ShortKeys()), CaseName);
INSTANTIATE_TEST_SUITE_P(XStore, IndexSuite, testing::ValuesIn(AllCases(Factory("xstore", {}))), CaseName);
INSTANTIATE_TEST_SUITE_P(
    XStoreModelOnly, IndexSuite,
    testing::ValuesIn(OtherClients(Factory("xstore_model_only", {.mode = XCacheMode::kModelOnly}))), CaseName);
INSTANTIATE_TEST_SUITE_P(XStoreTopOnly, IndexSuite,
                         testing::ValuesIn(OtherClients(Factory("xstore_top_only", {.mode = XCacheMode::kTopOnly}))),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(XStoreLonger, IndexSuite, testing::Values(LongerKeys()), CaseName);
INSTANTIATE_TEST_SUITE_P(XStoreLong, IndexSuite,
                         testing::Values(LongKeys("xstore_long", {}, /*client_differs=*/false),
                                         LongKeys("xstore_long_model_only", {.mode = XCacheMode::kModelOnly}),
                                         LongKeys("xstore_long_top_only", {.mode = XCacheMode::kTopOnly}),
                                         LongKeys("xstore_long_by_call", {.by_call = true})),
                         CaseName);
// A cache with room for the tables of only a few sub-models.
INSTANTIATE_TEST_SUITE_P(XStoreSmallCache, IndexSuite,
                         testing::ValuesIn(OtherClients(Factory("xstore_small_cache", {.max_bytes = 3000}))), CaseName);

}  // namespace index_xstore_test
}  // namespace gannet::index
