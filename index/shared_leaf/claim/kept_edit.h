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
  // To insert; to remove, if the key has it; to put in the place of another.
  typename Keys::Entry entry{};
  // Of kReplace: the other one, if the key has it; none: whatever the key has.
  std::optional<typename Keys::Entry> from = {};
};

}  // namespace gannet::index::shared_leaf
