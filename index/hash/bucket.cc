#include "index/hash/bucket.h"

#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gannet::index::hash {

KeyHash HashBytes(std::string_view bytes) {
  return {XXH3_64bits(bytes.data(), bytes.size())};
}

}  // namespace gannet::index::hash
