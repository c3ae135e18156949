// The kinds of index that have a property, for suites that run with each of them: a new kind (index/registry.h) is in
// all of these suites at once. Kinds that a test registers are not among them.
#pragma once

#include <vector>

#include "index/registry.h"

namespace gannet::index {

inline std::vector<IndexKind> KindsThat(bool (*have)(const IndexTraits& traits)) {
  std::vector<IndexKind> kinds;
#define GANNET_ADD_KIND(enumerator, entry) \
  if (have(EntryOf(IndexKind::enumerator).traits)) kinds.push_back(IndexKind::enumerator);
  GANNET_INDEX_KINDS(GANNET_ADD_KIND)
#undef GANNET_ADD_KIND
  return kinds;
}

// All whose keys may be integers.
inline std::vector<IndexKind> KindsOfPoints() {
  return KindsThat([](const IndexTraits& traits) { return !traits.spatial; });
}
inline std::vector<IndexKind> OrderedKinds() {
  return KindsThat([](const IndexTraits& traits) { return traits.ordered; });
}
// Those with leaves that clients change (index/shared_leaf/, index/dolphin/).
inline std::vector<IndexKind> KindsThatClientsChange() {
  return KindsThat([](const IndexTraits& traits) { return traits.client_writes; });
}

}  // namespace gannet::index
