// ROLEX's place among the kinds: its construction and its calls.
#include "index/rolex/rolex.h"

#include "index/rolex/rolex_index.h"
#include "index/shared_leaf/leaf_index.h"

namespace gannet::index {

StatusOr<std::unique_ptr<LocalIndex>> CreateRolex(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const RolexOptions& options) {
  return shared_leaf::Create<rolex::BasicRolexIndex>(service, id, key_kind, options);
}

void RegisterRolexMethods(IndexService* service) {
  shared_leaf::RegisterLeafMethods(service, rolex::kDescribe, "rolex");
}

}  // namespace gannet::index
