// An index kind that exists only in tests passes the suite's tests of owners.
#include "index/registry.h"
#include "tests/conformance/index_suite.h"
#include "tests/index/sorted_array.h"

namespace gannet::index {
namespace index_sorted_array_test {

IndexFactory SortedArrayFactory() {
  const IndexKindEntry& entry = EntryOf(SortedArrayKind());
  return {
      .name = entry.name,
      .ordered = entry.traits.ordered,
      .scans_records = entry.traits.scans_records,
      .create =
          [create = entry.create](IndexService* service, const IndexFactory::Shape& shape) {
            return create(service, shape.id,
                          {.key_kind = shape.key_kind,
                           .max_key_bytes = shape.max_key_bytes,
                           .expected_keys = shape.expected_keys});
          },
      .register_methods = entry.register_methods,
      .connect = {},
  };
}

INSTANTIATE_TEST_SUITE_P(SortedArray, IndexSuite, testing::ValuesIn(AllCases(SortedArrayFactory())), CaseName);

}  // namespace index_sorted_array_test
}  // namespace gannet::index
