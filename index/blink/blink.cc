// The B-link tree's place among the kinds: its construction and its calls.
#include "index/blink/blink.h"

#include "index/blink/blink_index.h"
#include "index/shared_leaf/leaf_index.h"

namespace gannet::index {

StatusOr<std::unique_ptr<LocalIndex>> CreateBlink(IndexService* service, IndexId id, KeyKind key_kind,
                                                  const BlinkOptions& options) {
  return shared_leaf::Create<blink::BasicBlinkIndex>(service, id, key_kind, options);
}

void RegisterBlinkMethods(IndexService* service) {
  shared_leaf::RegisterLeafMethods(service, blink::kDescribe, "blink");
}

}  // namespace gannet::index
