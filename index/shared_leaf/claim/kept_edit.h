// A change of an entry in the copy of a kept leaf (claim.h).
#pragma once

#include <cstdint>
#include <optional>

namespace gannet::index::shared_leaf {

template <class Keys>
struct KeptEdit {
  enum class Kind : uint8_t { kInsert, kRemove, kReplace };

  Kind kind = Kind::kInsert;
  typename Keys::Key key{};
  typename Keys::Entry entry{};                   // to insert; to remove, or nothing is; that comes in place of another
  std::optional<typename Keys::Entry> from = {};  // replaced, or nothing is; none: whatever the key has
};

}  // namespace gannet::index::shared_leaf
