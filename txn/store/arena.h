// A transaction's scratch memory: kept for the next transaction.
#pragma once

#include <span>
#include <string_view>

#include "base/arena.h"
#include "index/key.h"

namespace gannet::txn {

class Arena : public gannet::Arena {
 public:
  // The same key, with a copy of its bytes in this arena.
  index::Key Keep(const index::Key& key) {
    if (key.kind() != index::KeyKind::kBytes) return key;
    const std::span<std::byte> copy = Copy(std::as_bytes(std::span(key.bytes().data(), key.size())));
    return index::Key(std::string_view(reinterpret_cast<const char*>(copy.data()), copy.size()));
  }
};

}  // namespace gannet::txn
